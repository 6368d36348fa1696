//! A run on the disk: its folder ([`directory`]), its checkpoints ([`checkpoint`], with a [`manifest`]), what
//! they hold ([`snapshot`] and [`state`]), and its history ([`log`]).

pub mod checkpoint;
pub mod directory;
pub mod log;
pub mod manifest;
pub mod snapshot;
pub mod state;

//! What is learned: [`translation`].

pub mod translation;

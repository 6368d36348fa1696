//! How weights change: [`optimizer`] steps along a learning-rate [`schedule`], and two averages of weights,
//! over steps ([`ema`]) and over checkpoints ([`average`]).

pub mod average;
pub mod ema;
pub mod optimizer;
pub mod schedule;

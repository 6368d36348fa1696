//! The figures that the program draws: what is in them, not how they look ([`crate::figure`] does that).

pub mod lengths;
pub mod positions;
pub mod schedule;
pub mod smoothing;
pub mod training;

//! From text files, or a made-up task, to batches.
//!
//! [`corpus`] reads and encodes sentence pairs ([`synthetic`] makes them up, [`fingerprint`] tells one
//! corpus from another, [`augmentation`] gives lines other forms); [`batches`] puts pairs of similar length
//! together, shuffled by [`random`].

pub mod augmentation;
pub mod batches;
pub mod corpus;
pub mod fingerprint;
pub mod random;
pub mod synthetic;

//! From text files, or a made-up task, to batches.
//!
//! [`corpus`] reads and encodes sentence pairs ([`synthetic`] makes them up, [`fingerprint`] tells one
//! corpus from another, [`held_out`] keeps test sets out, [`mixture`] draws lines by the weights of their files,
//! [`augmentation`] gives lines other forms); [`prepared`] streams what is too large for memory from files;
//! [`batches`] puts pairs of similar length together, shuffled by [`random`]. [`text`] reads running text, for
//! language models; [`documents`] makes sentence pairs with hidden tokens of it, for BERT, and [`labelled`] reads texts with
//! their classes.

pub mod augmentation;
pub mod batches;
pub mod corpus;
pub mod documents;
pub mod fingerprint;
pub mod held_out;
pub mod labelled;
pub mod mixture;
pub mod prepared;
pub mod random;
pub mod synthetic;
pub mod text;

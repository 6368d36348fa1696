//! Model families. The Transformer of the paper is the first.

pub mod transformer;

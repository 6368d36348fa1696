//! Model families. The Transformer of the paper is the first; the recurrent translators came before it.

pub mod recurrent;
pub mod transformer;

//! Model families: [`transformer`] is the encoder-decoder of the paper, [`gpt`] its decoder alone as a language model,
//! [`bert`] its encoder alone.
//!
//! [`weights`] reads the weights file of a model directory, for all of them.

pub mod bert;
pub mod gpt;
pub mod transformer;
pub mod weights;

//! Attention weights of a BERT as plain numbers, by one forward pass over a text.

use super::{
    Bert,
    text::{Framed, Texts},
};
use crate::{models::transformer::inspection::heads, pass::Pass};

impl Bert {
    /// The weights of each layer and head, row by row: from each token of the text to each.
    pub fn inspect(&self, text: &Framed) -> Vec<Vec<Vec<f32>>> {
        let [tokens, segments] = Texts::collect([text]).tensors(self);
        let output = self.forward(tokens, segments, &mut Pass::inspection());
        output.weights.into_iter().map(heads).collect()
    }
}

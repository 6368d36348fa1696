//! Texts as BERT reads them, `[CLS] text [SEP]` or `[CLS] first [SEP] second [SEP]`, and what it makes of them.
//!
//! `[CLS]` and `[SEP]` are `<s>` and `</s>` here, as in every vocabulary.

use attentive_text::special::{BOS, EOS, PAD};
use burn::tensor::{Int, Tensor, TensorData, activation::softmax};

use super::{Bert, vectors_at};
use crate::pass::Pass;

/// Some texts of one batch, padded.
#[derive(Debug, Clone)]
pub struct Texts {
    /// `[rows, len]`, row by row.
    pub tokens: Vec<u32>,
    /// The segment of each token.
    pub segments: Vec<u32>,
    /// Tokens of a row.
    pub len: usize,
}

/// One text, framed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Framed {
    /// With `[CLS]` and `[SEP]`.
    pub tokens: Vec<u32>,
    /// The segment of each token.
    pub segments: Vec<u32>,
    /// Tokens that were left out because the text is longer than the model reads.
    pub left_out: usize,
}

impl Framed {
    /// A text, or a pair of texts; of what is longer than `longest` tokens altogether, the longer side loses its end, token
    /// by token.
    pub fn new(first: &[u32], second: Option<&[u32]>, longest: usize) -> Self {
        let specials = if second.is_some() { 3 } else { 2 };
        let room = longest.saturating_sub(specials);
        let rest = second.unwrap_or_default();
        let (mut a, mut b) = (first.len(), rest.len());
        while a + b > room {
            if a > b {
                a -= 1;
            } else {
                b -= 1;
            }
        }
        let left_out = first.len() + rest.len() - a - b;
        let mut tokens = [&[BOS], &first[..a], &[EOS]].concat();
        let mut segments = vec![0; tokens.len()];
        if second.is_some() {
            tokens.extend(&rest[..b]);
            tokens.push(EOS);
            segments.resize(tokens.len(), 1);
        }
        Self {
            tokens,
            segments,
            left_out,
        }
    }
}

impl Texts {
    /// Pads to the longest.
    pub fn collect<'t>(texts: impl IntoIterator<Item = &'t Framed> + Clone) -> Self {
        let lengths = texts.clone().into_iter().map(|text| text.tokens.len());
        let len = lengths.max().unwrap_or(0);
        let padded = |values: &[u32], with: u32| {
            let mut row = values.to_vec();
            row.resize(len, with);
            row
        };
        let (mut tokens, mut segments) = (Vec::new(), Vec::new());
        for text in texts {
            tokens.extend(padded(&text.tokens, PAD));
            segments.extend(padded(&text.segments, 0));
        }
        Self {
            tokens,
            segments,
            len,
        }
    }

    /// Tokens and segments as tensors, `[rows, len]`.
    pub fn tensors(&self, model: &Bert) -> [Tensor<2, Int>; 2] {
        [&self.tokens, &self.segments].map(|values| {
            let values: Vec<i64> = values.iter().map(|id| i64::from(*id)).collect();
            let rows = values.len() / self.len.max(1);
            Tensor::from_data(TensorData::new(values, [rows, self.len]), &model.device())
        })
    }
}

impl Bert {
    /// A vector of length 1 for each text: the mean of the vectors of its tokens, `[CLS]` and `[SEP]` included
    /// (Reimers and Gurevych 2019).
    pub fn embed(&self, texts: &Texts) -> Vec<Vec<f32>> {
        let [tokens, segments] = texts.tensors(self);
        let there = tokens.clone().not_equal_elem(i64::from(PAD)).float(); // [rows, len]
        let hidden = self
            .forward(tokens, segments, &mut Pass::evaluation())
            .hidden;
        let [rows, _, d_model] = hidden.dims();
        let count = there.clone().sum_dim(1); // [rows, 1]
        let sum = (hidden * there.unsqueeze_dim::<3>(2)).sum_dim(1);
        let mean = sum.reshape([rows, d_model]) / count;
        let norm = mean
            .clone()
            .powf_scalar(2.0)
            .sum_dim(1)
            .sqrt()
            .clamp_min(1e-12);
        let values: Vec<f32> = (mean / norm).into_data().iter::<f32>().collect();
        values.chunks(d_model).map(<[f32]>::to_vec).collect()
    }

    /// The probabilities of all tokens at each place of the first text that holds `mask`; nothing if the model does not
    /// predict hidden tokens.
    pub fn fill(&self, text: &Framed, mask: u32) -> Option<Vec<Vec<f32>>> {
        let texts = Texts::collect([text]);
        let [tokens, segments] = texts.tensors(self);
        let pass = &mut Pass::evaluation();
        let hidden = self.forward(tokens, segments, pass).hidden;
        let places = (0..).zip(&text.tokens).filter(|(_, token)| **token == mask);
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        if places.is_empty() {
            return self.masked.is_some().then(Vec::new);
        }
        let logits = self.masked_logits(vectors_at(hidden, &places), pass.precision)?;
        let vocab = logits.dims()[2];
        let probabilities: Vec<f32> = softmax(logits, 2).into_data().iter::<f32>().collect();
        Some(probabilities.chunks(vocab).map(<[f32]>::to_vec).collect())
    }

    /// The probability of each class for each text; nothing if the model has no classifier.
    pub fn classify(&self, texts: &Texts) -> Option<Vec<Vec<f32>>> {
        let [tokens, segments] = texts.tensors(self);
        let pass = &mut Pass::evaluation();
        let hidden = self.forward(tokens, segments, pass).hidden;
        let logits = self.class_logits(hidden, pass)?;
        let classes = logits.dims()[1];
        let probabilities: Vec<f32> = softmax(logits, 1).into_data().iter::<f32>().collect();
        Some(probabilities.chunks(classes).map(<[f32]>::to_vec).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_have_two_segments_and_the_longer_side_is_cut() {
        let pair = Framed::new(&[10, 11, 12, 13], Some(&[20, 21]), 7);
        assert_eq!(pair.tokens, [BOS, 10, 11, EOS, 20, 21, EOS]);
        assert_eq!(pair.segments, [0, 0, 0, 0, 1, 1, 1]);
        assert_eq!(pair.left_out, 2);
        let text = Framed::new(&[10, 11, 12], None, 4);
        assert_eq!((text.tokens, text.left_out), (vec![BOS, 10, 11, EOS], 1));
        let texts = Texts::collect(&[Framed::new(&[9], None, 9), Framed::new(&[8, 7], None, 9)]);
        assert_eq!(texts.tokens, [BOS, 9, EOS, PAD, BOS, 8, 7, EOS]);
    }
}

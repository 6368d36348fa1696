//! Texts as BERT reads them, `[CLS] text [SEP]` or `[CLS] first [SEP] second [SEP]`, and what it makes of them.
//!
//! `[CLS]` and `[SEP]` are `<s>` and `</s>` here, as in every vocabulary.

use attentive_text::special::{BOS, EOS, PAD};
use burn::tensor::{Int, Tensor, TensorData, activation::softmax};

use super::{Bert, packed::Encoded, vectors_at};
use crate::{models::transformer::inspection::numbers, ops::Precision, pass::Pass};

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
    pub fn embed(&self, texts: &[Framed]) -> Vec<Vec<f32>> {
        let encoded = self.encode(texts);
        let d_model = encoded.hidden.dims()[2];
        let values = numbers(encoded.hidden);
        let rows: Vec<&[f32]> = values.chunks(d_model).collect();
        let starts = encoded.starts.iter().copied();
        let ends = starts.clone().skip(1).chain([rows.len()]);
        let texts = starts.zip(ends);
        texts
            .map(|(start, end)| mean_of_length_1(&rows[start..end]))
            .collect()
    }

    /// The probabilities of all tokens at each place of a text that holds `mask`; nothing if the model does not
    /// predict hidden tokens.
    pub fn fill(&self, text: &Framed, mask: u32) -> Option<Vec<Vec<f32>>> {
        let places = (0..).zip(&text.tokens).filter(|(_, token)| **token == mask);
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        if places.is_empty() {
            return self.masked.is_some().then(Vec::new);
        }
        let hidden = self.encode(std::slice::from_ref(text)).hidden;
        let logits = self.masked_logits(vectors_at(hidden, &places), Precision::F32)?;
        Some(probabilities(logits.flatten(0, 1)))
    }

    /// The probability of each class for each text; nothing if the model has no classifier.
    pub fn classify(&self, texts: &[Framed]) -> Option<Vec<Vec<f32>>> {
        let (logits, _) = self.classes(texts)?;
        Some(probabilities(logits))
    }

    /// The logits of the classes of texts, `[texts, classes]`, and what they were computed from; nothing if the model has no
    /// classifier.
    pub fn classes(&self, texts: &[Framed]) -> Option<(Tensor<2>, Encoded)> {
        let encoded = self.encode(texts);
        let first = vectors_at(encoded.hidden.clone(), &encoded.starts); // [1, texts, d_model]
        let first = first.swap_dims(0, 1);
        let logits = self.class_logits(first, &mut Pass::evaluation())?;
        Some((logits, encoded))
    }
}

fn mean_of_length_1(rows: &[&[f32]]) -> Vec<f32> {
    let mut sum = vec![0.0; rows[0].len()];
    for row in rows {
        sum.iter_mut()
            .zip(*row)
            .for_each(|(sum, value)| *sum += value);
    }
    let norm = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
    sum.iter().map(|value| value / norm.max(1e-12)).collect()
}

/// Of logits `[rows, classes]`.
fn probabilities(logits: Tensor<2>) -> Vec<Vec<f32>> {
    let classes = logits.dims()[1];
    let values = numbers(softmax(logits, 1));
    values.chunks(classes).map(<[f32]>::to_vec).collect()
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

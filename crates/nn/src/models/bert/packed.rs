//! BERT for inference: texts lie one behind the other, so that no padding is computed, and tokens that are pruned
//! ([`crate::attention::pruning`]) are not computed any more from the middle of that layer on.
//!
//! On devices other than the CPU the padded pass is taken, with masks in the place of tokens that left: the results are the
//! same. Neighbor: [`super::text`] reads classes and vectors from what this returns.

use burn::tensor::{Int, Tensor, TensorData};

use super::{
    Bert, BertEmbeddings,
    text::{Framed, Texts},
    vectors_at,
};
use crate::{ops::on_cpu, pass::Pass};

/// Some texts behind the last layer.
#[derive(Debug, Clone)]
pub struct Encoded {
    /// The vectors of the tokens that are left, text behind text: `[1, tokens, d_model]`.
    pub hidden: Tensor<3>,
    /// Behind each layer, for each text, the places of the tokens that are left. Of a model without pruning these are always
    /// all of them.
    pub layers: Vec<Vec<Vec<usize>>>,
    /// Where each text begins among the vectors.
    pub starts: Vec<usize>,
}

impl Bert {
    /// Reads texts, none of which is empty.
    pub fn encode(&self, texts: &[Framed]) -> Encoded {
        let all = texts.iter().map(|text| (0..text.tokens.len()).collect());
        let all: Vec<Vec<usize>> = all.collect();
        let (hidden, layers) = if on_cpu(&self.device()) {
            self.encode_packed(texts, &all)
        } else {
            self.encode_padded(texts, &all)
        };
        let last = layers.last().unwrap_or(&all);
        Encoded {
            starts: starts(last),
            hidden,
            layers,
        }
    }

    fn encode_packed(
        &self,
        texts: &[Framed],
        all: &[Vec<usize>],
    ) -> (Tensor<3>, Vec<Vec<Vec<usize>>>) {
        let device = self.device();
        let pass = &mut Pass::evaluation();
        let row = |ids: &mut dyn Iterator<Item = u32>| -> Tensor<2, Int> {
            let ids: Vec<i64> = ids.map(i64::from).collect();
            let count = ids.len();
            Tensor::from_data(TensorData::new(ids, [1, count]), &device)
        };
        let tokens = row(&mut texts.iter().flat_map(|text| text.tokens.iter().copied()));
        let segments = row(&mut texts.iter().flat_map(|text| text.segments.iter().copied()));
        let places = row(&mut all.iter().flatten().map(|place| *place as u32));
        let BertEmbeddings {
            token,
            segment,
            positions,
            norm,
        } = &self.embeddings;
        let place = positions.weight.val().select(0, places.flatten::<1>(0, 1));
        let sum = token.forward(tokens) + segment.forward(segments) + place.unsqueeze();
        let mut x = norm.forward(sum); // [1, tokens, d_model]
        let mut kept = all.to_vec();
        let mut layers = Vec::with_capacity(self.layers.len());
        let thresholds = self.pruning.as_ref().map(|pruning| pruning.values());
        for (number, layer) in self.layers.iter().enumerate() {
            let lengths: Vec<usize> = kept.iter().map(Vec::len).collect();
            let attention = &layer.self_attention;
            let (attended, received) =
                attention.forward_packed(x.clone(), &lengths, pass.precision);
            x = layer.add_attended(x, attended, pass);
            if let Some(thresholds) = &thresholds {
                let stays = prune(&mut kept, &received, thresholds[number]);
                if stays.len() < received.len() {
                    x = vectors_at(x, &stays);
                }
            }
            x = layer.feed(x, pass);
            layers.push(kept.clone());
        }
        (x, layers)
    }

    fn encode_padded(
        &self,
        texts: &[Framed],
        all: &[Vec<usize>],
    ) -> (Tensor<3>, Vec<Vec<Vec<usize>>>) {
        let texts = Texts::collect(texts);
        let [tokens, segments] = texts.tensors(self);
        let output = self.forward(tokens, segments, &mut Pass::evaluation());
        let places = |there: &Tensor<2>| -> Vec<Vec<usize>> {
            let there: Vec<f32> = there.to_data().iter::<f32>().collect();
            let rows = there.chunks(texts.len);
            let place = |row: &[f32]| (0..row.len()).filter(|i| row[*i] > 0.0).collect();
            rows.map(place).collect()
        };
        let mut layers: Vec<_> = output.stays.iter().map(places).collect();
        if layers.is_empty() {
            layers = vec![all.to_vec(); self.layers.len()];
        }
        let last = layers.last().map_or(all, Vec::as_slice);
        let of_row = |(row, places): (usize, &Vec<usize>)| -> Vec<usize> {
            places.iter().map(|place| row * texts.len + place).collect()
        };
        let rows: Vec<usize> = last.iter().enumerate().flat_map(of_row).collect();
        (vectors_at(output.hidden, &rows), layers)
    }
}

impl Encoded {
    /// The share of the tokens of each text that is kept, the mean over the layers; summed over the texts.
    pub fn kept_shares(&self, texts: &[Framed]) -> f64 {
        let share = |(text, framed): (usize, &Framed)| {
            let kept = self
                .layers
                .iter()
                .map(|layer| layer[text].len())
                .sum::<usize>();
            kept as f64 / (self.layers.len() * framed.tokens.len()).max(1) as f64
        };
        texts.iter().enumerate().map(share).sum()
    }
}

impl Bert {
    /// Multiplications of attention and feed-forward networks for texts: those that were computed, and those without
    /// pruning.
    pub fn work(&self, texts: &[Framed], encoded: &Encoded) -> [f64; 2] {
        let Some(first) = self.layers.first() else {
            return [0.0; 2];
        };
        let [d_model, d_ff] = first.feed_forward.inner.weight.dims();
        let layer = |before: usize, behind: usize| {
            let projections = 4 * before * d_model * d_model;
            let weights = 2 * before * before * d_model;
            (projections + weights + 2 * behind * d_model * d_ff) as f64
        };
        let mut sums = [0.0; 2];
        for (text, framed) in texts.iter().enumerate() {
            let all = framed.tokens.len();
            let mut before = all;
            for kept in &encoded.layers {
                sums[0] += layer(before, kept[text].len());
                sums[1] += layer(all, all);
                before = kept[text].len();
            }
        }
        sums
    }
}

/// Takes the places of tokens out that received too little attention, but never a text's first; returns the rows that are
/// left.
fn prune(kept: &mut [Vec<usize>], received: &[f32], threshold: f32) -> Vec<usize> {
    let mut stays = Vec::with_capacity(received.len());
    let mut row = 0;
    for places in kept {
        let start = row;
        places.retain(|_| {
            let keep = row == start || received[row] >= threshold;
            stays.extend(keep.then_some(row));
            row += 1;
            keep
        });
    }
    stays
}

fn starts(texts: &[Vec<usize>]) -> Vec<usize> {
    let ends = texts.iter().scan(0, |end, places| {
        let start = *end;
        *end += places.len();
        Some(start)
    });
    ends.collect()
}

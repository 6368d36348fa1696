//! Vocabulary transfer: the token vectors of a new vocabulary, made of those of another one (Gee et al. 2022).
//!
//! A token that both have keeps its vector. Any other begins with the mean of the vectors of the pieces that the old
//! tokenizer cuts it into, so that a trained model goes on translating with subwords that fit other text better.
//! Neighbor: [`super::translation`], where a model starts from another (`training.start_vocabulary`).

use std::collections::BTreeMap;

use attentive_model::{
    directory::Tokenizers,
    tensors::{Role, TensorSpec},
};
use attentive_text::tokenizer::Tokenizer;

/// For each token of the new vocabularies, the tokens of the old ones that it is made of.
pub(super) struct VocabularyTransfer {
    src: Vec<Vec<u32>>,
    tgt: Vec<Vec<u32>>,
}

impl VocabularyTransfer {
    pub(super) fn new(old: &Tokenizers, new: &Tokenizers) -> Self {
        let parts = |old: &Tokenizer, new: &Tokenizer| {
            let tokens = 0..new.vocab_size() as u32;
            tokens.map(|id| old.ids_of_token(new, id)).collect()
        };
        Self {
            src: parts(&old.src, &new.src),
            tgt: parts(&old.tgt, &new.tgt),
        }
    }

    /// Replaces the values of all tensors that have a row, a column or a number for each token.
    pub(super) fn apply(&self, tensors: &[TensorSpec], values: &mut BTreeMap<String, Vec<f32>>) {
        for TensorSpec { name, shape, role } in tensors {
            // How many numbers stand together, in a stretch for each token.
            let width = match role {
                Role::Embedding => shape[1],
                Role::Projection => 1,
                Role::Bias if name.ends_with("projection_bias") => 1,
                _ => continue,
            };
            let stretches = if *role == Role::Projection {
                shape[0]
            } else {
                1
            };
            let parts = if name.ends_with("source.weight") {
                &self.src
            } else {
                &self.tgt
            };
            let old = values.get_mut(name).expect("a name of the schema");
            let new = old.chunks_exact(old.len() / stretches);
            *old = new
                .flat_map(|stretch| means(stretch, parts, width))
                .collect();
        }
    }
}

/// For each token the mean of the rows of `width` numbers that it is made of.
fn means(rows: &[f32], parts: &[Vec<u32>], width: usize) -> Vec<f32> {
    let mut means = vec![0.0; parts.len() * width];
    for (mean, parts) in means.chunks_exact_mut(width).zip(parts) {
        for &part in parts {
            let row = &rows[part as usize * width..][..width];
            let share = 1.0 / parts.len() as f32;
            mean.iter_mut()
                .zip(row)
                .for_each(|(mean, value)| *mean += share * value);
        }
    }
    means
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_means_of_what_they_are_made_of_in_rows_columns_and_biases() {
        // Three old tokens; the new vocabulary has the last one, and one made of the first two.
        let parts = vec![vec![2], vec![0, 1]];
        let transfer = VocabularyTransfer {
            src: vec![vec![1], vec![1]],
            tgt: parts,
        };
        let tensors = [
            ("embeddings.source.weight", vec![2, 2], Role::Embedding),
            ("embeddings.target.weight", vec![2, 2], Role::Embedding),
            ("embeddings.projection", vec![2, 2], Role::Projection),
            ("embeddings.projection_bias", vec![2], Role::Bias),
            (
                "encoder.layers.0.feed_forward.inner.bias",
                vec![3],
                Role::Bias,
            ),
        ]
        .map(|(name, shape, role)| TensorSpec {
            name: name.to_owned(),
            shape,
            role,
        });
        let table = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let mut values = BTreeMap::from(tensors.clone().map(|tensor| (tensor.name, table.clone())));
        values.insert("embeddings.projection_bias".to_owned(), vec![1.0, 2.0, 3.0]);
        transfer.apply(&tensors, &mut values);
        let expected: [&[f32]; 5] = [
            &[3.0, 4.0, 3.0, 4.0],
            &[5.0, 6.0, 2.0, 3.0],
            &[3.0, 1.5, 6.0, 4.5],
            &[3.0, 1.5],
            &table,
        ];
        for (tensor, expected) in tensors.iter().zip(expected) {
            assert_eq!(values[&tensor.name], expected, "{}", tensor.name);
        }
    }
}

//! The key-value cache: what a decoder layer need not compute again at the next step.
//!
//! A cache is a value that the caller owns and passes in; no layer remembers anything.
//! Neighbors: [`super::multi_head`] reads and extends it, the search rearranges its rows.

use burn::tensor::{Int, Tensor};

/// Projected keys and values of one attention layer; heads lie side by side in the last axis.
#[derive(Debug, Clone)]
pub struct KeyValues {
    /// `[rows, key_len, kv_heads * head_dim]`
    pub key: Tensor<3>,
    /// `[rows, key_len, kv_heads * head_dim]`
    pub value: Tensor<3>,
}

impl KeyValues {
    /// Row `i` of the result is row `rows[i]` of this.
    pub fn select(&self, rows: Tensor<1, Int>) -> Self {
        Self {
            key: self.key.clone().select(0, rows.clone()),
            value: self.value.clone().select(0, rows),
        }
    }
}

/// The keys and values of a decoder layer's own past: grows by the new positions at each step.
#[derive(Debug, Clone, Default)]
pub struct SelfCache {
    past: Option<KeyValues>,
}

impl SelfCache {
    // ANCHOR: extend
    /// Appends the new positions and returns the whole past including them.
    pub fn extend(&mut self, new: KeyValues) -> KeyValues {
        let all = match self.past.take() {
            None => new,
            Some(past) => KeyValues {
                key: Tensor::cat(vec![past.key, new.key], 1),
                value: Tensor::cat(vec![past.value, new.value], 1),
            },
        };
        self.past = Some(all.clone());
        all
    }
    // ANCHOR_END: extend

    /// Positions held.
    pub fn len(&self) -> usize {
        self.past.as_ref().map_or(0, |past| past.key.dims()[1])
    }

    /// True before the first step.
    pub fn is_empty(&self) -> bool {
        self.past.is_none()
    }

    /// Row `i` becomes what row `rows[i]` was.
    pub fn reorder(&mut self, rows: Tensor<1, Int>) {
        if let Some(past) = &self.past {
            self.past = Some(past.select(rows));
        }
    }
}

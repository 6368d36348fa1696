//! Which gradients travel together, and which process sums which part of them.
//!
//! A bucket holds whole tensors, in about the order in which the backward pass finds their gradients: the last
//! layers first. It is sent as soon as all of them are there, so buckets are small enough that the first ones travel
//! while the rest is computed, and large enough that the latency of a message does not matter. Every process owns a
//! part of each bucket: it sums that part for all.

use std::{collections::HashMap, ops::Range};

use attentive_model::tensors::{Role, TensorSpec};

use crate::recipe::Sharding;

/// Numbers in a bucket, at least, unless it is the last.
const BUCKET: usize = 1 << 20;

/// All buckets of a model.
#[derive(Debug, Clone)]
pub struct Buckets {
    /// In the order in which they are sent.
    pub buckets: Vec<Bucket>,
    places: HashMap<String, Place>,
}

/// Tensors whose gradients travel together.
#[derive(Debug, Clone)]
pub struct Bucket {
    /// The names of the tensors and where they lie in the bucket.
    pub tensors: Vec<(String, Range<usize>)>,
    /// What each process owns of it, one range after the other.
    pub parts: Vec<Range<usize>>,
}

/// Where the gradient of a tensor lies.
#[derive(Debug, Clone)]
pub struct Place {
    /// The bucket.
    pub bucket: usize,
    /// In the bucket.
    pub range: Range<usize>,
    /// The process that has the optimizer's state of the tensor, if each is kept by one only.
    pub owner: Option<usize>,
}

impl Bucket {
    /// Numbers in all.
    pub fn len(&self) -> usize {
        self.parts.last().map_or(0, |part| part.end)
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Buckets {
    /// The buckets of a model with these tensors for so many processes.
    pub fn new(tensors: &[TensorSpec], size: usize, sharding: Sharding) -> Self {
        let owners = match sharding {
            Sharding::None => HashMap::new(),
            Sharding::Optimizer => owners(tensors, size),
        };
        let mut groups: Vec<Vec<&TensorSpec>> = vec![Vec::new()];
        let mut filled = 0;
        for tensor in in_order(tensors) {
            if filled >= BUCKET {
                groups.push(Vec::new());
                filled = 0;
            }
            filled += tensor.len();
            groups.last_mut().expect("there is one").push(tensor);
        }
        let mut places = HashMap::new();
        let mut buckets = Vec::new();
        for mut group in groups {
            let owner = |tensor: &&TensorSpec| owners.get(tensor.name.as_str()).copied();
            // Tensors of one owner lie side by side.
            group.sort_by_key(owner);
            let mut bucket = Bucket {
                tensors: Vec::new(),
                parts: vec![0..0; size],
            };
            let mut end = 0;
            for tensor in group {
                let range = end..end + tensor.len();
                end = range.end;
                if let Some(owner) = owner(&tensor) {
                    bucket.parts[owner].end = end;
                }
                let place = Place {
                    bucket: buckets.len(),
                    range: range.clone(),
                    owner: owner(&tensor),
                };
                places.insert(tensor.name.clone(), place);
                bucket.tensors.push((tensor.name.clone(), range));
            }
            let mut start = 0;
            for (rank, part) in bucket.parts.iter_mut().enumerate() {
                let until = match sharding {
                    Sharding::None => end * (rank + 1) / size,
                    Sharding::Optimizer => part.end.max(start),
                };
                *part = start..until;
                start = until;
            }
            buckets.push(bucket);
        }
        Self { buckets, places }
    }

    /// Where the gradient of a tensor lies.
    pub fn place(&self, name: &str) -> Option<&Place> {
        self.places.get(name)
    }
}

/// The tensors in about the order in which the backward pass finds their gradients: from the last layer to the
/// first, and those that are read at both ends, the embeddings, at the very end.
fn in_order(tensors: &[TensorSpec]) -> impl Iterator<Item = &TensorSpec> {
    let late = |tensor: &&TensorSpec| matches!(tensor.role, Role::Embedding | Role::Positions);
    let early = tensors.iter().rev().filter(move |tensor| !late(tensor));
    early.chain(tensors.iter().rev().filter(late))
}

/// Which process has the optimizer's state of which tensor: whole tensors, because Muon turns whole matrices and the
/// norm of a tensor is summed in one order; the largest first, each to the process that has least.
fn owners(tensors: &[TensorSpec], size: usize) -> HashMap<&str, usize> {
    let mut largest: Vec<&TensorSpec> = tensors.iter().collect();
    largest.sort_by_key(|tensor| std::cmp::Reverse(tensor.len()));
    let mut held = vec![0; size];
    let mut owners = HashMap::new();
    for tensor in largest {
        let least = (0..size).min_by_key(|rank| held[*rank]).unwrap_or(0);
        held[least] += tensor.len();
        owners.insert(tensor.name.as_str(), least);
    }
    owners
}

#[cfg(test)]
mod tests {
    use attentive_model::config::{ModelConfig, Preset};

    use super::*;

    #[test]
    fn every_number_has_one_place_and_one_owner() {
        let tensors = Preset::Small.config(8000, 8000).tensors();
        let total: usize = tensors.iter().map(TensorSpec::len).sum();
        for sharding in [Sharding::None, Sharding::Optimizer] {
            for size in [1, 2, 3, 8] {
                let all = Buckets::new(&tensors, size, sharding);
                assert!(all.buckets.len() > 3);
                assert_eq!(all.buckets.iter().map(Bucket::len).sum::<usize>(), total);
                let mut held = vec![0; size];
                for bucket in &all.buckets {
                    let mut end = 0;
                    for (rank, part) in bucket.parts.iter().enumerate() {
                        assert_eq!(part.start, end);
                        held[rank] += part.len();
                        end = part.end;
                    }
                }
                let (least, most) = (held.iter().min().unwrap(), held.iter().max().unwrap());
                assert!(most - least <= total / 4, "{held:?}");
                for tensor in &tensors {
                    let place = all.place(&tensor.name).unwrap();
                    assert_eq!(place.range.len(), tensor.len());
                    if let Some(owner) = place.owner {
                        let part = &all.buckets[place.bucket].parts[owner];
                        assert!(part.start <= place.range.start && place.range.end <= part.end);
                    }
                }
            }
        }
    }
}

//! Random keys as values: no hidden generator.
//!
//! A key is a hash of (seed, batch number, how many keys came before it), and what is drawn with a key is a
//! hash of the key and an element's index. So a run can stop anywhere and continue with the same
//! numbers, on any number of threads. Neighbors: [`crate::pass::Pass`] carries the keys of dropout,
//! [`crate::init`] draws the weights of a new model.

/// A sequence of keys that depends on a seed and a batch number only.
#[derive(Debug, Clone)]
pub struct Keys {
    base: u64,
    drawn: u64,
}

impl Keys {
    /// The keys of batch number `batch` of a run with this seed.
    pub fn new(seed: u64, batch: u64) -> Self {
        Self {
            base: mix(mix(seed) ^ batch),
            drawn: 0,
        }
    }

    /// The next key.
    pub fn next_key(&mut self) -> u64 {
        self.drawn += 1;
        mix(self.base ^ self.drawn)
    }
}

/// One step of SplitMix64 (Steele, Lea, Flood 2014): spreads every input bit over all output bits.
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_batch_draws_the_same_keys_and_another_batch_others() {
        let keys = |batch| {
            let mut keys = Keys::new(7, batch);
            [keys.next_key(), keys.next_key()]
        };
        assert_eq!(keys(3), keys(3));
        assert_ne!(keys(3), keys(4));
        assert_ne!(keys(3)[0], keys(3)[1]);
    }
}

//! Where dropout's randomness comes from: a value, passed down, and no hidden generator.
//!
//! Every element's fate is a hash of (seed, batch number, dropout site, element index). A run can
//! therefore stop and continue anywhere and still draw the same noise, on any number of threads.
//! Neighbours: the trainer makes one [`Noise`] per batch; [`crate::ops::dropout`] draws from it.

/// The noise of one forward pass: on with a seed while training, off otherwise.
#[derive(Debug, Clone)]
pub struct Noise {
    key: Option<u64>,
    site: u64,
}

impl Noise {
    /// No noise: evaluation and translation.
    pub fn off() -> Self {
        Self { key: None, site: 0 }
    }

    /// The noise of batch number `batch` of a run with this seed.
    pub fn for_batch(seed: u64, batch: u64) -> Self {
        Self {
            key: Some(mix(mix(seed) ^ batch)),
            site: 0,
        }
    }

    /// The key of the next dropout site, or nothing when noise is off.
    pub fn next_key(&mut self) -> Option<u64> {
        let key = self.key?;
        self.site += 1;
        Some(mix(key ^ self.site))
    }
}

/// SplitMix64's finaliser: a bijection that spreads every input bit over all output bits.
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
            let mut noise = Noise::for_batch(7, batch);
            [noise.next_key(), noise.next_key()]
        };
        assert_eq!(keys(3), keys(3));
        assert_ne!(keys(3), keys(4));
        assert_ne!(keys(3)[0], keys(3)[1]);
        assert_eq!(Noise::off().next_key(), None);
    }
}

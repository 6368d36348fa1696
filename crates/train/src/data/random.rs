//! A small random generator whose numbers never change.
//!
//! A continued run must be bitwise equal to an uninterrupted one, on any machine and with any later
//! version of this program. Library generators may change their algorithm between versions, so what
//! shuffles the batches ([`crate::data::batches`]) and writes the synthetic tasks ([`crate::data::synthetic`])
//! is SplitMix64 (Steele, Lea, Flood 2014), over the finalizer that dropout draws with.

use attentive_nn::random::mix;

/// SplitMix64: 64 bits of state, one number per step.
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator that depends on every part of the key, such as `[seed, epoch]`, and on its order.
    pub fn new(key: &[u64]) -> Self {
        let mut generator = SplitMix64 { state: 0 };
        for part in key {
            generator.state ^= *part;
            generator.state = generator.next_u64();
        }
        generator
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let bits = mix(self.state);
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        bits
    }

    /// A number from 0 up to, but without, `bound`; every one is equally likely.
    ///
    /// # Panics
    /// If `bound` is 0: there is no such number.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "no number is below 0");
        let bound = bound as u64;
        // Numbers in the last, incomplete run of `bound` would favor small remainders: draw again.
        let limit = u64::MAX - u64::MAX % bound;
        loop {
            let bits = self.next_u64();
            if bits < limit {
                return (bits % bound) as usize;
            }
        }
    }

    /// Yes, with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        // The upper 53 bits are all that a float between 0 and 1 can hold.
        let uniform = (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        uniform < probability
    }

    /// Puts the items into a random order (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_published_algorithm() {
        // The first outputs for state 1234567, as in the reference implementation's test vector.
        let mut generator = SplitMix64 { state: 1_234_567 };
        let drawn: Vec<u64> = (0..5).map(|_| generator.next_u64()).collect();
        assert_eq!(
            drawn,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ]
        );
    }

    #[test]
    fn every_part_of_the_key_and_its_order_count() {
        let first = |key: &[u64]| SplitMix64::new(key).next_u64();
        let all = [
            first(&[1, 2]),
            first(&[2, 1]),
            first(&[1]),
            first(&[1, 3]),
            first(&[0, 0]),
            first(&[0]),
        ];
        for (i, a) in all.iter().enumerate() {
            for b in &all[i + 1..] {
                assert_ne!(a, b);
            }
        }
    }

    #[test]
    fn numbers_below_a_bound_are_spread_evenly() {
        let mut generator = SplitMix64::new(&[7]);
        let mut counts = [0usize; 10];
        for _ in 0..100_000 {
            counts[generator.below(10)] += 1;
        }
        assert!(
            counts.iter().all(|&c| (9_500..10_500).contains(&c)),
            "{counts:?}"
        );
    }

    #[test]
    fn shuffling_keeps_every_item() {
        let mut items: Vec<usize> = (0..100).collect();
        SplitMix64::new(&[3]).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}

//! numpy's random numbers and sums, digit for digit, because published intervals and p-values were drawn
//! with them.
//!
//! `numpy.random.default_rng(seed)` is PCG64 (O'Neill, 2014: XSL-RR with 128 bits of state) seeded through
//! `SeedSequence`; `choice` with replacement draws by Lemire's bounded integers (2019); `integers(2,
//! dtype=bool)` takes the bits of 32-bit words from the lowest up. `numpy.sum` adds pairwise in blocks.

/// The generator that `numpy.random.default_rng` makes.
#[derive(Debug, Clone)]
pub(crate) struct Generator {
    state: u128,
    increment: u128,
    /// The upper half of the last 64-bit number, when only its lower half was used.
    spare: Option<u32>,
}

const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        let [a, b, c, d] = seed_words(seed);
        let join = |high: u64, low: u64| (u128::from(high) << 64) | u128::from(low);
        let mut generator = Self {
            state: 0,
            increment: (join(c, d) << 1) | 1,
            spare: None,
        };
        generator.advance();
        generator.state = generator.state.wrapping_add(join(a, b));
        generator.advance();
        generator
    }

    /// A number below `bound`, as `choice(bound, replace=True)` draws it.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        // With one choice numpy draws nothing.
        if bound <= 1 {
            return 0;
        }
        let mut product = u64::from(self.next_u32()) * u64::from(bound);
        if (product as u32) < bound {
            // Without this rejection some numbers would come up more often than others.
            let threshold = bound.wrapping_neg() % bound;
            while (product as u32) < threshold {
                product = u64::from(self.next_u32()) * u64::from(bound);
            }
        }
        (product >> 32) as u32
    }

    /// The next 32 random bits; halves of 64-bit numbers, the lower first.
    pub(crate) fn next_u32(&mut self) -> u32 {
        if let Some(upper) = self.spare.take() {
            return upper;
        }
        let number = self.next_u64();
        self.spare = Some((number >> 32) as u32);
        number as u32
    }

    fn next_u64(&mut self) -> u64 {
        self.advance();
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        folded.rotate_right((self.state >> 122) as u32)
    }

    fn advance(&mut self) {
        self.state = self
            .state
            .wrapping_mul(MULTIPLIER)
            .wrapping_add(self.increment);
    }
}

/// `SeedSequence(seed).generate_state(4, uint64)`: spreads a small seed over the whole state.
fn seed_words(seed: u64) -> [u64; 4] {
    let mut hash = 0x43b0_d7e5_u32;
    let mut hashmix = |value: u32| {
        let mixed = value ^ hash;
        hash = hash.wrapping_mul(0x931e_8875);
        let mixed = mixed.wrapping_mul(hash);
        mixed ^ (mixed >> 16)
    };
    let mix = |x: u32, y: u32| {
        let mixed = x
            .wrapping_mul(0xca01_f9dd)
            .wrapping_sub(y.wrapping_mul(0x4973_f715));
        mixed ^ (mixed >> 16)
    };
    let mut pool = [seed as u32, (seed >> 32) as u32, 0, 0].map(&mut hashmix);
    for source in 0..4 {
        for target in 0..4 {
            if source != target {
                pool[target] = mix(pool[target], hashmix(pool[source]));
            }
        }
    }

    let mut hash = 0x8b51_f9dd_u32;
    let mut word = |index: usize| {
        let mixed = pool[index % 4] ^ hash;
        hash = hash.wrapping_mul(0x58f3_8ded);
        let mixed = mixed.wrapping_mul(hash);
        u64::from(mixed ^ (mixed >> 16))
    };
    std::array::from_fn(|i| word(2 * i) | (word(2 * i + 1) << 32))
}

/// `numpy.mean`, in the precision of the numbers: `round` is applied to every sum.
pub(crate) fn mean(values: &[f64], round: impl Fn(f64) -> f64 + Copy) -> f64 {
    round(pairwise_sum(values, round) / values.len() as f64)
}

/// Sums halves, and in blocks of up to 128 eight interleaved sums.
fn pairwise_sum(values: &[f64], round: impl Fn(f64) -> f64 + Copy) -> f64 {
    let n = values.len();
    if n > 128 {
        let half = n / 2 - (n / 2) % 8;
        let (left, right) = values.split_at(half);
        return round(pairwise_sum(left, round) + pairwise_sum(right, round));
    }
    let blocks = values.chunks_exact(8);
    let rest = blocks.remainder();
    let mut sum = 0.0;
    if n >= 8 {
        let mut lanes = [0.0; 8];
        for block in blocks {
            for (lane, value) in lanes.iter_mut().zip(block) {
                *lane = round(*lane + value);
            }
        }
        let pair = |i: usize| round(lanes[i] + lanes[i + 1]);
        sum = round(round(pair(0) + pair(2)) + round(pair(4) + pair(6)));
    }
    rest.iter().fold(sum, |sum, value| round(sum + value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_those_of_default_rng() {
        // default_rng(12345).choice(3004, 6) and .integers(2**32, dtype=uint32).
        let mut generator = Generator::new(12345);
        let drawn: Vec<u32> = (0..6).map(|_| generator.below(3004)).collect();
        assert_eq!(drawn, [2100, 682, 2369, 951, 613, 2395]);
        let mut generator = Generator::new(1 << 40);
        let words = [generator.next_u32(), generator.next_u32()];
        assert_eq!(words, [3_961_916_801, 1_549_665_317]);
    }

    #[test]
    fn single_precision_means_round_after_every_sum() {
        let values: Vec<f64> = (0..1000).map(|i| f64::from(0.1_f32 * i as f32)).collect();
        let round = |value: f64| f64::from(value as f32);
        assert_eq!(mean(&values, round), 49.950_000_762_939_45);
    }
}

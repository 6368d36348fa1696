//! Sampling: the next token is drawn by its probability, reshaped by temperature, top-k and top-p.
//!
//! Every sample has its own random numbers, seeded by the seed, the source's tokens and the number
//! of the sample, so that a sentence's samples depend neither on its batch nor on its place in a
//! file. (The same sentence twice therefore gives the same samples twice.)

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::options::Sampling;
use super::{Next, at_most_zero};

/// Draws the tokens of one sample.
#[derive(Debug)]
pub struct Sampler {
    sampling: Sampling,
    generator: StdRng,
}

impl Sampler {
    /// The sampler of this source's sample of this number.
    pub fn new(sampling: &Sampling, source: &[u32], sample: usize) -> Self {
        Self {
            sampling: sampling.clone(),
            generator: generator(sampling, source, sample),
        }
    }

    /// A token and its log-probability under the model (not the reshaped distribution), or nothing when no
    /// token is possible.
    pub fn draw(&mut self, next: &Next<'_>, choices: &mut Vec<Choice>) -> Option<(u32, f64)> {
        choices.clear();
        choices.extend(
            next.iter()
                .map(|(token, log_prob)| Choice {
                    token,
                    log_prob: at_most_zero(log_prob),
                    weight: 0.0,
                })
                .filter(|choice| choice.log_prob > f64::NEG_INFINITY), // NaN fails this too
        );
        // The only possible token, such as one of a prefix, needs no random number.
        if let [only] = &choices[..] {
            return Some((only.token, only.log_prob));
        }
        if let Some(top_k) = self.sampling.top_k {
            bring_best_to_front(choices, top_k);
            choices.truncate(top_k);
        }
        // Relative to the largest, so that no temperature can underflow all weights to zero.
        let largest = choices
            .iter()
            .map(|choice| choice.log_prob)
            .fold(f64::NEG_INFINITY, f64::max);
        for choice in choices.iter_mut() {
            choice.weight = ((choice.log_prob - largest) / self.sampling.temperature).exp();
        }
        if let Some(top_p) = self.sampling.top_p {
            keep_nucleus(choices, top_p);
        }

        let total: f64 = choices.iter().map(|choice| choice.weight).sum();
        let mut remaining = self.generator.random::<f64>() * total;
        let drawn = choices.iter().find(|choice| {
            remaining -= choice.weight;
            remaining < 0.0
        });
        // Rounding may leave a crumb behind the last choice.
        drawn
            .or(choices.last())
            .map(|choice| (choice.token, choice.log_prob))
    }
}

/// A token that may be drawn.
#[derive(Debug)]
pub struct Choice {
    token: u32,
    log_prob: f64,
    weight: f64,
}

/// Moves the most probable `count` choices to the front, best first, lower ids before equals.
fn bring_best_to_front(choices: &mut [Choice], count: usize) {
    let best_first = |a: &Choice, b: &Choice| {
        b.log_prob
            .total_cmp(&a.log_prob)
            .then(a.token.cmp(&b.token))
    };
    if count < choices.len() {
        choices.select_nth_unstable_by(count, best_first);
    }
    let count = count.min(choices.len());
    choices[..count].sort_unstable_by(best_first);
}

/// Keeps the fewest most probable choices that hold `top_p` of the weight. They are few as a rule,
/// so ever more choices are sorted until they suffice, and not the whole vocabulary at once.
fn keep_nucleus(choices: &mut Vec<Choice>, top_p: f64) {
    let enough = top_p * choices.iter().map(|choice| choice.weight).sum::<f64>();
    let mut sorted = 32;
    loop {
        bring_best_to_front(choices, sorted);
        let mut weight = 0.0;
        let needed = choices.iter().take(sorted).position(|choice| {
            weight += choice.weight;
            weight >= enough
        });
        if let Some(last) = needed {
            choices.truncate(last + 1);
        }
        if needed.is_some() || sorted >= choices.len() {
            return;
        }
        sorted *= 8;
    }
}

/// The random numbers of one sample (FNV-1a over everything that may influence them).
fn generator(sampling: &Sampling, source: &[u32], sample: usize) -> StdRng {
    let numbers = [sampling.seed, sample as u64]
        .into_iter()
        .chain(source.iter().map(|&token| u64::from(token)));
    let seed = numbers
        .flat_map(u64::to_le_bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    StdRng::seed_from_u64(seed)
}

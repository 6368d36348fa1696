//! One token after another: a text that a GPT continues.
//!
//! The model sees at most `context` tokens. When they are full, the older half of them is forgotten, and the rest is
//! read again from position 0; which tokens the model sees so depends on the length of the text alone
//! ([`first_seen`]), and with the cache or without it the same is written.

use attentive_runtime::search::{Choice, Next, Sampler, Sampling};
use attentive_text::special::{BOS, EOS, PAD, UNK};
use burn::tensor::{Int, Tensor, TensorData};

use super::{Cache, Gpt};
use crate::pass::Pass;

/// Whether keys and values are kept from one token to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// They are; a token costs one position.
    On,
    /// They are not, and every token costs as much as all before it; for tests.
    Off,
}

/// A text and what the model knows of it.
#[derive(Debug)]
pub struct Continuation<'m> {
    model: &'m Gpt,
    tokens: Vec<u32>,
    caching: Caching,
    cache: Cache,
    /// The first token in the cache.
    first_cached: usize,
}

/// The first of `len` tokens that a model with this context sees.
pub fn first_seen(len: usize, context: usize) -> usize {
    let half = (context / 2).max(1);
    len.saturating_sub(context).div_ceil(half) * half
}

impl<'m> Continuation<'m> {
    /// After these tokens, of which there is at least one.
    ///
    /// # Panics
    /// If there is none.
    pub fn new(model: &'m Gpt, tokens: Vec<u32>, caching: Caching) -> Self {
        assert!(!tokens.is_empty(), "a text needs a first token");
        Self {
            model,
            tokens,
            caching,
            cache: Cache::default(),
            first_cached: 0,
        }
    }

    /// The text so far.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Log-probabilities of the next token.
    pub fn log_probs(&mut self) -> Vec<f32> {
        let first = first_seen(self.tokens.len(), self.model.context());
        let cached = self.first_cached + self.cache.len();
        let goes_on = self.caching == Caching::On
            && first == self.first_cached
            && !self.cache.is_empty()
            && cached + 1 == self.tokens.len();
        let new = if goes_on {
            &self.tokens[cached..]
        } else {
            self.cache = Cache::default();
            self.first_cached = first;
            &self.tokens[first..]
        };
        let (len, ids) = (new.len(), new.iter().map(|id| i64::from(*id)));
        let ids = TensorData::new(ids.collect::<Vec<i64>>(), [1, len]);
        let ids = Tensor::<2, Int>::from_data(ids, &self.model.device());
        let pass = &mut Pass::evaluation();
        let output = self.model.forward(ids, Some(&mut self.cache), pass);
        let last = output.hidden.narrow(1, len - 1, 1);
        let log_probs = self.model.log_probs(last);
        log_probs.into_data().iter::<f32>().collect()
    }

    /// Appends a token.
    pub fn push(&mut self, token: u32) {
        self.tokens.push(token);
    }
}

/// Tokens that are never written: `<s>` and padding are no text, and `<unk>` stands for text that nobody knows.
const NEVER: [u32; 3] = [BOS, PAD, UNK];

/// Writes the continuation of a text token by token, until `</s>`, which is not among them, or a limit.
#[derive(Debug)]
pub struct Generator<'m> {
    text: Continuation<'m>,
    /// Draws tokens; without it the most probable one is taken.
    sampler: Option<Sampler>,
    choices: Vec<Choice>,
    left: usize,
}

impl<'m> Generator<'m> {
    /// Continues `tokens`, of which there is at least one, by at most `most` others. Without sampling each is the most
    /// probable one; samples of other numbers are others.
    pub fn new(
        model: &'m Gpt,
        tokens: Vec<u32>,
        most: usize,
        sampling: Option<&Sampling>,
        sample: usize,
    ) -> Self {
        Self {
            sampler: sampling.map(|sampling| Sampler::new(sampling, &tokens, sample)),
            text: Continuation::new(model, tokens, Caching::On),
            choices: Vec::new(),
            left: most,
        }
    }
}

impl Iterator for Generator<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        let mut log_probs = self.text.log_probs();
        for token in NEVER {
            log_probs[token as usize] = f32::NEG_INFINITY;
        }
        let token = match &mut self.sampler {
            Some(sampler) => {
                sampler
                    .draw(&Next::new(&mut log_probs, None), &mut self.choices)?
                    .0
            }
            None => most_probable(&log_probs),
        };
        if token == EOS {
            self.left = 0;
            return None;
        }
        self.text.push(token);
        Some(token)
    }
}

/// The first of the tokens with the highest probability.
pub(super) fn most_probable(log_probs: &[f32]) -> u32 {
    let higher = |best: (u32, f32), next: (u32, f32)| if next.1 > best.1 { next } else { best };
    let tokens = (0..).zip(log_probs.iter().copied());
    tokens.fold((EOS, f32::NEG_INFINITY), higher).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use attentive_model::config::{GptConfig, ModelConfig, PositionKind, Preset};
    use burn::tensor::Device;

    #[test]
    fn the_older_half_is_forgotten_when_the_context_is_full() {
        let seen: Vec<usize> = (1..15).map(|len| len - first_seen(len, 6)).collect();
        assert_eq!(seen, [1, 2, 3, 4, 5, 6, 4, 5, 6, 4, 5, 6, 4, 5]);
        for context in 1..9 {
            for len in 1..40 {
                let seen = len - first_seen(len, context);
                assert!(seen >= 1 && seen <= context, "{seen} of {len}, {context}");
            }
        }
    }

    #[test]
    fn cached_generation_equals_uncached() {
        for positions in [PositionKind::Learned, PositionKind::Sinusoidal] {
            let config = GptConfig {
                d_model: 16,
                d_ff: 32,
                layers: 2,
                heads: 4,
                kv_heads: 2,
                context: 6,
                positions,
                ..GptConfig::from_preset(Preset::Tiny).with_vocabularies(0, 11)
            };
            let model = Gpt::new(&config, 3, &Device::flex());
            // As spread as those of a trained model.
            let model = crate::parameters::replace(model, |_, values| values.mul_scalar(8.0));
            let mut texts = [Caching::On, Caching::Off]
                .map(|caching| Continuation::new(&model, vec![5, 7], caching));
            // Three times as long as the context.
            for step in 0..18 {
                let [cached, uncached] = texts.each_mut().map(Continuation::log_probs);
                for (cached, uncached) in cached.iter().zip(&uncached) {
                    assert!(
                        (cached - uncached).abs() < 1e-4,
                        "{step}: {cached}, {uncached}"
                    );
                }
                let best = (0..cached.len()).max_by(|a, b| cached[*a].total_cmp(&cached[*b]));
                let best = best.expect("a vocabulary") as u32;
                texts.iter_mut().for_each(|text| text.push(best));
            }
            assert_eq!(texts[0].tokens(), texts[1].tokens());
        }
    }
    #[test]
    fn a_seed_decides_what_is_drawn_and_nothing_unwritable_is() {
        let config = GptConfig {
            d_model: 16,
            d_ff: 32,
            layers: 1,
            context: 8,
            ..GptConfig::from_preset(Preset::Tiny).with_vocabularies(0, 9)
        };
        let model = Gpt::new(&config, 3, &Device::flex());
        let write = |sampling: Option<Sampling>, sample| -> Vec<u32> {
            Generator::new(&model, vec![5], 40, sampling.as_ref(), sample).collect()
        };
        let seeded = |seed| {
            Some(Sampling {
                seed,
                ..Sampling::default()
            })
        };
        assert_eq!(write(seeded(1), 0), write(seeded(1), 0));
        assert_ne!(write(seeded(1), 0), write(seeded(2), 0));
        assert_ne!(write(seeded(1), 0), write(seeded(1), 1));
        assert_eq!(write(None, 0), write(None, 1));
        let only_the_best = Sampling {
            top_k: Some(1),
            ..Sampling::default()
        };
        assert_eq!(write(Some(only_the_best), 0), write(None, 0));
        let drawn: Vec<u32> = (0..20)
            .flat_map(|sample| write(seeded(3), sample))
            .collect();
        assert!(drawn.iter().all(|token| *token > UNK), "{drawn:?}");
    }
}

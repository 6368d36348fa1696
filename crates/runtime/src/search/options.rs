//! What search can be told to do, and whether it makes sense.

use attentive_model::generation::{AtLimit, BeamRule, EarlyEnd};
use serde::{Deserialize, Serialize};

/// How to search. The default is a beam of 4, as in the paper (§6.1). Paper: length penalty 0.6, in a
/// formula that adds 5 to the length. Here: 1, because translations are then nearer to the right length,
/// which the models of this project miss by 4% with 0.6 (validation BLEU 52.4 instead of 52.0 on Tatoeba,
/// 42.1 instead of 41.5 on Multi30k).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct SearchOptions {
    /// Greedy, beam or sampling.
    pub method: Method,
    /// Hypotheses returned per request, at most the beam size; with sampling, the number of
    /// independent samples.
    pub n_best: usize,
    /// Which hypotheses a beam search follows, and when it ends; other methods have no use for it.
    pub beam_rule: BeamRule,
    /// Alpha of `score = log_prob / length^alpha`; 0 switches length normalization off.
    pub length_penalty: f64,
    /// The longest target allowed.
    pub max_length: LengthLimit,
    /// What happens to a target that is as long as it may be.
    pub at_limit: AtLimit,
    /// `</s>` is not allowed before this many tokens; the length limit is stronger.
    pub min_length: usize,
    /// What happens to the probability of a `</s>` that is not allowed yet.
    pub early_end: EarlyEnd,
    /// No n-gram of this many tokens may occur twice in the output.
    pub no_repeat_ngram: Option<usize>,
    /// Tokens that are never produced, besides `<s>` and `<blank>`; those of a prefix may be among them.
    pub forbidden: Vec<u32>,
}

/// The way to choose the next token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Always the most probable token.
    Greedy,
    /// Beam search: the best `size` hypotheses are extended side by side.
    Beam {
        /// The beam size.
        size: usize,
    },
    /// A random token by its probability.
    Sample(Sampling),
}

/// How to sample. The default is the model's own distribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Sampling {
    /// Below 1 sharpens the distribution, above 1 flattens it.
    pub temperature: f64,
    /// Only the most probable `top_k` tokens are drawn from.
    pub top_k: Option<usize>,
    /// Nucleus sampling: only the most probable tokens that together reach this probability are drawn
    /// from.
    pub top_p: Option<f64>,
    /// The same seed gives the same sentence the same samples, whatever else is translated.
    pub seed: u64,
}

/// The longest target, `ratio * source length + extra` tokens, rounded up, and at most `cap`.
///
/// Source and target lengths count `</s>`. A target that has not ended by then is cut there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct LengthLimit {
    /// Target tokens per source token.
    pub ratio: f64,
    /// Target tokens on top of that.
    pub extra: usize,
    /// The limit whatever the source length, such as a model's last learned position.
    pub cap: Option<usize>,
}

impl Method {
    /// Beam search with this beam size; with 1 that is greedy search.
    pub fn of_beam(size: usize) -> Self {
        match size {
            1 => Self::Greedy,
            size => Self::Beam { size },
        }
    }
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            method: Method::Beam { size: 4 },
            n_best: 1,
            beam_rule: BeamRule::default(),
            length_penalty: 1.0,
            max_length: LengthLimit::default(),
            at_limit: AtLimit::default(),
            min_length: 0,
            early_end: EarlyEnd::default(),
            no_repeat_ngram: None,
            forbidden: Vec::new(),
        }
    }
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: None,
            top_p: None,
            seed: 0,
        }
    }
}

impl Default for LengthLimit {
    fn default() -> Self {
        Self {
            ratio: 3.0,
            extra: 10,
            cap: None,
        }
    }
}

impl LengthLimit {
    /// The most tokens a target may have for a source of `src_len` tokens; at least 1.
    pub fn tokens(&self, src_len: usize) -> usize {
        self.tokens_after(0, src_len)
    }

    /// As [`LengthLimit::tokens`] with a prefix of so many tokens, which come on top of everything
    /// but the cap.
    pub fn tokens_after(&self, prefix: usize, src_len: usize) -> usize {
        let relative = (self.ratio * src_len as f64).ceil() as usize; // `as` saturates
        relative
            .saturating_add(self.extra)
            .saturating_add(prefix)
            .min(self.cap.unwrap_or(usize::MAX))
            .max(1)
    }
}

impl SearchOptions {
    /// So many hypotheses for each sentence, with this beam size or the one that is usual here. Whoever asks for ten
    /// hypotheses and no beam size means a beam of ten.
    pub fn ask_for(&mut self, beam: Option<usize>, n_best: usize) {
        let usual = match self.method {
            Method::Beam { size } => size,
            _ => 1,
        };
        let size = beam.unwrap_or(usual.max(n_best));
        self.n_best = n_best;
        self.method = if n_best > 1 {
            Method::Beam { size }
        } else {
            Method::of_beam(size)
        };
    }

    /// Greedy search, everything else as by default.
    pub fn greedy() -> Self {
        Self {
            method: Method::Greedy,
            ..Self::default()
        }
    }

    /// Beam search with this beam size, everything else as by default.
    pub fn beam(size: usize) -> Self {
        Self {
            method: Method::Beam { size },
            ..Self::default()
        }
    }

    /// Sampling, everything else as by default.
    pub fn sample(sampling: Sampling) -> Self {
        Self {
            method: Method::Sample(sampling),
            ..Self::default()
        }
    }

    /// Whether such a search can be helped by a [`super::draft::Draft`].
    pub fn takes_drafts(&self) -> bool {
        self.method == Method::Greedy
    }

    /// # Panics
    /// If they do not pass [`SearchOptions::check`].
    pub(super) fn must_be_sound(&self) {
        if let Err(problems) = self.check() {
            panic!(
                "search options must be checked before searching: {}",
                problems.join("; ")
            );
        }
    }

    /// Every problem of these options at once, each a sentence.
    pub fn check(&self) -> Result<(), Vec<String>> {
        let mut problems = Vec::new();
        let mut require = |holds: bool, problem: String| {
            if !holds {
                problems.push(problem);
            }
        };
        let Self {
            n_best,
            length_penalty,
            max_length,
            min_length,
            no_repeat_ngram,
            ..
        } = *self;
        let LengthLimit { ratio, extra, cap } = max_length;

        require(n_best >= 1, "`n_best` (0) must be at least 1".to_string());
        match &self.method {
            Method::Greedy => require(
                n_best <= 1,
                format!(
                    "`n_best` ({n_best}) must be 1 with greedy search; use a beam of {n_best} or more"
                ),
            ),
            Method::Beam { size } if !(1..=LARGEST_BEAM).contains(size) => require(
                false,
                format!("the beam size ({size}) must be at least 1 and at most {LARGEST_BEAM}"),
            ),
            Method::Beam { size } => require(
                n_best <= *size,
                format!("`n_best` ({n_best}) must be at most the beam size ({size})"),
            ),
            Method::Sample(Sampling {
                temperature,
                top_k,
                top_p,
                ..
            }) => {
                require(
                    *temperature > 0.0 && temperature.is_finite(),
                    format!(
                        "`temperature` ({temperature}) must be more than 0; \
                         use greedy search for the most probable token"
                    ),
                );
                require(
                    *top_k != Some(0),
                    "`top_k` (0) must be at least 1".to_string(),
                );
                let top_p = top_p.unwrap_or(1.0);
                require(
                    top_p > 0.0 && top_p <= 1.0,
                    format!("`top_p` ({top_p}) must be more than 0 and at most 1"),
                );
            }
        }
        require(
            length_penalty >= 0.0 && length_penalty.is_finite(),
            format!("`length_penalty` ({length_penalty}) must be 0 or more"),
        );
        require(
            ratio >= 0.0 && ratio.is_finite(),
            format!("`max_length.ratio` ({ratio}) must be 0 or more"),
        );
        require(
            ratio > 0.0 || extra > 0,
            "`max_length.ratio` and `max_length.extra` must not both be 0".to_string(),
        );
        require(
            cap != Some(0),
            "`max_length.cap` (0) must be at least 1".to_string(),
        );
        require(
            cap.is_none_or(|cap| cap == 0 || min_length < cap),
            format!(
                "`min_length` ({min_length}) must be less than `max_length.cap` ({})",
                cap.unwrap_or_default()
            ),
        );
        require(
            no_repeat_ngram != Some(0),
            "`no_repeat_ngram` (0) must be at least 1".to_string(),
        );
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }
}

/// Wider beams are typing errors, and would need memory for as many rows.
const LARGEST_BEAM: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(options: SearchOptions) -> Vec<String> {
        options.check().expect_err("bad options")
    }

    #[test]
    fn default_options_are_sound() {
        assert_eq!(SearchOptions::default().check(), Ok(()));
        assert_eq!(SearchOptions::greedy().check(), Ok(()));
        assert_eq!(SearchOptions::sample(Sampling::default()).check(), Ok(()));
    }

    #[test]
    fn more_hypotheses_than_the_beam_holds_are_refused() {
        let wide = SearchOptions {
            n_best: 5,
            ..SearchOptions::beam(4)
        };
        assert_eq!(
            problems(wide),
            ["`n_best` (5) must be at most the beam size (4)"]
        );
        let greedy = SearchOptions {
            n_best: 2,
            ..SearchOptions::greedy()
        };
        assert_eq!(
            problems(greedy),
            ["`n_best` (2) must be 1 with greedy search; use a beam of 2 or more"]
        );
        let equal = SearchOptions {
            n_best: 4,
            ..SearchOptions::beam(4)
        };
        assert_eq!(equal.check(), Ok(()));
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let found = problems(SearchOptions {
            method: Method::Sample(Sampling {
                temperature: f64::NAN,
                top_k: Some(0),
                top_p: Some(1.5),
                seed: 0,
            }),
            n_best: 0,
            length_penalty: -1.0,
            max_length: LengthLimit {
                ratio: f64::INFINITY,
                extra: 0,
                cap: Some(3),
            },
            min_length: 3,
            no_repeat_ngram: Some(0),
            ..SearchOptions::default()
        });
        let keys = [
            "n_best",
            "temperature",
            "top_k",
            "top_p",
            "length_penalty",
            "ratio",
            "min_length",
            "no_repeat_ngram",
        ];
        assert_eq!(found.len(), keys.len(), "{found:?}");
        for (problem, key) in found.iter().zip(keys) {
            assert!(problem.contains(key), "{problem} should be about {key}");
        }
        assert_eq!(problems(SearchOptions::beam(0)).len(), 1);
        assert_eq!(problems(SearchOptions::beam(usize::MAX)).len(), 1);
        let nothing = LengthLimit {
            ratio: 0.0,
            extra: 0,
            cap: None,
        };
        assert_eq!(
            problems(SearchOptions {
                max_length: nothing,
                ..Default::default()
            })
            .len(),
            1
        );
        let capped = LengthLimit {
            cap: Some(0),
            ..Default::default()
        };
        assert_eq!(
            problems(SearchOptions {
                max_length: capped,
                ..Default::default()
            })
            .len(),
            1
        );
    }

    #[test]
    fn the_length_limit_follows_the_source_up_to_the_cap() {
        let limit = LengthLimit {
            ratio: 1.5,
            extra: 2,
            cap: Some(9),
        };
        assert_eq!(
            [0, 1, 2, 4, 5, 100].map(|len| limit.tokens(len)),
            [2, 4, 5, 8, 9, 9]
        );
        let none = LengthLimit {
            ratio: 0.1,
            extra: 0,
            cap: None,
        };
        assert_eq!(none.tokens(3), 1);
        let endless = LengthLimit {
            ratio: 1e300,
            extra: 5,
            cap: None,
        };
        assert_eq!(endless.tokens(3), usize::MAX);
        assert_eq!(limit.tokens_after(3, 1), 7, "a prefix comes on top");
        assert_eq!(limit.tokens_after(30, 1), 9, "up to the cap");
    }

    #[test]
    fn options_read_from_json_may_omit_everything() {
        let read = |json: &str| serde_json::from_str::<SearchOptions>(json);
        assert_eq!(read("{}").expect("valid"), SearchOptions::default());
        let sampled = read(r#"{"method": {"sample": {"top_k": 5}}, "max_length": {"cap": 7}}"#)
            .expect("valid");
        let sampling = Sampling {
            top_k: Some(5),
            ..Default::default()
        };
        assert_eq!(sampled.method, Method::Sample(sampling));
        assert_eq!(
            sampled.max_length,
            LengthLimit {
                cap: Some(7),
                ..Default::default()
            }
        );
        assert!(read(r#"{"beams": 3}"#).is_err());
    }
}

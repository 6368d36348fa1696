//! The whole way text -> text on one page.
//!
//! A line is cut into tokens (`attentive-text`), lines of similar length are batched, [`search`]
//! asks a model for the most probable target tokens, and these become text again. Whatever
//! implements [`SearchModel`] can be the model: the Transformer of `attentive-nn`, or a fake one.

use attentive_text::special::{EOS, UNK};
use serde::Serialize;

use crate::config::ModelConfig;
use crate::error::{Result, RuntimeError};
use crate::model_dir::Tokenizers;
use crate::search::{Finish, Hypothesis, SearchModel, SearchOptions, search};

/// A model, its tokenizers and how to use them.
#[derive(Debug)]
pub struct Translator<M> {
    model: M,
    tokenizers: Tokenizers,
    options: TranslatorOptions,
}

/// How to translate.
#[derive(Debug, Clone, PartialEq)]
pub struct TranslatorOptions {
    /// How to search.
    pub search: SearchOptions,
    /// Longer sources are cut here, and their [`Translation`] says so; counts `</s>`.
    pub max_source_tokens: usize,
    /// The most source tokens in a batch, padding included; a longer line has a batch to itself.
    pub batch_tokens: usize,
}

/// What became of one line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Translation {
    /// The best translation; empty for an empty line.
    pub text: String,
    /// Its length-normalised log-probability, by which alternatives are ranked.
    pub score: f64,
    /// Its log-probability.
    pub log_prob: f64,
    /// Why it ends where it ends.
    pub finished: Finish,
    /// The next best ones, best first, if `n_best` asked for more than one.
    pub alternatives: Vec<Alternative>,
    /// How many source tokens were cut off and not translated, if any.
    pub truncated: Option<usize>,
    /// How many source tokens the vocabulary does not know, so that the model saw `<unk>`.
    pub unknown: usize,
}

/// Another translation of the same line; the fields mean what they mean in [`Translation`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Alternative {
    pub text: String,
    pub score: f64,
    pub log_prob: f64,
    pub finished: Finish,
}

impl<M: SearchModel> Translator<M> {
    /// Checks that the model, the tokenizers and the options fit together.
    pub fn new(model: M, tokenizers: Tokenizers, options: TranslatorOptions) -> Result<Self> {
        options.check()?;
        let (expected, found) = (model.vocab(), tokenizers.tgt.vocab_size());
        if expected != found {
            return Err(RuntimeError::VocabularyMismatch {
                side: "the target",
                path: None,
                tokenizer: found,
                model: expected,
            });
        }
        Ok(Self {
            model,
            tokenizers,
            options,
        })
    }

    /// One translation for each line, in the same order.
    pub fn translate<S: AsRef<str>>(&self, lines: &[S]) -> Vec<Translation> {
        let mut translations = vec![Translation::empty(); lines.len()];
        self.translate_each(lines, |index, translation| {
            translations[index] = translation
        });
        translations
    }

    /// Hands over each translation with its line's index as soon as its batch is done, once for
    /// every line, but in no particular order: for progress bars and streams.
    pub fn translate_each<S: AsRef<str>>(
        &self,
        lines: &[S],
        mut done: impl FnMut(usize, Translation),
    ) {
        let mut sources = Vec::with_capacity(lines.len());
        for (index, line) in lines.iter().enumerate() {
            match self.source(index, line.as_ref()) {
                Some(source) => sources.push(source),
                None => done(index, Translation::empty()),
            }
        }
        for batch in batches(sources, self.options.batch_tokens) {
            let tokens: Vec<Vec<u32>> = batch.iter().map(|source| source.tokens.clone()).collect();
            let found = search(&self.model, &tokens, &self.options.search);
            for (source, hypotheses) in batch.iter().zip(found) {
                done(source.index, self.translation(source, hypotheses));
            }
        }
    }

    /// The model, for what only it can do (attention weights, for example).
    pub fn model(&self) -> &M {
        &self.model
    }

    /// The tokenizers.
    pub fn tokenizers(&self) -> &Tokenizers {
        &self.tokenizers
    }

    /// Text -> tokens, or nothing if there is nothing to translate.
    fn source(&self, index: usize, line: &str) -> Option<Source> {
        if line.trim().is_empty() {
            return None;
        }
        let mut tokens = self.tokenizers.src.encode(line);
        let cut = tokens
            .len()
            .saturating_sub(self.options.max_source_tokens - 1);
        tokens.truncate(tokens.len() - cut);
        let unknown = tokens.iter().filter(|&&token| token == UNK).count();
        let empty = tokens.is_empty();
        tokens.push(EOS);
        (!empty).then_some(Source {
            index,
            tokens,
            cut,
            unknown,
        })
    }

    /// Tokens -> text.
    fn translation(&self, source: &Source, hypotheses: Vec<Hypothesis>) -> Translation {
        let mut texts = hypotheses.into_iter().map(|hypothesis| Alternative {
            text: self.tokenizers.tgt.decode(&hypothesis.tokens),
            score: hypothesis.score,
            log_prob: hypothesis.log_prob,
            finished: hypothesis.finished,
        });
        let Some(best) = texts.next() else {
            return Translation::empty();
        };
        Translation {
            text: best.text,
            score: best.score,
            log_prob: best.log_prob,
            finished: best.finished,
            alternatives: texts.collect(),
            truncated: (source.cut > 0).then_some(source.cut),
            unknown: source.unknown,
        }
    }
}

/// A line as tokens.
struct Source {
    index: usize,
    tokens: Vec<u32>,
    cut: usize,
    unknown: usize,
}

/// Sources of similar length together, so that padding is rare; the longest first, so that a
/// machine with too little memory says so at once and not after an hour.
fn batches(mut sources: Vec<Source>, batch_tokens: usize) -> Vec<Vec<Source>> {
    sources.sort_by_key(|source| std::cmp::Reverse(source.tokens.len()));
    let mut batches: Vec<Vec<Source>> = Vec::new();
    for source in sources {
        match batches.last_mut() {
            Some(batch) if (batch.len() + 1) * batch[0].tokens.len() <= batch_tokens => {
                batch.push(source);
            }
            _ => batches.push(vec![source]),
        }
    }
    batches
}

impl Translation {
    /// The translation of an empty line.
    fn empty() -> Self {
        Self {
            text: String::new(),
            score: 0.0,
            log_prob: 0.0,
            finished: Finish::EndOfSentence,
            alternatives: Vec::new(),
            truncated: None,
            unknown: 0,
        }
    }
}

impl Default for TranslatorOptions {
    fn default() -> Self {
        Self {
            search: SearchOptions::default(),
            max_source_tokens: 512,
            batch_tokens: 2048,
        }
    }
}

impl TranslatorOptions {
    /// The same options, with lengths that a model with learned positions can reach.
    pub fn within(mut self, config: &ModelConfig) -> Self {
        if let Some(limit) = config.position_limit() {
            self.max_source_tokens = self.max_source_tokens.min(limit);
            let cap = &mut self.search.max_length.cap;
            *cap = Some(cap.map_or(limit, |cap| cap.min(limit)));
        }
        self
    }

    fn check(&self) -> Result<()> {
        let mut problems = self.search.check().err().unwrap_or_default();
        if self.max_source_tokens < 2 {
            let found = self.max_source_tokens;
            problems.push(format!("`max_source_tokens` ({found}) must be at least 2"));
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(RuntimeError::Options(problems))
        }
    }
}

//! How to translate, and whether it makes sense.

use std::borrow::Cow;
use std::sync::Arc;

use attentive_model::{Generation, ModelDir, Shortlist, Tokenizers};
use attentive_text::Glossary;

use crate::error::{Result, RuntimeError};
use crate::search::{Method, Request, SearchOptions};

/// How to translate.
#[derive(Debug, Clone, PartialEq)]
pub struct TranslatorOptions {
    /// What a line is.
    pub lines: Lines,
    /// How to search.
    pub search: SearchOptions,
    /// The code of the language of the source, such as `fr`: by its rules raw text is cut into sentences.
    pub source_language: Option<String>,
    /// The code of the language of the target: terms of a glossary may have its endings.
    pub target_language: Option<String>,
    /// Longer sources are cut into pieces, where clauses end if possible, which are translated one by one; counts `</s>`.
    pub max_source_tokens: usize,
    /// The most sentences in a batch; if none is given, as many as [`TranslatorOptions::batch_rows`] has room for.
    pub batch_sentences: Option<usize>,
    /// The most rows in a batch, where the number of sentences is not given: a sentence has one in greedy search, and as
    /// many as the beam is large.
    pub batch_rows: usize,
    /// The most source tokens in a batch, as if all were as long as its longest; a longer line has a
    /// batch to itself.
    pub batch_tokens: usize,
    /// How many batches are translated at once, by whichever callers; one for each core if none is given.
    pub threads: Option<usize>,
    /// How many lines of a stream are looked at together, to batch those of similar length. With 1
    /// each line is answered before the next is read.
    pub window: usize,
    /// What to do about translations that repeat themselves.
    pub repetition: Repetition,
    /// The target tokens that a sentence's translation may hold, by its source tokens; all if none is given.
    pub shortlist: Option<Arc<Shortlist>>,
    /// Terms that must be translated in a certain way. Sentences that have some are searched for with a beam, and their
    /// translations contain them, where the model places them.
    pub glossary: Option<Arc<Glossary>>,
    /// Whether translations list their tokens.
    pub tokens: bool,
    /// Whether translations have word alignments.
    pub alignments: bool,
}

/// What a line is, and so how it is translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    /// A sentence, as in the files that models learn from: it is translated as it stands.
    Whole,
    /// Raw text: any number of sentences, each translated for itself; web addresses, emoji
    /// and the like are kept as they are; A SENTENCE IN CAPITALS is read in lowercase letters and
    /// answered in capitals; a sentence without a word is copied.
    RawText,
}

/// What to do about translations that repeat the same tokens again and again, where the source does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repetition {
    /// Search again without repeated n-grams; the translation says so.
    Block,
    /// Leave them as they are.
    Allow,
}

/// Parameters of a model whose weights no cache holds.
const LARGE: usize = 30_000_000;

impl Default for TranslatorOptions {
    fn default() -> Self {
        Self {
            lines: Lines::Whole,
            search: SearchOptions::default(),
            source_language: None,
            target_language: None,
            max_source_tokens: 512,
            batch_sentences: None,
            batch_rows: 16,
            batch_tokens: 768,
            threads: None,
            window: 4096,
            repetition: Repetition::Block,
            shortlist: None,
            glossary: None,
            tokens: false,
            alignments: false,
        }
    }
}

impl TranslatorOptions {
    /// The options that are usual for a model: those of its `generation.json` where it has some, its shortlist
    /// among them, and the defaults for the rest.
    pub fn of(directory: &ModelDir) -> Result<Self> {
        let mut options = Self {
            source_language: directory.generation.source_language.clone(),
            target_language: directory.generation.target_language.clone(),
            ..Self::default()
        };
        let Generation {
            beam,
            beam_rule,
            length_penalty,
            max_length_factor,
            max_length,
            min_length,
            early_end,
            at_limit,
            max_source_length,
            ref forbidden,
            ..
        } = directory.generation;
        let search = &mut options.search;
        (search.beam_rule, search.at_limit) = (beam_rule, at_limit);
        (search.min_length, search.early_end) = (min_length, early_end);
        if let Some(size) = beam {
            search.method = Method::of_beam(size);
        }
        if let Some(alpha) = length_penalty {
            search.length_penalty = alpha;
        }
        let limit = &mut search.max_length;
        if let Some(ratio) = max_length_factor {
            (limit.ratio, limit.extra) = (ratio, 0);
        }
        match (max_length, max_length_factor) {
            (Some(most), None) => (limit.ratio, limit.extra) = (0.0, most),
            (most, _) => limit.cap = most,
        }
        options.forbid(forbidden);
        if let Some(tokens) = max_source_length {
            options.max_source_tokens = tokens;
        }
        // The weights of a large model come from far memory at each step: more rows share the reading of them.
        if directory.config.parameter_count() >= LARGE {
            options.batch_rows *= 2;
            options.batch_tokens *= 2;
        }
        options.shortlist = directory.shortlist()?.map(Arc::new);
        Ok(options)
    }

    /// Adds tokens that are never produced.
    pub(super) fn forbid(&mut self, tokens: &[u32]) {
        let forbidden = &mut self.search.forbidden;
        let new = tokens.iter().filter(|token| !forbidden.contains(token));
        forbidden.extend(new.copied().collect::<Vec<_>>());
    }

    /// The same options, with lengths that a model can reach whose positions are limited, as learned ones are.
    pub fn within(mut self, position_limit: Option<usize>) -> Self {
        if let Some(limit) = position_limit {
            self.max_source_tokens = self.max_source_tokens.min(limit);
            let cap = &mut self.search.max_length.cap;
            *cap = Some(cap.map_or(limit, |cap| cap.min(limit)));
        }
        self
    }

    /// The most sentences in a batch. A small model was about as fast with 8 to 16 rows at a time as with 24, and
    /// needs memory for each of them; one of 60 million parameters in f32 was 1.1 times as fast with 32 as with 16.
    pub fn sentences_in_batch(&self) -> usize {
        let rows_each = match &self.search.method {
            Method::Greedy => 1,
            Method::Beam { size } => *size,
            Method::Sample(_) => self.search.n_best,
        };
        self.batch_sentences
            .unwrap_or((self.batch_rows / rows_each).max(1))
    }

    /// Gives a request the candidates that the shortlist has for it, its prefix and terms among them, unless it has
    /// some of its own.
    pub(super) fn add_candidates(&self, request: &mut Cow<'_, Request>) {
        if let Some(shortlist) = &self.shortlist
            && request.candidates.is_none()
        {
            let terms = request.terms.iter().flat_map(|terms| terms.tokens());
            let others: Vec<u32> = request.prefix.iter().copied().chain(terms).collect();
            let candidates = shortlist.candidates(&request.source, &others);
            request.to_mut().candidates = Some(candidates.into());
        }
    }

    /// The number of threads on this machine.
    pub(super) fn threads_here(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(cores)
    }

    /// Whether the shortlist is for these tokenizers; `checked` is one that is known to be.
    pub(super) fn check_shortlist(
        &self,
        tokenizers: &Tokenizers,
        checked: Option<&Arc<Shortlist>>,
    ) -> Result<()> {
        match (&self.shortlist, checked) {
            (Some(new), Some(known)) if Arc::ptr_eq(new, known) => Ok(()),
            (Some(new), _) => Ok(new.check(tokenizers)?),
            (None, _) => Ok(()),
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let mut problems = self.search.check().err().unwrap_or_default();
        let least = [
            ("max_source_tokens", self.max_source_tokens, 2),
            ("batch_sentences", self.batch_sentences.unwrap_or(1), 1),
            ("batch_rows", self.batch_rows, 1),
            ("threads", self.threads.unwrap_or(1), 1),
            ("window", self.window, 1),
        ];
        for (name, found, least) in least {
            if found < least {
                problems.push(format!("`{name}` ({found}) must be at least {least}"));
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(RuntimeError::Options(problems))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_as_many_sentences_as_its_rows_have_room_for() {
        let sentences = |method, batch_rows, batch_sentences| {
            let mut options = TranslatorOptions {
                batch_rows,
                batch_sentences,
                ..Default::default()
            };
            options.search.method = method;
            options.sentences_in_batch()
        };
        assert_eq!(sentences(Method::Greedy, 16, None), 16);
        assert_eq!(sentences(Method::Beam { size: 4 }, 32, None), 8);
        assert_eq!(sentences(Method::Beam { size: 40 }, 32, None), 1);
        assert_eq!(sentences(Method::Beam { size: 4 }, 32, Some(3)), 3);
    }
}

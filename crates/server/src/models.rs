//! The models that are served: found by their languages, and each in the ways in which it is asked.
//!
//! A [`Registry`] never changes; loading again makes another one ([`crate::app`]), and requests that have begun keep
//! theirs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use attentive_runtime::search::Method;
use attentive_runtime::translator::Lines;
use attentive_runtime::{RuntimeError, Translator};
use attentive_text::language::Detector;

use crate::languages::{base, name, normalized};
use crate::refusal::{Refusal, invalid};

/// A way to ask a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Variant {
    /// How many translations.
    pub n_best: usize,
    /// Whether with word alignments.
    pub alignments: bool,
    /// Whether a line is translated as it stands, as a single sentence, whatever the model does otherwise.
    pub whole_lines: bool,
    /// Whether the text has markup, so that it is raw text whatever the model does otherwise.
    pub markup: bool,
}

/// A model that is served.
#[derive(Debug)]
pub struct Served {
    /// What it is called: `de-en`, or its directory.
    pub name: String,
    /// The code of the language that it reads.
    pub source: String,
    /// The code of the language that it writes.
    pub target: String,
    /// A number that no other has.
    pub id: u64,
    translator: Arc<Translator>,
    variants: Mutex<HashMap<Variant, Arc<Translator>>>,
}

impl Served {
    /// A model with its languages.
    pub fn new(name: String, source: &str, target: &str, translator: Translator) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            name,
            source: normalized(source),
            target: normalized(target),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            translator: Arc::new(translator),
            variants: Mutex::default(),
        }
    }

    /// The translator as it was given.
    pub fn translator(&self) -> &Arc<Translator> {
        &self.translator
    }

    /// The same model, asked in another way. The beam is as wide as it must be for that.
    pub fn variant(&self, variant: Variant) -> Result<Arc<Translator>, RuntimeError> {
        let Variant {
            n_best,
            alignments,
            whole_lines,
            markup,
        } = variant;
        if n_best == 1 && !alignments && !whole_lines && !markup {
            return Ok(Arc::clone(&self.translator));
        }
        let mut variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = variants.get(&variant) {
            return Ok(Arc::clone(known));
        }
        let mut options = self.translator.options().clone();
        options.alignments = alignments;
        if markup {
            options.lines = Lines::RawText;
        } else if whole_lines {
            options.lines = Lines::Whole;
        }
        let search = &mut options.search;
        search.n_best = n_best;
        match &mut search.method {
            Method::Beam { size } => *size = (*size).max(n_best),
            Method::Greedy if n_best > 1 => search.method = Method::Beam { size: n_best },
            _ => {}
        }
        let translator = Arc::new(self.translator.with_options(options)?);
        variants.insert(variant, Arc::clone(&translator));
        Ok(translator)
    }
}

/// All models that are served.
#[derive(Debug)]
pub struct Registry {
    models: Vec<Arc<Served>>,
    /// Knows the languages that the models read.
    detector: Detector,
}

/// From which language to which, and what does that.
#[derive(Debug, Clone)]
pub enum Direction {
    /// This model.
    Model(Arc<Served>),
    /// Both are the same language, so that there is nothing to do.
    Same,
}

/// A language and how sure it is, from 0 to 100.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Guess {
    /// How sure.
    pub confidence: f64,
    /// The code.
    pub language: String,
}

impl Registry {
    /// A registry; of two models for the same languages the first is used, unless the other is named.
    pub fn new(models: Vec<Served>) -> Self {
        let sources = unique(models.iter().map(|model| model.source.clone()));
        Self {
            models: models.into_iter().map(Arc::new).collect(),
            detector: Detector::new(sources),
        }
    }

    /// All models.
    pub fn models(&self) -> &[Arc<Served>] {
        &self.models
    }

    /// Languages that a model reads or writes, in the order of the models.
    pub fn languages(&self) -> Vec<String> {
        let both = |model: &'_ Arc<Served>| [model.source.clone(), model.target.clone()];
        unique(self.models.iter().flat_map(both))
    }

    /// Languages that a model reads.
    pub fn sources(&self) -> Vec<String> {
        unique(self.models.iter().map(|model| model.source.clone()))
    }

    /// Languages into which a text in this one can be translated, itself included, as LibreTranslate counts.
    pub fn targets(&self, source: &str) -> Vec<String> {
        let from = self.models.iter().filter(|model| model.source == source);
        let targets = from.map(|model| model.target.clone());
        unique(std::iter::once(source.to_owned()).chain(targets))
    }

    /// The code of a language as the models spell it: `en` of `EN-US`.
    pub fn known(&self, code: &str) -> Option<String> {
        let asked = normalized(code);
        let languages = self.languages();
        let exact = languages.iter().find(|known| **known == asked);
        let same_base = || languages.iter().find(|known| base(known) == base(&asked));
        exact.or_else(same_base).cloned()
    }

    /// What translates between two languages, which are known.
    pub fn direction(&self, source: &str, target: &str) -> Result<Direction, Refusal> {
        if source == target {
            return Ok(Direction::Same);
        }
        let fits = |model: &&Arc<Served>| model.source == source && model.target == target;
        match self.models.iter().find(fits) {
            Some(model) => Ok(Direction::Model(Arc::clone(model))),
            None => Err(invalid(format!(
                "{} ({target}) is not available as a target language from {} ({source})",
                name(target),
                name(source)
            ))),
        }
    }

    /// The model of this name.
    pub fn named(&self, name: &str) -> Option<Arc<Served>> {
        let named = |model: &&Arc<Served>| model.name == name;
        self.models.iter().find(named).cloned()
    }

    /// Which of the languages that models read a text is in, the likeliest first.
    pub fn detect(&self, text: &str) -> Vec<Guess> {
        let guess = |language: &str, sure: f64| Guess {
            confidence: (sure * 1000.0).round() / 10.0,
            language: language.to_owned(),
        };
        let found = self.detector.detect(text);
        let confident = found
            .best()
            .is_some_and(|best| best.confidence >= CONFIDENT);
        let worth_saying = if confident { 1 } else { found.ranked.len() };
        let ranked = found.ranked.iter().take(worth_saying);
        let mut known: Vec<Guess> = ranked
            .map(|one| guess(one.language, one.confidence))
            .collect();
        if known.is_empty() {
            known.extend(self.sources().first().map(|first| guess(first, 0.0)));
        }
        known
    }
}

/// Above this probability nothing else is worth saying.
const CONFIDENT: f64 = 0.75;

fn unique(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut unique = Vec::new();
    for one in all {
        if !unique.contains(&one) {
            unique.push(one);
        }
    }
    unique
}

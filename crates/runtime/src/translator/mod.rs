//! The whole way text -> text on one page.
//!
//! A line becomes tokens (`attentive-text`), lines of similar length are batched, [`search`]
//! asks a model for the most probable target tokens, and these become text again. Whatever
//! implements [`SearchModel`] can be the model: the CPU's own, the Transformer of `attentive-nn`, or
//! a fake one. The threads of an [`Engine`] do the work.
//!
//! ```
//! use attentive_runtime::Translator;
//!
//! # let folder = tempfile::tempdir()?;
//! # let model = folder.path();
//! # attentive_model::fake_dir::write(model)?;
//! let translator = Translator::open(model)?; // a model directory, or a training run
//! for translation in translator.translate(&["a b c", "d e"]) {
//!     println!("{:.2} {}", translation.score, translation.text);
//! }
//!
//! let lines = std::io::Cursor::new("f g\nh\n"); // or a file of any length
//! translator.translate_stream(std::io::BufRead::lines(lines), |line, translation| {
//!     println!("{line} -> {}", translation.text);
//!     Ok(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - `options` says how to translate, `translation` what comes back.
//! - `raw_text` splits lines of raw text into sentences, and joins their translations to lines again.
//! - `source` turns lines into tokens and batches.
//! - `repetition` detects a model that repeats itself, `alignment` makes word alignments.
//!
//! [`search`]: crate::search::search

mod alignment;
mod options;
mod raw_text;
mod repetition;
mod source;
mod translation;

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use attentive_model::ModelError;
use attentive_model::directory::{ModelDir, Tokenizers};

use crate::cpu::{Compute, CpuModel};
use crate::engine::Engine;
use crate::error::Result;
use crate::search::{Hypothesis, Request, SearchModel, SearchOptions, search};

pub use options::{Lines, Repetition, TranslatorOptions};
pub use source::{Line, WithPrefix};
pub use translation::{Alternative, Translation};

use source::{Source, batches};

/// A model, its tokenizers and how to use them.
///
/// It can be shared between threads, and uses those of its [`Engine`] itself: each batch is translated
/// wholly on one of them, so that no translation depends on how many there are.
#[derive(Debug)]
pub struct Translator<M = CpuModel> {
    model: Arc<M>,
    tokenizers: Tokenizers,
    options: TranslatorOptions,
    engine: Arc<Engine>,
}

impl Translator {
    /// Opens a model directory, or the best model of a training run, for the CPU, with the default
    /// options.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(directory, Compute::Auto, TranslatorOptions::default())
    }

    /// As [`Translator::open`], with these numbers to compute with, and options as far as the model
    /// can follow them.
    pub fn open_with(
        directory: impl AsRef<Path>,
        compute: Compute,
        options: TranslatorOptions,
    ) -> Result<Self> {
        Self::of_model(ModelDir::open(directory)?, compute, options)
    }

    /// As [`Translator::open_with`], for a model that is open already, an embedded one for example.
    pub fn of_model(
        directory: ModelDir,
        compute: Compute,
        options: TranslatorOptions,
    ) -> Result<Self> {
        let model = CpuModel::open(&directory, compute)?;
        let options = options.within(&directory.config);
        Self::new(model, directory.tokenizers, options)
    }
}

impl<M: SearchModel> Translator<M> {
    /// Checks that the model, the tokenizers and the options fit together.
    pub fn new(model: M, tokenizers: Tokenizers, options: TranslatorOptions) -> Result<Self> {
        let (expected, found) = (model.vocab(), tokenizers.tgt.vocab_size());
        options.check()?;
        if expected != found {
            return Err(ModelError::VocabularyMismatch {
                side: "the target",
                path: None,
                tokenizer: found,
                model: expected,
            }
            .into());
        }
        options.check_shortlist(&tokenizers, None)?;
        Ok(Self {
            model: Arc::new(model),
            tokenizers,
            engine: Arc::new(Engine::new(options.threads_here())),
            options,
        })
    }

    /// The same model and tokenizers, used in another way, on the same threads (unless the options say
    /// that there are more or fewer).
    pub fn with_options(&self, options: TranslatorOptions) -> Result<Self> {
        options.check()?;
        options.check_shortlist(&self.tokenizers, self.options.shortlist.as_ref())?;
        let threads = options.threads_here();
        let engine = if threads == self.engine.threads() {
            self.engine.clone()
        } else {
            Arc::new(Engine::new(threads))
        };
        Ok(Self {
            model: self.model.clone(),
            tokenizers: self.tokenizers.clone(),
            options,
            engine,
        })
    }

    /// The same translator on the threads of another engine, such as that of another model.
    pub fn with_engine(self, engine: Arc<Engine>) -> Self {
        Self { engine, ..self }
    }

    /// The model, for what only it can do.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// The tokenizers.
    pub fn tokenizers(&self) -> &Tokenizers {
        &self.tokenizers
    }

    /// How it translates.
    pub fn options(&self) -> &TranslatorOptions {
        &self.options
    }

    /// The threads on which it translates.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }
}

impl<M: SearchModel + Send + Sync> Translator<M> {
    /// One translation for each line, in the same order.
    pub fn translate<L: Line + Sync>(&self, lines: &[L]) -> Vec<Translation> {
        match self.options.lines {
            Lines::Whole => self.translate_whole(lines),
            Lines::RawText => raw_text::translate(lines, self.options.alignments, |sentences| {
                self.translate_whole(sentences)
            }),
        }
    }

    /// Lines that are sentences.
    fn translate_whole<L: Line + Sync>(&self, lines: &[L]) -> Vec<Translation> {
        let chunks: Vec<&[L]> = lines.chunks(LINES_TO_TOKENIZE).collect();
        let sources = self.engine.map(&chunks, |lines| {
            let source = |line| Source::new(line, &self.tokenizers, &self.options);
            lines.iter().map(source).collect::<Vec<_>>()
        });
        let sources: Vec<Option<Source>> = sources.into_iter().flatten().collect();

        let lengths = sources
            .iter()
            .map(|s| s.as_ref().map_or(0, |s| s.request.source.len()));
        self.in_batches(lengths, Translation::empty(), |batch| {
            let sources: Vec<&Source> = batch.iter().filter_map(|&i| sources[i].as_ref()).collect();
            self.translate_batch(&sources)
        })
    }

    /// From tokens to tokens, for programs with a tokenizer of their own: the hypotheses of each request,
    /// best first. One with an empty source has no hypotheses. Nothing is cut, and repetition is not
    /// detected.
    pub fn translate_tokens(&self, requests: &[Request]) -> Vec<Vec<Hypothesis>> {
        let lengths = requests.iter().map(|request| request.source.len());
        self.in_batches(lengths, Vec::new(), |batch| {
            let requests = batch.iter().map(|&i| self.with_candidates(&requests[i]));
            let requests: Vec<Cow<Request>> = requests.collect();
            search(&*self.model, &requests, &self.options.search)
        })
    }

    /// The request, with the candidates that the shortlist has for it.
    fn with_candidates<'a>(&self, request: &'a Request) -> Cow<'a, Request> {
        if self.options.shortlist.is_none() {
            return Cow::Borrowed(request);
        }
        Cow::Owned(Request {
            candidates: self.options.candidates(request),
            ..request.clone()
        })
    }

    /// The answers of `work` to batches of similar length, each in its place; `nothing` where the
    /// length is 0.
    fn in_batches<R: Clone + Send>(
        &self,
        lengths: impl Iterator<Item = usize>,
        nothing: R,
        work: impl Fn(&[usize]) -> Vec<R> + Sync,
    ) -> Vec<R> {
        let lengths: Vec<usize> = lengths.collect();
        let batches = batches(&lengths, &self.options, self.engine.threads());
        let found = self.engine.map(&batches, |batch| work(batch));
        let mut answers = vec![nothing; lengths.len()];
        for (batch, found) in batches.iter().zip(found) {
            for (&index, answer) in batch.iter().zip(found) {
                answers[index] = answer;
            }
        }
        answers
    }

    /// Translates lines as they come, any number of them in bounded memory: a window of lines at a
    /// time ([`TranslatorOptions::window`]). `answer` gets each line with its translation, in the
    /// order of the lines. The first error, of the lines or of `answer`, ends it; lines before it
    /// are answered.
    pub fn translate_stream<L: Line + Sync, E>(
        &self,
        lines: impl IntoIterator<Item = std::result::Result<L, E>>,
        mut answer: impl FnMut(L, Translation) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut lines = lines.into_iter();
        let mut window = Vec::new();
        loop {
            let ended = self.fill(&mut window, &mut lines);
            let translations = self.translate(&window);
            for (line, translation) in window.drain(..).zip(translations) {
                answer(line, translation)?;
            }
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    /// Reads a window of lines; returns how the lines ended, if they did.
    fn fill<L: Line, E>(
        &self,
        window: &mut Vec<L>,
        lines: &mut impl Iterator<Item = std::result::Result<L, E>>,
    ) -> Option<std::result::Result<(), E>> {
        let mut bytes = 0;
        while window.len() < self.options.window && bytes < WINDOW_BYTES {
            match lines.next() {
                Some(Ok(line)) => {
                    bytes += line.text().len();
                    window.push(line);
                }
                Some(Err(error)) => return Some(Err(error)),
                None => return Some(Ok(())),
            }
        }
        None
    }

    /// Tokens -> search -> text, for lines that the model sees together.
    fn translate_batch(&self, sources: &[&Source]) -> Vec<Translation> {
        let search = &self.options.search;
        let mut found = self.search(sources, search);
        let repetitive: Vec<bool> = sources
            .iter()
            .zip(&found)
            .map(|(source, hypotheses)| self.is_repetitive(source, hypotheses))
            .collect();
        if repetitive.contains(&true) {
            let again: Vec<usize> = (0..sources.len()).filter(|&i| repetitive[i]).collect();
            let sources: Vec<&Source> = again.iter().map(|&i| sources[i]).collect();
            let blocked = SearchOptions {
                no_repeat_ngram: Some(repetition::BLOCKED_NGRAM),
                ..search.clone()
            };
            for (&i, hypotheses) in again.iter().zip(self.search(&sources, &blocked)) {
                found[i] = hypotheses;
            }
        }
        let translation = |((source, hypotheses), blocked): ((&&Source, _), _)| {
            self.translation(source, hypotheses, blocked)
        };
        sources
            .iter()
            .zip(found)
            .zip(repetitive)
            .map(translation)
            .collect()
    }

    fn search(&self, sources: &[&Source], options: &SearchOptions) -> Vec<Vec<Hypothesis>> {
        let requests: Vec<&Request> = sources.iter().map(|source| &source.request).collect();
        search(&*self.model, &requests, options)
    }

    fn is_repetitive(&self, source: &Source, hypotheses: &[Hypothesis]) -> bool {
        let TranslatorOptions {
            repetition, search, ..
        } = &self.options;
        *repetition == Repetition::Block
            && search.no_repeat_ngram.is_none()
            && hypotheses
                .first()
                .is_some_and(|best| repetition::is_repetitive(&best.tokens))
            && !repetition::is_repetitive(&source.request.source)
    }

    /// Tokens -> text.
    fn translation(
        &self,
        source: &Source,
        hypotheses: Vec<Hypothesis>,
        repetition_blocked: bool,
    ) -> Translation {
        let tgt = &self.tokenizers.tgt;
        let mut texts = hypotheses.into_iter().map(|hypothesis| Alternative {
            text: tgt.decode(&hypothesis.tokens),
            score: hypothesis.score,
            log_prob: hypothesis.log_prob,
            finished: hypothesis.finished,
            tokens: self
                .options
                .tokens
                .then(|| hypothesis.tokens.iter().map(|&id| tgt.label(id)).collect()),
            alignment: self
                .options
                .alignments
                .then(|| self.alignment(source, &hypothesis.tokens))
                .flatten(),
        });
        let Some(best) = texts.next() else {
            return Translation::empty();
        };
        Translation {
            alternatives: texts.collect(),
            truncated: (source.truncated > 0).then_some(source.truncated),
            unknown: source.unknown,
            repetition_blocked,
            ..best.into()
        }
    }

    fn alignment(&self, source: &Source, target: &[u32]) -> Option<Vec<(usize, usize)>> {
        let weights = self.model.cross_attention(&source.request.source, target)?;
        let src_words = source.words.as_deref().unwrap_or_default();
        let tgt_words = alignment::words_of(&self.tokenizers.tgt, target, None);
        Some(alignment::links(&weights, src_words, &tgt_words))
    }
}

/// So many lines are tokenized by one thread at a time.
const LINES_TO_TOKENIZE: usize = 128;

/// A window ends early when its lines are this long together.
const WINDOW_BYTES: usize = 1 << 22;

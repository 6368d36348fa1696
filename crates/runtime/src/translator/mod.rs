//! The whole way text -> text on one page.
//!
//! A line becomes tokens (`attentive-text`), lines of similar length are searched together: [`search`]
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
//! - `raw_text` splits lines of raw text into sentences, long ones into pieces, and joins their translations to lines
//!   again.
//! - `source` turns lines into tokens, `queue` gives them to searches, `stream` reads lines without an end; `split`
//!   does both halves for programs with a queue of their own, such as the server.
//! - `marked` translates text with inline markup and moves the tags to the words that they belong to.
//! - `files` translates documents and files of lines.
//! - `chain` is two translators one after the other, for languages that no model connects directly.
//! - `terms` spells what a glossary wants in a translation, for the search to require it; `marks` does the same
//!   for what is copied and was lost, `repetition` detects a model that repeats itself: both make a `second_search`.
//! - `alignment` makes word alignments, `drafts` lets a smaller model propose tokens.
//! - `stopping` ends calls early, and makes a translator of another process usable in one that was forked from it.
//!
//! [`search`]: crate::search::search

mod alignment;
mod chain;
mod drafts;
mod files;
mod marked;
mod marks;
mod options;
mod prepared;
mod queue;
mod raw_text;
mod repetition;
mod second_search;
mod source;
mod split;
mod stopping;
mod stream;
mod tags;
mod terms;
mod translation;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use attentive_model::directory::{ModelDir, Tokenizers};
use attentive_model::{Generation, ModelError};
use attentive_text::keep::{MARKS, deviation};
use attentive_text::special::UNK;
use attentive_text::{Tokenizer, TokenizerKind};

use crate::cpu::{Compute, CpuModel};
use crate::engine::{Engine, Stop};
use crate::error::Result;
use crate::search::draft::{self, Draft};
use crate::search::{Feed, Hypothesis, Request, SearchModel, search_feed};

pub use chain::Chain;
pub use files::{FileOptions, FileReport};
pub use marked::{MarkedTranslation, Unmarked};
pub use options::{Lines, Repetition, TranslatorOptions};
pub use second_search::First;
pub use source::{Line, Sentence, WithPrefix};
pub use split::{Found, SplitLine};
pub use terms::Phrase;
pub use translation::{Alternative, Translation};

use queue::{Queue, Worker};
use raw_text::{Keep, Style};
use source::{Frame, Source};
use terms::Speller;

/// A model, its tokenizers and how to use them.
///
/// It can be shared between threads, and uses those of its [`Engine`] itself: each sentence is translated
/// wholly on one of them, so that no translation depends on how many there are.
#[derive(Debug)]
pub struct Translator<M = CpuModel> {
    model: Arc<M>,
    tokenizers: Tokenizers,
    frame: Frame,
    options: TranslatorOptions,
    engine: Arc<Engine>,
    draft: Option<Arc<dyn Draft>>,
    stop: Stop,
    speller: Speller,
    /// The tokens that write marks, once a search has lost one.
    marks: OnceLock<Option<Arc<marks::MarkTokens>>>,
}

impl Translator {
    /// Opens a model directory, or the best model of a training run, for the CPU, with the options that are
    /// usual for this model.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        let directory = ModelDir::open(directory)?;
        let options = TranslatorOptions::of(&directory)?;
        Self::of_model(directory, Compute::Auto, options)
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

    /// As [`Translator::open_with`], for a model that is open already, an embedded one for example. Whatever the
    /// options, text is framed as the model wants it, and tokens that it must never produce are not produced.
    pub fn of_model(
        directory: ModelDir,
        compute: Compute,
        options: TranslatorOptions,
    ) -> Result<Self> {
        let model = CpuModel::open(&directory, compute)?.with_threads(options.threads_here());
        let options = options.within(directory.config.position_limit());
        let translator = Self::new(model, directory.tokenizers, options)?;
        Ok(translator.framed(&directory.generation))
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
            frame: Frame::of(&Generation::default()),
            engine: Arc::new(Engine::new(options.threads_here())),
            options,
            draft: None,
            stop: Stop::default(),
            speller: Speller::default(),
            marks: OnceLock::new(),
        })
    }

    /// The same translator that frames text, and forbids tokens, as a model's `generation.json` says.
    pub fn framed(mut self, generation: &Generation) -> Self {
        self.frame = Frame::of(generation);
        self.options.forbid(&generation.forbidden);
        self
    }

    /// The same model and tokenizers, used in another way, on the same threads (unless the options say
    /// that there are more or fewer).
    pub fn with_options(&self, mut options: TranslatorOptions) -> Result<Self> {
        options.forbid(&self.options.search.forbidden);
        options.check()?;
        options.check_shortlist(&self.tokenizers, self.options.shortlist.as_ref())?;
        if self.draft.is_some() {
            drafts::takes_drafts(&*self.model, &options)?;
        }
        let threads = options.threads_here();
        let engine = if threads == self.engine.threads() {
            self.engine.clone()
        } else {
            Arc::new(Engine::new(threads))
        };
        Ok(Self {
            options,
            engine,
            ..self.twin()
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
            Lines::Whole => self.translate_sentences(lines),
            Lines::RawText => raw_text::translate(lines, self.style(), |sentences| {
                self.translate_whole(sentences)
            }),
        }
    }

    /// Lines that are sentences, of any length.
    fn translate_sentences<L: Line + Sync>(&self, lines: &[L]) -> Vec<Translation> {
        let style = Style {
            lines: Lines::Whole,
            ..self.style()
        };
        if lines.iter().all(|line| style.surely_fits(line.text())) {
            return self.translate_whole(lines);
        }
        raw_text::translate(lines, style, |pieces| self.translate_whole(pieces))
    }

    /// How lines become sentences, and these become pieces that the model can read.
    fn style(&self) -> Style<'_> {
        Style {
            lines: self.options.lines,
            language: self.options.source_language.as_deref(),
            alignments: self.options.alignments,
            keep: self.keep(),
            tokenizer: &self.tokenizers.src,
            most_tokens: self.frame.room(&self.options),
            stop: &self.stop,
        }
    }

    /// How the model carries over what must be kept. A vocabulary of subwords that lacks the marks would show the
    /// model `<unk>` in the place of every number and address, but can spell them.
    fn keep(&self) -> Keep {
        let knows = |tokenizer: &Tokenizer| {
            let words = matches!(tokenizer.kind(), TokenizerKind::Word | TokenizerKind::Tabs);
            words || !tokenizer.encode(&MARKS[0].to_string()).contains(&UNK)
        };
        if knows(&self.tokenizers.src) && knows(&self.tokenizers.tgt) {
            Keep::AsMarks
        } else {
            Keep::AsText
        }
    }

    /// Lines that are sentences, and fit into the model.
    fn translate_whole<L: Line + Sync>(&self, lines: &[L]) -> Vec<Translation> {
        let chunks: Vec<&[L]> = lines.chunks(LINES_TO_TOKENIZE).collect();
        let sources = self.engine.map_until(&self.stop, &chunks, |lines| {
            let wanted = |_: &&L| !self.stop.is_asked();
            let source = |line| self.source(line);
            lines
                .iter()
                .take_while(wanted)
                .map(source)
                .collect::<Vec<_>>()
        });
        let sources: Vec<Option<Source>> = sources.into_iter().flatten().collect();

        let requests = sources.iter().map(|source| Some(&source.as_ref()?.request));
        let queue = Queue::new(requests, &self.engine, &self.options, &self.stop);
        let firsts: Mutex<HashMap<usize, First>> = Mutex::default();
        let found = queue.drain(|queue| {
            self.search(queue, |number, hypotheses| {
                let source = sources[number].as_ref()?;
                let mut waiting = firsts.lock().unwrap_or_else(PoisonError::into_inner);
                let first = waiting.remove(&number);
                if first.is_none()
                    && let Some((request, first)) = self.search_again(source, &hypotheses)
                {
                    waiting.insert(number, first);
                    queue.put_back(number, request);
                    return None;
                }
                drop(waiting);
                Some(self.best_translation(source, hypotheses, first))
            })
        });
        in_places(found, lines.len(), Translation::empty())
    }

    /// Text -> tokens, and what the translation must contain; nothing if there is nothing to translate.
    fn source<L: Line>(&self, line: &L) -> Option<Source> {
        let mut source = Source::new(line, &self.tokenizers, &self.frame, &self.options)?;
        source.phrases = self.phrases(line);
        if !source.phrases.is_empty() {
            let (forbidden, tokenizer) = (&self.options.search.forbidden, &self.tokenizers.tgt);
            let terms = self.speller.terms(&source.phrases, forbidden, tokenizer);
            source.request.terms = (!terms.is_empty()).then(|| Arc::new(terms));
        }
        Some(source)
    }

    /// What the translation of a sentence must contain.
    fn phrases<L: Line>(&self, line: &L) -> Vec<Phrase> {
        let mut phrases = line.phrases().to_vec();
        let (from, to) = (&self.options.source_language, &self.options.target_language);
        if let Some(glossary) = &self.options.glossary {
            let (from, to) = (from.as_deref(), to.as_deref());
            phrases.extend(terms::phrases(glossary, line.text(), from, to));
        }
        phrases
    }

    /// From tokens to tokens, for programs with a tokenizer of their own: the hypotheses of each request,
    /// best first. One with an empty source has no hypotheses. Nothing is cut, and repetition is not
    /// detected.
    pub fn translate_tokens(&self, requests: &[Request]) -> Vec<Vec<Hypothesis>> {
        let requests_here = requests.iter().map(Some);
        let queue = Queue::new(requests_here, &self.engine, &self.options, &self.stop);
        let found = queue.drain(|queue| self.search(queue, |_, hypotheses| Some(hypotheses)));
        in_places(found, requests.len(), Vec::new())
    }

    /// Searches for sentences of a queue until it is empty; `answer` makes something of what is found, with its
    /// number, or puts the sentence back.
    fn search<R>(
        &self,
        queue: &Queue<'_>,
        answer: impl FnMut(usize, Vec<Hypothesis>) -> Option<R>,
    ) -> Vec<(usize, R)> {
        let (model, options) = (&*self.model, &self.options.search);
        let mut worker = Worker::new(queue, answer);
        if let Some(draft) = &self.draft
            && let Some((number, request)) = queue.take_only()
        {
            let (found, _) = draft::search(model, &request, options, &**draft);
            worker.found(number, vec![found]);
        }
        search_feed(model, &mut worker, options);
        worker.answers
    }

    /// Translates lines as they come, any number of them in bounded memory: a window of lines at a
    /// time ([`TranslatorOptions::window`]). `answer` gets each line with its translation, in the
    /// order of the lines. The first error, of the lines or of `answer`, ends it; lines before it
    /// are answered.
    pub fn translate_stream<L: Line + Sync, E>(
        &self,
        lines: impl IntoIterator<Item = std::result::Result<L, E>>,
        answer: impl FnMut(L, Translation) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let window = self.options.window;
        stream::translate(window, lines, |lines| self.translate(lines), answer)
    }

    /// Tokens -> text.
    fn translation(
        &self,
        source: &Source,
        hypotheses: Vec<Hypothesis>,
        repetition_blocked: bool,
    ) -> Translation {
        let tgt = &self.tokenizers.tgt;
        let mut texts = hypotheses.into_iter().map(|hypothesis| {
            let tokens = hypothesis.tokens.iter().skip(source.request.free_prefix);
            let shown = |token: &&u32| !self.frame.hidden.contains(token);
            let tokens: Vec<u32> = tokens.filter(shown).copied().collect();
            let text = tgt.decode(&tokens);
            // What is missing is put where the alignment says.
            let needed = source.is_aligned || deviation(&source.kept, &text) > 0;
            let alignments = needed.then(|| self.alignments(source, &hypothesis.tokens, &text));
            let (alignment, unit_alignment) = alignments.flatten().unzip();
            let alignment = alignment.filter(|_| self.options.alignments);
            Alternative {
                text,
                score: hypothesis.score,
                log_prob: hypothesis.log_prob,
                finished: hypothesis.finished,
                tokens: self
                    .options
                    .tokens
                    .then(|| tokens.iter().map(|&id| tgt.label(id)).collect()),
                alignment,
                unit_alignment,
                pivot: None,
            }
        });
        let Some(best) = texts.next() else {
            return Translation::empty();
        };
        let lacking = |phrase: &&Phrase| !phrase.is_in(&best.text);
        let lacking = source.phrases.iter().filter(lacking);
        Translation {
            missing_terms: lacking
                .filter_map(|phrase| phrase.spellings.first().cloned())
                .collect(),
            alternatives: texts.collect(),
            truncated: (source.truncated > 0).then_some(source.truncated),
            unknown: source.unknown,
            repetition_blocked,
            ..best.into()
        }
    }

    /// Links between words, and between units, of a source and a target with this text.
    fn alignments(&self, source: &Source, target: &[u32], text: &str) -> Option<(Pairs, Pairs)> {
        let weights = self.model.cross_attention(&source.request.source, target)?;
        let src_len = source.request.source.len();
        let src = self.frame.before_source.len()..src_len - self.frame.after_source.len();
        let src_words = source.words.as_deref().unwrap_or_default();
        let src_units = source.units.as_deref().unwrap_or_default();
        let given = source.request.free_prefix.min(target.len());
        let tgt = &self.tokenizers.tgt;
        let tgt_words = alignment::words_of(tgt, &target[given..], None);
        let tgt_units = alignment::units_of(tgt, &target[given..], text);
        let weights = &weights[given * src_len..];
        Some((
            alignment::links(weights, src.clone(), src_words, &tgt_words),
            alignment::unit_links(weights, src, src_units, &tgt_units),
        ))
    }
}

/// Links of an alignment.
type Pairs = Vec<(usize, usize)>;

/// Numbered answers in their places; `nothing` where there is none.
fn in_places<R: Clone>(found: Vec<(usize, R)>, count: usize, nothing: R) -> Vec<R> {
    let mut answers = vec![nothing; count];
    for (number, answer) in found {
        answers[number] = answer;
    }
    answers
}

/// So many lines are tokenized by one thread at a time.
const LINES_TO_TOKENIZE: usize = 128;

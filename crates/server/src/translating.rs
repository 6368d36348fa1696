//! Texts on their way through the queue: lines, sentences, and translations of both again.
//!
//! All APIs come here. A text is translated line by line, as `attentive translate` does it; its sentences go to the
//! [`crate::scheduler`] with those of all other clients, or come from the [`crate::cache`].

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use attentive_runtime::translator::{Found, SplitLine, Translation, WithPrefix};
use attentive_runtime::{Translator, TranslatorOptions};
use attentive_text::Glossary;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, timeout_at};

use crate::app::App;
use crate::cache::Key;
use crate::http::client::Client;
use crate::models::{Served, Variant};
use crate::refusal::{Refusal, invalid};
use crate::scheduler::details::Details;
use crate::scheduler::{Answer, Task};

/// What is wanted besides the best translation.
#[derive(Debug, Clone)]
pub struct Wish {
    /// How many translations.
    pub n_best: usize,
    /// Word alignments.
    pub alignments: bool,
    /// Lines as they stand, each as a single sentence.
    pub whole_lines: bool,
    /// Texts without their markup, which is put back by the alignments.
    pub markup: bool,
    /// What each token cost, with so many alternatives for it.
    pub details: Option<usize>,
    /// What the translation must start with.
    pub prefix: String,
    /// Who asks.
    pub client: Client,
    /// Terms that must be translated in a certain way.
    pub glossary: Option<Arc<Glossary>>,
}

impl Default for Wish {
    fn default() -> Self {
        Self {
            n_best: 1,
            alignments: false,
            whole_lines: false,
            markup: false,
            details: None,
            prefix: String::new(),
            client: Client::default(),
            glossary: None,
        }
    }
}

impl Wish {
    fn variant(&self) -> Variant {
        Variant {
            n_best: self.n_best,
            alignments: self.alignments,
            whole_lines: self.whole_lines,
            markup: self.markup,
        }
    }
}

/// A sentence and what became of it.
#[derive(Debug)]
pub struct Sentence {
    /// Which text it is in.
    pub text: usize,
    /// The sentence; empty for a blank line.
    pub source: String,
    /// What is between it and the next sentence.
    pub gap: String,
    /// Its translation, once it is found.
    pub translation: Option<Translation>,
    /// What each token cost, if that was asked for.
    pub details: Option<Details>,
    key: Option<Key>,
}

/// What became of a text.
#[derive(Debug)]
pub struct Translated {
    /// The whole text; its alternatives are made up of those of its lines.
    pub translation: Translation,
    /// Its sentences, in their order.
    pub sentences: Vec<Sentence>,
}

/// Texts that are being translated. Who drops it cancels.
#[derive(Debug)]
pub struct Translating {
    app: Arc<App>,
    lines: Vec<Vec<Line>>,
    sentences: Vec<Sentence>,
    /// Sentences that have a translation and were not shown yet.
    ready: VecDeque<usize>,
    answers: Option<UnboundedReceiver<Answer>>,
    missing: usize,
    deadline: Instant,
}

/// A line of a text.
#[derive(Debug)]
struct Line {
    split: Arc<SplitLine>,
    sentences: Range<usize>,
    end: &'static str,
}

impl Translating {
    /// Cuts texts into sentences and adds them to the queue.
    pub async fn begin(
        app: &Arc<App>,
        model: &Arc<Served>,
        texts: Vec<String>,
        wish: Wish,
    ) -> Result<Self, Refusal> {
        app.check_room(wish.client).await?;
        let bytes: usize = texts.iter().map(String::len).sum();
        let (app, model) = (Arc::clone(app), Arc::clone(model));
        if bytes <= AT_ONCE {
            return Self::begin_here(app, &model, &texts, &wish);
        }
        // Tokenizing this much would keep other requests waiting.
        let begin = move || Self::begin_here(app, &model, &texts, &wish);
        let begun = tokio::task::spawn_blocking(begin).await;
        begun.unwrap_or(Err(Refusal::Failed))
    }

    fn begin_here(
        app: Arc<App>,
        model: &Served,
        texts: &[String],
        wish: &Wish,
    ) -> Result<Self, Refusal> {
        if app.is_draining() {
            return Err(Refusal::Draining);
        }
        let variant = model.variant(wish.variant());
        let mut translator = variant.map_err(|_| Refusal::Failed)?;
        if let Some(glossary) = &wish.glossary {
            // The same model and the same search, so that these sentences share batches with all others.
            let with_terms = translator.with_options(TranslatorOptions {
                glossary: Some(Arc::clone(glossary)),
                source_language: Some(model.source.clone()),
                target_language: Some(model.target.clone()),
                ..translator.options().clone()
            });
            translator = Arc::new(with_terms.map_err(|_| Refusal::Failed)?);
        }
        let mut new = Self {
            deadline: Instant::now() + app.options.limits.translation_time,
            app,
            lines: Vec::new(),
            sentences: Vec::new(),
            ready: VecDeque::new(),
            answers: None,
            missing: 0,
        };
        let mut tasks = Vec::new();
        for text in texts {
            new.add_text(text, model.id, &translator, wish, &mut tasks);
            let (found, most) = (new.sentences.len(), new.app.options.limits.sentences);
            if found > most {
                return Err(invalid(format!(
                    "Invalid request: more than {most} sentences; send less text at a time"
                )));
            }
        }
        new.missing = tasks.len();
        if !tasks.is_empty() {
            let submitted = new.app.scheduler.submit(wish.client, &translator, tasks);
            new.answers = Some(submitted.map_err(|_full| Refusal::Busy)?);
        }
        Ok(new)
    }

    fn add_text(
        &mut self,
        text: &str,
        model: u64,
        translator: &Arc<Translator>,
        wish: &Wish,
        tasks: &mut Vec<Task>,
    ) {
        let mut prefix = wish.prefix.trim();
        let mut lines = Vec::new();
        let count = text.split('\n').count();
        for (number, line) in text.split('\n').enumerate() {
            let (line, end) = match line.strip_suffix('\r') {
                _ if number + 1 == count => (line, ""),
                Some(line) => (line, "\r\n"),
                None => (line, "\n"),
            };
            let mut with_prefix = WithPrefix {
                text: line.to_owned(),
                prefix: prefix.to_owned(),
            };
            let split = Arc::new(translator.split(&with_prefix));
            let first = self.sentences.len();
            if split.is_empty() {
                self.add_sentence(line, end, Some(Translation::empty()), None);
            } else {
                prefix = "";
            }
            for sentence in 0..split.len() {
                let (source, gap) = split.sentence(sentence);
                let last = sentence + 1 == split.len();
                let gap = if last {
                    gap.to_owned() + end
                } else {
                    gap.to_owned()
                };
                if split.request(sentence).is_none() {
                    let copied = translator.found(&split, sentence, Vec::new(), None);
                    let Found::Translation(copied) = copied else {
                        unreachable!("what was not searched for does not repeat itself")
                    };
                    self.add_sentence(source, &gap, Some(copied), None);
                    continue;
                }
                let cached = wish.details.is_none() && wish.glossary.is_none();
                let key = cached.then(|| Key {
                    model,
                    variant: wish.variant(),
                    sentence: source.to_owned(),
                    // Only the first sentence has it.
                    prefix: std::mem::take(&mut with_prefix.prefix),
                });
                let known = key.as_ref().and_then(|key| self.app.cache.get(key));
                if known.is_some() {
                    self.app.metrics.sentence_cached();
                    self.add_sentence(source, &gap, known, None);
                    continue;
                }
                tasks.push(Task {
                    place: self.sentences.len(),
                    line: Arc::clone(&split),
                    sentence,
                    prefix: Vec::new(),
                    details: wish.details,
                });
                self.add_sentence(source, &gap, None, key);
            }
            lines.push(Line {
                split,
                sentences: first..self.sentences.len(),
                end,
            });
        }
        self.lines.push(lines);
    }

    fn add_sentence(
        &mut self,
        source: &str,
        gap: &str,
        translation: Option<Translation>,
        key: Option<Key>,
    ) {
        if translation.is_some() {
            self.ready.push_back(self.sentences.len());
        }
        self.sentences.push(Sentence {
            text: self.lines.len(),
            source: source.to_owned(),
            gap: gap.to_owned(),
            translation,
            details: None,
            key,
        });
    }

    /// The place of the next sentence that has its translation, as soon as there is one; nothing when all have been
    /// shown.
    pub async fn next(&mut self) -> Result<Option<usize>, Refusal> {
        if let Some(place) = self.ready.pop_front() {
            return Ok(Some(place));
        }
        let Some(answers) = self.answers.as_mut().filter(|_| self.missing > 0) else {
            return Ok(None);
        };
        let answer = timeout_at(self.deadline, answers.recv()).await;
        let answer = answer.map_err(|_late| Refusal::TimedOut)?;
        let answer = answer.ok_or(Refusal::Failed)?;
        self.missing -= 1;
        let sentence = &mut self.sentences[answer.place];
        if let Some(key) = sentence.key.take() {
            self.app.cache.put(key, answer.translation.clone());
        }
        sentence.translation = Some(answer.translation);
        sentence.details = answer.details;
        Ok(Some(answer.place))
    }

    /// A sentence.
    pub fn sentence(&self, place: usize) -> &Sentence {
        &self.sentences[place]
    }

    /// The place of a sentence among those of its text.
    pub fn place_in_text(&self, place: usize) -> usize {
        let text = &self.lines[self.sentences[place].text];
        place - text.first().map_or(0, |line| line.sentences.start)
    }

    /// Waits for all sentences; the texts in their order.
    pub async fn all(mut self) -> Result<Vec<Translated>, Refusal> {
        while self.next().await?.is_some() {}
        Ok(self.finish())
    }

    /// The texts, when all sentences are found.
    pub fn finish(self) -> Vec<Translated> {
        let mut sentences = self.sentences.into_iter();
        let text = |lines: Vec<Line>| {
            let mut all = Vec::new();
            let mut joined = Vec::new();
            for line in &lines {
                let own: Vec<Sentence> = sentences.by_ref().take(line.sentences.len()).collect();
                let parts = own.iter().take(line.split.len());
                let part = |sentence: &Sentence| sentence.translation.clone();
                let parts = parts.map(|sentence| part(sentence).unwrap_or_else(Translation::empty));
                joined.push((line.split.join(parts.collect()), line.end));
                all.extend(own);
            }
            Translated {
                translation: join_lines(joined),
                sentences: all,
            }
        };
        self.lines.into_iter().map(text).collect()
    }
}

/// This many bytes are tokenized without asking for another thread.
const AT_ONCE: usize = 16 << 10;

/// A text out of its lines. Its n-th alternative consists of their n-th alternatives; its score is the mean over the
/// lines that say something.
fn join_lines(lines: Vec<(Translation, &'static str)>) -> Translation {
    if let [(_, "")] = lines[..] {
        return lines.into_iter().next().expect("one line").0;
    }
    let ranks = lines.iter().map(|(line, _)| line.alternatives.len()).max();
    let spoken = lines.iter().filter(|(line, _)| !line.text.is_empty());
    let spoken = spoken.count().max(1) as f64;
    let mut whole = Translation::empty();
    let alternative = |rank: usize| {
        let mut text = String::new();
        let (mut score, mut log_prob) = (0.0, 0.0);
        for (line, end) in &lines {
            let last = line.alternatives.len().checked_sub(1);
            let own = last.map(|last| &line.alternatives[rank.min(last)]);
            text.push_str(own.map_or(&line.text, |own| &own.text));
            text.push_str(end);
            score += own.map_or(line.score, |own| own.score);
            log_prob += own.map_or(line.log_prob, |own| own.log_prob);
        }
        (text, score / spoken, log_prob)
    };
    for rank in 0..ranks.unwrap_or(0) {
        let (text, score, log_prob) = alternative(rank);
        whole
            .alternatives
            .push(attentive_runtime::translator::Alternative {
                text,
                score,
                log_prob,
                finished: whole.finished,
                tokens: None,
                alignment: None,
                unit_alignment: None,
                pivot: None,
            });
    }
    for (line, end) in &lines {
        whole.text.push_str(&line.text);
        whole.text.push_str(end);
        whole.score += line.score / spoken;
        whole.log_prob += line.log_prob;
        whole.unknown += line.unknown;
        whole
            .missing_terms
            .extend(line.missing_terms.iter().cloned());
        whole.repetition_blocked |= line.repetition_blocked;
        if let Some(cut) = line.truncated {
            whole.truncated = Some(whole.truncated.unwrap_or(0) + cut);
        }
    }
    whole
}

impl Translated {
    /// A text that needs no translation.
    pub fn unchanged(text: String) -> Self {
        Self {
            translation: Translation {
                text: text.clone(),
                ..Translation::empty()
            },
            sentences: vec![Sentence {
                text: 0,
                source: text.clone(),
                gap: String::new(),
                translation: Some(Translation {
                    text,
                    ..Translation::empty()
                }),
                details: None,
                key: None,
            }],
        }
    }
}

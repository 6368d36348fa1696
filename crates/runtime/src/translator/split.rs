//! A line in its sentences, for programs that have a queue of their own.
//!
//! [`Translator::translate`] waits for all its lines. A server cannot: the sentences of many callers share its
//! batches, and each is wanted as soon as it is found. So [`Translator::split`] gives the sentences of a line,
//! [`Translator::search_feed`] searches for those of any lines, [`Translator::found`] makes a translation of what was
//! found for one, and [`SplitLine::join`] a translation of the line. Together they give what
//! [`Translator::translate`] gives.

use std::borrow::Cow;

use super::raw_text::{self, Segment};
use super::second_search::First;
use super::source::{Line, Source};
use super::{Translation, Translator};
use crate::search::{Feed, Hypothesis, Request, SearchModel, search_feed};

/// A line in its sentences.
#[derive(Debug)]
pub struct SplitLine {
    /// One for a line that is translated as it stands, unless it is too long; none if it is blank.
    segments: Vec<Segment>,
    /// What the model gets of each; nothing where it has nothing to translate.
    sources: Vec<Option<Source>>,
}

/// What became of a search for a sentence.
#[derive(Debug)]
pub enum Found {
    /// Its translation.
    Translation(Translation),
    /// It repeats itself, or lacks what must be kept: this request must be searched for, and what is found is given
    /// to [`Translator::found`] together with what was found first.
    Again(Request, First),
}

impl SplitLine {
    /// How many sentences it has.
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// Whether it is blank.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// A sentence, and what is between it and the next one.
    pub fn sentence(&self, number: usize) -> (&str, &str) {
        let segment = &self.segments[number];
        (&segment.text, &segment.gap)
    }

    /// What a model must search for; nothing for a sentence that is copied.
    pub fn request(&self, number: usize) -> Option<&Request> {
        Some(&self.sources[number].as_ref()?.request)
    }

    /// How many characters of a sentence's translation this beginning of what the model wrote makes up: what was
    /// hidden from the model, and capitals, are back in the translation.
    pub fn finished_chars(&self, number: usize, beginning: &str) -> usize {
        self.segments[number].finished_chars(beginning)
    }

    /// The translation of the line, of those of all its sentences in their order.
    pub fn join(&self, sentences: Vec<Translation>) -> Translation {
        raw_text::join(&self.segments, sentences)
    }
}

impl<M: SearchModel + Send + Sync> Translator<M> {
    /// The sentences of a line, as the options say what a line is.
    pub fn split<L: Line>(&self, line: &L) -> SplitLine {
        let segments = raw_text::segment(line, self.style());
        let prepared = segments.iter().map(Segment::prepared);
        let sources = prepared.map(|text| self.source(&text?)).collect();
        SplitLine { segments, sources }
    }

    /// Searches for all sentences that a feed gives, as the options say. Requests are those of
    /// [`Translator::request`].
    pub fn search_feed<F: Feed>(&self, feed: &mut F) {
        search_feed(&*self.model, feed, &self.options.search);
    }

    /// The request for a sentence with the candidates that the shortlist allows, if there is one.
    pub fn request(&self, request: &Request) -> Request {
        let mut request = Cow::Borrowed(request);
        self.options.add_candidates(&mut request);
        request.into_owned()
    }

    /// The translation of a sentence; `first` is what its first search found, if this was its second. Without
    /// hypotheses it is that of a sentence which is copied.
    pub fn found(
        &self,
        line: &SplitLine,
        number: usize,
        hypotheses: Vec<Hypothesis>,
        first: Option<First>,
    ) -> Found {
        let answer = match &line.sources[number] {
            Some(source) => {
                if first.is_none()
                    && let Some((request, first)) = self.search_again(source, &hypotheses)
                {
                    return Found::Again(self.request(&request), first);
                }
                self.best_translation(source, hypotheses, first)
            }
            None => Translation::empty(),
        };
        let segment = &line.segments[number];
        Found::Translation(segment.finish(answer, self.options.alignments))
    }
}

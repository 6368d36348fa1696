//! A second search for a sentence, if the first found a translation that repeats itself or lost what is to be copied.
//!
//! Neighbors: [`super::repetition`] and [`super::marks`] say what the second search must not or must do; the
//! [`Translator`] and [`super::split`] run it.

use attentive_text::keep::{MARKS, deviation};

use super::marks;
use super::options::{Repetition, TranslatorOptions};
use super::source::Source;
use super::{Translation, Translator, repetition};
use crate::search::{Finish, Hypothesis, Request, SearchModel};

/// What the first search for a sentence found, if there must be a second.
#[derive(Debug)]
pub struct First {
    hypotheses: Vec<Hypothesis>,
    repeats: bool,
}

/// A mark that was lost may make a translation so many tokens longer.
const MARK_ROOM: usize = 4;

impl<M: SearchModel + Send + Sync> Translator<M> {
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

    /// The request for a second search, if the first gave a translation that repeats itself, or lost a mark.
    pub(super) fn search_again(
        &self,
        source: &Source,
        hypotheses: &[Hypothesis],
    ) -> Option<(Request, First)> {
        let repeats = self.is_repetitive(source, hypotheses);
        let mut request = source.request.clone();
        if repeats {
            request = repetition::blocked(&request);
        } else {
            marks::require(
                &mut request,
                self.lost_marks(source, hypotheses)?,
                &self.options,
            );
        }
        let hypotheses = hypotheses.to_vec();
        Some((
            request,
            First {
                hypotheses,
                repeats,
            },
        ))
    }

    /// What the best hypothesis must have, if it has not every mark as often as the source.
    fn lost_marks(&self, source: &Source, hypotheses: &[Hypothesis]) -> Option<marks::Lost> {
        let best = hypotheses.first()?;
        let are_marks = source.kept.first()?.starts_with(MARKS);
        let deviation = deviation(&source.kept, &self.tokenizers.tgt.decode(&best.tokens));
        // Marks that are used again were never in a text that the model has seen.
        if !are_marks || deviation == 0 || source.kept.len() > MARKS.len() {
            return None;
        }
        let tokens = self
            .marks
            .get_or_init(|| marks::MarkTokens::of(&self.tokenizers.tgt));
        Some(marks::Lost {
            constraint: marks::RequiredMarks::new(tokens.clone()?, &source.kept),
            most_tokens: best.tokens.len() + MARK_ROOM * deviation,
        })
    }

    /// The translation that a second search found, unless it was of no use.
    pub(super) fn best_translation(
        &self,
        source: &Source,
        hypotheses: Vec<Hypothesis>,
        first: Option<First>,
    ) -> Translation {
        match first {
            None => self.translation(source, hypotheses, false),
            Some(First { repeats: true, .. }) => self.translation(source, hypotheses, true),
            Some(first) => {
                let keeps = |best: &Hypothesis| {
                    let text = self.tokenizers.tgt.decode(&best.tokens);
                    best.finished == Finish::EndOfSentence && deviation(&source.kept, &text) == 0
                };
                let is_better = hypotheses.first().is_some_and(keeps);
                let found = if is_better {
                    hypotheses
                } else {
                    first.hypotheses
                };
                self.translation(source, found, false)
            }
        }
    }
}

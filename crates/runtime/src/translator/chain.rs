//! Two translators one after the other, for languages that no model connects directly: French to English, English
//! to German.
//!
//! Sentence by sentence: a line is split once, each sentence goes through both models, and what must be kept is put
//! back at the end. So one sentence of the source is one of the pivot language and one of the target.

use std::sync::Arc;

use attentive_text::Glossary;

use super::raw_text::{Keep, Style};
use super::source::{Line, Sentence};
use super::translation::{Alternative, Translation};
use super::{Phrase, Translator, TranslatorOptions, raw_text, stream, terms};
use crate::cpu::CpuModel;
use crate::error::Result;
use crate::search::{Finish, SearchModel};

/// Two translators one after the other.
///
/// Probabilities multiply, so the logarithms and scores of both add up. Alternatives are those of the second model
/// for the best translation of the first. Alignments lead from the source through the pivot to the target. Terms of a
/// glossary (that of the second's options) are found in the source and required of the second.
#[derive(Debug)]
pub struct Chain<A = CpuModel, B = CpuModel> {
    pub(super) first: Translator<A>,
    pub(super) second: Translator<B>,
    glossary: Option<Arc<Glossary>>,
}

impl<A: SearchModel, B: SearchModel> Chain<A, B> {
    /// The second translates what the first makes of a sentence, on the same threads. What a line is, and how many
    /// are read together, the options of the second say.
    pub fn new(first: Translator<A>, second: Translator<B>) -> Result<Self> {
        let mut options = TranslatorOptions {
            tokens: false,
            alignments: second.options.alignments,
            glossary: None,
            ..first.options.clone()
        };
        options.search.n_best = 1;
        let first = first.with_options(options)?;
        let mut second = second.with_engine(Arc::clone(first.engine()));
        let glossary = second.options.glossary.take();
        Ok(Self {
            first,
            second,
            glossary,
        })
    }
}

impl<A: SearchModel + Send + Sync, B: SearchModel + Send + Sync> Chain<A, B> {
    /// One translation for each line, in the same order.
    pub fn translate<L: Line + Sync>(&self, lines: &[L]) -> Vec<Translation> {
        let keep = match (self.first.keep(), self.second.keep()) {
            (Keep::AsMarks, Keep::AsMarks) => Keep::AsMarks,
            _ => Keep::AsText,
        };
        let TranslatorOptions {
            lines: mode,
            alignments,
            ..
        } = self.second.options;
        let style = Style {
            lines: mode,
            alignments,
            keep,
            ..self.first.style()
        };
        raw_text::translate(lines, style, |sentences| self.translate_whole(sentences))
    }

    /// As [`Translator::translate_stream`].
    pub fn translate_stream<L: Line + Sync, E>(
        &self,
        lines: impl IntoIterator<Item = std::result::Result<L, E>>,
        answer: impl FnMut(L, Translation) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let window = self.second.options.window;
        stream::translate(window, lines, |lines| self.translate(lines), answer)
    }

    /// Lines that are sentences.
    fn translate_whole<L: Line + Sync>(&self, lines: &[L]) -> Vec<Translation> {
        let sentence = |text: &str, prefix: &str, line: &L| Sentence {
            text: text.to_owned(),
            prefix: prefix.to_owned(),
            kept: line.kept().to_vec(),
            is_aligned: line.is_aligned(),
            phrases: Vec::new(),
        };
        let sources = lines.iter().map(|line| sentence(line.text(), "", line));
        let pivots = self.first.translate_whole(&sources.collect::<Vec<_>>());
        let sentences = pivots.iter().zip(lines).map(|(pivot, line)| Sentence {
            phrases: self.phrases(line),
            ..sentence(&pivot.text, line.prefix(), line)
        });
        let sentences: Vec<Sentence> = sentences.collect();
        let targets = self.second.translate_sentences(&sentences);
        pivots.into_iter().zip(targets).map(join).collect()
    }

    /// What the translation of a sentence must contain.
    fn phrases<L: Line>(&self, line: &L) -> Vec<Phrase> {
        let glossary = self.glossary.as_deref();
        let own = glossary.map(|glossary| {
            let from = self.first.options.source_language.as_deref();
            let to = self.second.options.target_language.as_deref();
            terms::phrases(glossary, line.text(), from, to)
        });
        [line.phrases().to_vec(), own.unwrap_or_default()].concat()
    }
}

/// What both models made of a sentence.
fn join((pivot, target): (Translation, Translation)) -> Translation {
    let through = |target: Alternative| Alternative {
        score: pivot.score + target.score,
        log_prob: pivot.log_prob + target.log_prob,
        finished: match pivot.finished {
            Finish::EndOfSentence => target.finished,
            early => early,
        },
        alignment: compose(pivot.alignment.as_deref(), target.alignment.as_deref()),
        unit_alignment: compose(
            pivot.unit_alignment.as_deref(),
            target.unit_alignment.as_deref(),
        ),
        pivot: Some(pivot.text.clone()),
        ..target
    };
    let mut target = target;
    let best = through(target.take_best());
    Translation {
        alternatives: target.alternatives.into_iter().map(through).collect(),
        truncated: match (pivot.truncated, target.truncated) {
            (None, None) => None,
            (first, second) => Some(first.unwrap_or(0) + second.unwrap_or(0)),
        },
        unknown: pivot.unknown + target.unknown,
        missing_terms: target.missing_terms,
        repetition_blocked: pivot.repetition_blocked || target.repetition_blocked,
        moved: pivot.moved + target.moved,
        ..best.into()
    }
}

/// Source words and target words that are linked to the same word between them.
fn compose(
    first: Option<&[(usize, usize)]>,
    second: Option<&[(usize, usize)]>,
) -> Option<Vec<(usize, usize)>> {
    let (first, second) = (first?, second?);
    let behind = |&(src, pivot): &(usize, usize)| {
        let links = second.iter().filter(move |(word, _)| *word == pivot);
        links.map(move |&(_, tgt)| (src, tgt))
    };
    let mut links: Vec<_> = first.iter().flat_map(behind).collect();
    links.sort_unstable();
    links.dedup();
    Some(links)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_through_the_words_between() {
        let first = [(0, 1), (1, 0), (2, 1), (3, 9)];
        let second = [(0, 2), (1, 0), (1, 1), (4, 4)];
        let expected = [(0, 0), (0, 1), (1, 2), (2, 0), (2, 1)];
        assert_eq!(
            compose(Some(&first), Some(&second)),
            Some(expected.to_vec())
        );
        assert_eq!(compose(None, Some(&second)), None);
    }

    #[test]
    fn what_happened_on_either_way_is_told() {
        let one = |score, finished, unknown, truncated| Translation {
            text: "x".to_owned(),
            score,
            log_prob: 2.0 * score,
            finished,
            unknown,
            truncated,
            repetition_blocked: unknown > 1,
            ..Translation::empty()
        };
        let joined = join((
            one(-1.0, Finish::EndOfSentence, 2, None),
            one(-0.5, Finish::LengthLimit, 1, Some(3)),
        ));
        assert_eq!((joined.score, joined.log_prob), (-1.5, -3.0));
        assert_eq!((joined.unknown, joined.truncated), (3, Some(3)));
        assert_eq!(joined.finished, Finish::LengthLimit);
        assert!(joined.repetition_blocked);
        assert_eq!(joined.pivot.as_deref(), Some("x"));
        let joined = join((
            one(-1.0, Finish::LengthLimit, 0, Some(1)),
            one(-0.5, Finish::EndOfSentence, 0, Some(3)),
        ));
        assert_eq!(
            (joined.finished, joined.truncated),
            (Finish::LengthLimit, Some(4))
        );
    }
}

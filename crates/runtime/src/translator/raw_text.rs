//! Raw text to sentences that a model knows, and their translations to lines again.
//!
//! ```text
//! line --split--> sentences --cut--> pieces --tags out, hide--> marks --fold--> model --unfold--> --restore, tags in--> --join--> line
//! ```
//!
//! A model is trained on single sentences. A line of raw text may hold several, with web addresses and emoji
//! in them (`attentive_text::keep`), or SHOUT. A sentence that is longer than the model can read becomes several pieces
//! (`attentive_text::clauses`), and so does a line that is translated whole. The [`super::Translator`] comes here if
//! [`super::Lines::RawText`] says so, and translates the sentences of all lines together.

use attentive_text::clauses::{self, End};
use attentive_text::keep;
use attentive_text::lines::is_blank;
use attentive_text::markup::units;
use attentive_text::{Tokenizer, sentences};

use super::options::Lines;
use super::prepared::{Case, Prepared};
use super::source::{Line, Sentence};
use super::terms::Phrase;
use super::translation::{Alternative, Translation};
use crate::engine::Stop;
use crate::search::Finish;

/// How what must be kept, an address for example, comes through a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// The model was taught marks that stand for it.
    AsMarks,
    /// The model reads and writes it like the rest of the text.
    AsText,
}

/// How lines become segments.
#[derive(Clone, Copy)]
pub(super) struct Style<'a> {
    /// What a line is.
    pub lines: Lines,
    /// The language of the text.
    pub language: Option<&'a str>,
    /// Whether words that are copied are aligned with themselves.
    pub alignments: bool,
    pub keep: Keep,
    /// Cuts text into tokens, of which a model reads so many at most.
    pub tokenizer: &'a Tokenizer,
    pub most_tokens: usize,
    /// What is asked to stop has no further sentences.
    pub stop: &'a Stop,
}

/// One translation for each line; `whole` translates segments.
pub(super) fn translate<L: Line>(
    lines: &[L],
    style: Style<'_>,
    whole: impl FnOnce(&[Sentence]) -> Vec<Translation>,
) -> Vec<Translation> {
    let lines: Vec<Vec<Segment>> = lines.iter().map(|line| segment(line, style)).collect();
    let sentences: Vec<Sentence> = lines
        .iter()
        .flatten()
        .filter_map(Segment::prepared)
        .collect();
    let mut answers = whole(&sentences).into_iter();
    let mut answered = |segments: &Vec<Segment>| {
        if style.stop.is_asked() {
            return Translation::empty();
        }
        let parts = segments.iter().map(|segment| {
            // One answer for each sentence: that is what `whole` promises.
            let answer = segment.is_translated().then(|| answers.next()).flatten();
            segment.finish(answer.unwrap_or_else(Translation::empty), style.alignments)
        });
        let parts = parts.collect();
        join(segments, parts)
    };
    lines.iter().map(&mut answered).collect()
}

/// A sentence of a line, and what is to be done with it.
#[derive(Debug)]
pub(super) struct Segment {
    /// The sentence.
    pub text: String,
    /// What is between it and the next one.
    pub gap: String,
    /// What ends with it.
    end: End,
    work: Work,
}

#[derive(Debug)]
enum Work {
    /// There is nothing to translate in it: numbers, signs, what is kept anyway.
    Copy,
    /// It is translated as it stands; its translation must start with a prefix and contain phrases.
    AsItStands(String, Vec<Phrase>),
    Translate(Box<Prepared>),
}

/// The segments of a line; none if the line is blank.
pub(super) fn segment<L: Line>(line: &L, style: Style<'_>) -> Vec<Segment> {
    if is_blank(line.text()) || style.stop.is_asked() {
        return Vec::new();
    }
    let mut prefix = line.prefix().trim();
    let mut segments = Vec::new();
    match style.lines {
        Lines::Whole => {
            // Nobody knows which piece they belong to.
            let mut phrases = line.phrases().to_vec();
            for (text, gap, end) in style.pieces(line.text(), "") {
                let prefix = std::mem::take(&mut prefix).to_owned();
                let phrases = std::mem::take(&mut phrases);
                segments.push(Segment {
                    text: text.to_owned(),
                    gap: gap.to_owned(),
                    end,
                    work: Work::AsItStands(prefix, phrases),
                });
            }
        }
        Lines::RawText => {
            for sentence in sentences::split(line.text(), style.language) {
                if style.stop.is_asked() {
                    return Vec::new();
                }
                for (text, gap, end) in style.pieces(sentence.text, sentence.gap) {
                    segments.push(Segment {
                        text: text.to_owned(),
                        gap: gap.to_owned(),
                        end,
                        work: Prepared::of(text, &mut prefix, style.keep)
                            .map_or(Work::Copy, |prepared| Work::Translate(Box::new(prepared))),
                    });
                }
            }
        }
    }
    segments
}

impl Style<'_> {
    /// Whether a text is so short that it need not be counted: a token has at least a byte.
    pub fn surely_fits(&self, text: &str) -> bool {
        text.len() < self.most_tokens
    }

    /// The pieces of a sentence that a model can read, with what is between them.
    fn pieces<'a>(&self, text: &'a str, gap: &'a str) -> Vec<(&'a str, &'a str, End)> {
        let tokens = |text: &str| {
            if self.lines == Lines::Whole || self.keep == Keep::AsText {
                return self.tokenizer.encode(text).len();
            }
            // As the model gets it: a mark may have more tokens than what it stands for.
            let hidden = keep::hide(text).text;
            let shown = Case::of(&hidden).fold(&hidden);
            self.tokenizer.encode(&shown).len()
        };
        let pieces = clauses::cut(text, self.most_tokens, tokens).into_iter();
        let piece = |piece: clauses::Piece<'a>| match piece.end {
            End::Sentence if piece.gap.is_empty() => (piece.text, gap, piece.end),
            end => (piece.text, piece.gap, end),
        };
        pieces.map(piece).collect()
    }
}

impl Segment {
    /// Whether the model has something to say about it.
    fn is_translated(&self) -> bool {
        !matches!(self.work, Work::Copy)
    }

    /// The translation as the user knows it, of the model's answer.
    pub fn finish(&self, mut answer: Translation, alignments: bool) -> Translation {
        if self.end != End::Sentence {
            self.unend(&mut answer.text, &mut answer.unit_alignment);
            for other in &mut answer.alternatives {
                self.unend(&mut other.text, &mut other.unit_alignment);
            }
        }
        match &self.work {
            Work::Translate(prepared) => prepared.finish(answer),
            Work::AsItStands(..) => answer,
            Work::Copy => copied(&self.text, alignments),
        }
    }

    /// A model ends every sentence with a period, also one that goes on in the next piece.
    fn unend(&self, text: &mut String, links: &mut Option<Vec<(usize, usize)>>) {
        if text.ends_with('.') && !text.ends_with("..") && !self.text.ends_with('.') {
            text.pop();
            if let Some(links) = links {
                let count = units(text).len();
                links.retain(|(_, tgt)| *tgt < count);
            }
        }
    }

    /// How many characters of the finished translation the beginning of an answer makes up.
    pub fn finished_chars(&self, beginning: &str) -> usize {
        match &self.work {
            Work::Translate(prepared) => prepared.finished_chars(beginning),
            Work::AsItStands(..) | Work::Copy => beginning.chars().count(),
        }
    }

    /// What the model gets to see.
    pub fn prepared(&self) -> Option<Sentence> {
        match &self.work {
            Work::Translate(prepared) => Some(prepared.sentence()),
            Work::AsItStands(prefix, phrases) => Some(Sentence {
                text: self.text.clone(),
                prefix: prefix.clone(),
                phrases: phrases.clone(),
                ..Sentence::default()
            }),
            Work::Copy => None,
        }
    }
}

/// A sentence without words is its own translation.
fn copied(text: &str, alignments: bool) -> Translation {
    let words = text.split_whitespace().count();
    Alternative {
        text: text.to_owned(),
        alignment: alignments.then(|| to_itself(words)),
        unit_alignment: alignments.then(|| to_itself(units(text).len())),
        ..Alternative::empty()
    }
    .into()
}

fn to_itself(count: usize) -> Vec<(usize, usize)> {
    (0..count).map(|place| (place, place)).collect()
}

/// A line out of its sentences. Its n-th alternative consists of their n-th alternatives, so that the
/// best come first again.
pub(super) fn join(segments: &[Segment], parts: Vec<Translation>) -> Translation {
    let parts: Vec<Part> = parts.into_iter().map(Part::of).collect();
    let ranks = parts.iter().map(|part| part.ranked.len()).max();
    let mut ranked = (0..ranks.unwrap_or(0)).map(|rank| joined(segments, &parts, rank));
    let Some(best) = ranked.next() else {
        return Translation::empty();
    };
    let notes = || parts.iter().map(|part| &part.notes);
    Translation {
        alternatives: ranked.collect(),
        truncated: notes()
            .filter_map(|notes| notes.truncated)
            .reduce(|a, b| a + b),
        unknown: notes().map(|notes| notes.unknown).sum(),
        missing_terms: notes()
            .flat_map(|notes| notes.missing_terms.clone())
            .collect(),
        repetition_blocked: notes().any(|notes| notes.repetition_blocked),
        moved: notes().map(|notes| notes.moved).sum(),
        ..best.into()
    }
}

/// What became of a sentence.
struct Part {
    /// Best first, and at least one.
    ranked: Vec<Alternative>,
    /// The rest of the answer.
    notes: Translation,
}

impl Part {
    fn of(mut answer: Translation) -> Self {
        let mut ranked = vec![answer.take_best()];
        ranked.append(&mut answer.alternatives);
        Self {
            ranked,
            notes: answer,
        }
    }

    /// The alternative of this rank, or the last one there is.
    fn ranked(&self, rank: usize) -> &Alternative {
        &self.ranked[rank.min(self.ranked.len() - 1)]
    }
}

/// The alternatives of one rank, one after the other, with the gaps of the line between them.
///
/// Probabilities of sentences multiply, so their logarithms add up. The score, however, is the mean over
/// the sentences that were translated: it is normalized by length, and two sentences are no worse
/// than one.
fn joined(segments: &[Segment], parts: &[Part], rank: usize) -> Alternative {
    let mut line = Alternative::empty();
    let chained = parts.iter().any(|part| part.ranked(rank).pivot.is_some());
    line.pivot = chained.then(String::new);
    let (mut links, mut unit_links) = (Some(Vec::new()), Some(Vec::new()));
    let (mut src_units, mut tgt_units) = (0, 0);
    let (mut src_words, mut tgt_words) = (Words::default(), Words::default());
    let mut translated = 0;
    let mut before = End::Sentence;
    for (segment, part) in segments.iter().zip(parts) {
        let found = part.ranked(rank);
        // 。 needs no space behind it, but its translation may.
        if before != End::WithinWord {
            let space = sentences::space_between(&line.text, &found.text);
            tgt_words.push(space);
            line.text.push_str(space);
        }
        before = segment.end;
        let words_before = (src_words.next(), tgt_words.next());
        add_links(&mut links, found.alignment.as_deref(), words_before);
        let units_before = (src_units, tgt_units);
        add_links(
            &mut unit_links,
            found.unit_alignment.as_deref(),
            units_before,
        );
        if unit_links.is_some() {
            src_units += units(&segment.text).len();
            tgt_units += units(&found.text).len();
        }
        line.text.push_str(&found.text);
        line.text.push_str(&segment.gap);
        for (words, text) in [
            (&mut src_words, &segment.text),
            (&mut tgt_words, &found.text),
        ] {
            words.push(text);
            words.push(&segment.gap);
        }
        if let Some(line) = &mut line.pivot {
            line.push_str(found.pivot.as_ref().unwrap_or(&found.text));
            line.push_str(&segment.gap);
        }
        translated += usize::from(segment.is_translated());
        line.score += found.score;
        line.log_prob += found.log_prob;
        if line.finished == Finish::EndOfSentence {
            line.finished = found.finished;
        }
        if let Some(tokens) = &found.tokens {
            line.tokens.get_or_insert_default().extend(tokens.clone());
        }
    }
    line.score /= translated.max(1) as f64;
    line.alignment = links;
    line.unit_alignment = unit_links;
    line
}

/// The links of a line with those of its next sentence, before which there are so many words or units on each side.
fn add_links(
    links: &mut Option<Vec<(usize, usize)>>,
    own: Option<&[(usize, usize)]>,
    (src, tgt): (usize, usize),
) {
    match (links.as_mut(), own) {
        (Some(links), Some(own)) => links.extend(own.iter().map(|(s, t)| (s + src, t + tgt))),
        _ => *links = None,
    }
}

/// Counts the words of a text that grows: a line may have thousands of sentences.
#[derive(Debug, Default)]
struct Words {
    begun: usize,
    /// Whether the last one may go on.
    within: bool,
}

impl Words {
    fn push(&mut self, text: &str) {
        let goes_on = self.within && text.starts_with(|c: char| !c.is_whitespace());
        self.begun += text.split_whitespace().count() - usize::from(goes_on);
        if let Some(last) = text.chars().next_back() {
            self.within = !last.is_whitespace();
        }
    }

    /// The number of the word that begins, or goes on, behind the text.
    fn next(&self) -> usize {
        self.begun - usize::from(self.within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `whole` answers: the same text with links from each word to itself.
    fn echo(sentences: &[Sentence]) -> Vec<Translation> {
        let answer = |sentence: &Sentence| {
            let words = sentence.text.split_whitespace().count();
            Translation {
                text: sentence.text.clone(),
                alignment: Some((0..words).map(|word| (word, word)).collect()),
                ..Translation::empty()
            }
        };
        sentences.iter().map(answer).collect()
    }

    /// Translates a line of raw text.
    fn translated(
        line: &str,
        language: &str,
        whole: impl FnOnce(&[Sentence]) -> Vec<Translation>,
    ) -> Translation {
        let tokenizer = Tokenizer::characters(
            ["<s>", "</s>", "<blank>", "<unk>"]
                .map(String::from)
                .to_vec(),
        );
        let style = Style {
            lines: Lines::RawText,
            language: Some(language),
            alignments: true,
            keep: Keep::AsMarks,
            tokenizer: &tokenizer.expect("a tokenizer"),
            most_tokens: 500,
            stop: &Stop::default(),
        };
        translate(&[line], style, whole).remove(0)
    }

    #[test]
    fn links_lead_to_the_words_of_the_line_also_where_something_was_hidden() {
        let line = "Nimm `cargo run --bin x` dafür. Und <a href=\"x\" id=\"y\">das</a> auch!";
        let found = translated(line, "de", echo);
        assert_eq!(found.text, line);
        let links = found.alignment.as_deref().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        let linked: Vec<&str> = links.iter().map(|&(src, _)| words[src]).collect();
        let expected = [
            "Nimm",
            "`cargo",
            "dafür.",
            "Und",
            "id=\"y\">das</a>",
            "auch!",
        ];
        assert_eq!(linked, expected, "{links:?}");
        assert!(links.iter().all(|(src, tgt)| src == tgt), "{links:?}");
    }

    #[test]
    fn sentences_get_a_space_where_the_source_needed_none() {
        let whole = |sentences: &[Sentence]| {
            let answer = |sentence: &Sentence| Translation {
                text: sentence
                    .text
                    .replace('你', "You")
                    .replace(['。', '！'], "."),
                ..Translation::empty()
            };
            sentences.iter().map(answer).collect()
        };
        assert_eq!(
            translated("你。你！ 你。", "zh", whole).text,
            "You. You. You."
        );
        let copied = |line: &str| translated(line, "zh", echo).text;
        for line in ["你。你！\"a。\"b「你！」c", "你。 你", "好!你", "है।वह"]
        {
            assert_eq!(copied(line), line);
        }
    }

    #[test]
    fn a_sentence_goes_on_in_the_word_before_it_if_there_is_no_gap() {
        let next_word = |text: &str| {
            // In two pieces, as the text of a line grows.
            let (first, rest) = text.split_at(text.len() / 2);
            let mut words = Words::default();
            words.push(first);
            words.push(rest);
            words.next()
        };
        assert_eq!(
            ["", "a", "a b", "a b ", " "].map(next_word),
            [0, 0, 1, 2, 0]
        );
    }
}

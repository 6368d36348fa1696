//! What becomes of a line.

use serde::Serialize;

use crate::search::Finish;

/// What became of one line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Translation {
    /// The best translation; empty for an empty line.
    pub text: String,
    /// Its length-normalized log-probability, by which alternatives are ranked; the mean over the
    /// sentences of a line of raw text ([`Lines::RawText`](super::Lines)), as two are no worse than one.
    pub score: f64,
    /// Its log-probability, of all sentences together.
    pub log_prob: f64,
    /// Why it ends where it ends.
    pub finished: Finish,
    /// Its tokens as people read them (and the model wrote them), if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Vec<String>>,
    /// The word alignment: pairs of source word and target word, both counted from 0, if it was asked for
    /// and the model can say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alignment: Option<Vec<(usize, usize)>>,
    /// As `alignment`, between smaller units than words: those of [`attentive_text::markup::units`].
    #[serde(skip)]
    pub unit_alignment: Option<Vec<(usize, usize)>>,
    /// What the first of two models made of it, if this one is from the second ([`Chain`](super::Chain)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pivot: Option<String>,
    /// The next best ones, best first, if `n_best` asked for more than one.
    pub alternatives: Vec<Alternative>,
    /// How many source tokens were cut off and not translated, if any: where not even a character fits into the model.
    pub truncated: Option<usize>,
    /// How many source tokens the vocabulary does not know, so that the model saw `<unk>`.
    pub unknown: usize,
    /// The terms that it should contain and does not, because the vocabulary cannot spell them, they have too
    /// many tokens, or the length limit leaves no room.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_terms: Vec<String>,
    /// Whether the first search gave a translation that repeats itself, so that this one is from a second
    /// search, in which no 3-gram may occur twice.
    #[serde(rename = "looped")]
    pub repetition_blocked: bool,
    /// How many placeholders, addresses and the like the model left out, wrote twice or misspelled, so that they were
    /// put where the alignment says.
    pub moved: usize,
}

/// Another translation of the same line; the fields mean what they mean in [`Translation`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Alternative {
    pub text: String,
    pub score: f64,
    pub log_prob: f64,
    pub finished: Finish,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alignment: Option<Vec<(usize, usize)>>,
    #[serde(skip)]
    pub unit_alignment: Option<Vec<(usize, usize)>>,
    #[serde(skip)]
    pub pivot: Option<String>,
}

impl Translation {
    /// The translation of an empty line.
    pub fn empty() -> Self {
        Alternative::empty().into()
    }

    /// The best translation; an empty one stays in its place.
    pub(super) fn take_best(&mut self) -> Alternative {
        Alternative {
            text: std::mem::take(&mut self.text),
            score: self.score,
            log_prob: self.log_prob,
            finished: self.finished,
            tokens: self.tokens.take(),
            alignment: self.alignment.take(),
            unit_alignment: self.unit_alignment.take(),
            pivot: self.pivot.take(),
        }
    }

    /// Puts the best translation into its place again.
    pub(super) fn put_best(&mut self, best: Alternative) {
        (self.text, self.score, self.log_prob) = (best.text, best.score, best.log_prob);
        (self.finished, self.tokens) = (best.finished, best.tokens);
        (self.alignment, self.unit_alignment) = (best.alignment, best.unit_alignment);
        self.pivot = best.pivot;
    }
}

impl Alternative {
    /// The empty translation.
    pub(super) fn empty() -> Self {
        Self {
            text: String::new(),
            score: 0.0,
            log_prob: 0.0,
            finished: Finish::EndOfSentence,
            tokens: None,
            alignment: None,
            unit_alignment: None,
            pivot: None,
        }
    }
}

/// The best translation of a line about which nothing else is to be said.
impl From<Alternative> for Translation {
    fn from(best: Alternative) -> Self {
        Self {
            text: best.text,
            score: best.score,
            log_prob: best.log_prob,
            finished: best.finished,
            tokens: best.tokens,
            alignment: best.alignment,
            unit_alignment: best.unit_alignment,
            pivot: best.pivot,
            alternatives: Vec::new(),
            truncated: None,
            unknown: 0,
            missing_terms: Vec::new(),
            repetition_blocked: false,
            moved: 0,
        }
    }
}

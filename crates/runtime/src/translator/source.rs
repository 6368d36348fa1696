//! Lines to tokens.

use std::ops::Range;

use attentive_model::Generation;
use attentive_model::directory::Tokenizers;
use attentive_text::lines::is_blank;
use attentive_text::special::{EOS, UNK};

use super::alignment;
use super::options::TranslatorOptions;
use super::terms::Phrase;
use crate::search::Request;

/// What can be translated: a text, or a text [`WithPrefix`].
pub trait Line {
    /// The text to translate.
    fn text(&self) -> &str;

    /// What its translation must start with; whole words, as a model continues them with a new one.
    fn prefix(&self) -> &str {
        ""
    }

    /// What its translation must contain, besides the terms of a glossary; for sentences, as one of several in a line
    /// of raw text is not told apart.
    fn phrases(&self) -> &[Phrase] {
        &[]
    }

    /// What its translation must hold exactly as often as it stands here.
    fn kept(&self) -> &[String] {
        &[]
    }

    /// Whether its translation is to have an alignment, whatever the options say.
    fn is_aligned(&self) -> bool {
        false
    }
}

impl<S: AsRef<str>> Line for S {
    fn text(&self) -> &str {
        self.as_ref()
    }
}

/// A text, and what its translation must start with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct WithPrefix {
    pub text: String,
    pub prefix: String,
}

impl Line for WithPrefix {
    fn text(&self) -> &str {
        &self.text
    }

    fn prefix(&self) -> &str {
        &self.prefix
    }
}

/// A sentence as the model gets it, and what its translation must be like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sentence {
    /// The sentence.
    pub text: String,
    /// What its translation must start with.
    pub prefix: String,
    /// What its translation must contain.
    pub phrases: Vec<Phrase>,
    /// What its translation must hold exactly as often as it stands here.
    pub kept: Vec<String>,
    /// Whether its translation is to have an alignment, whatever the options say.
    pub is_aligned: bool,
}

impl Line for Sentence {
    fn text(&self) -> &str {
        &self.text
    }

    fn prefix(&self) -> &str {
        &self.prefix
    }

    fn phrases(&self) -> &[Phrase] {
        &self.phrases
    }

    fn kept(&self) -> &[String] {
        &self.kept
    }

    fn is_aligned(&self) -> bool {
        self.is_aligned
    }
}

/// The tokens that a model wants around a source and before a target, besides `<s>` and the target's `</s>`.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub before_source: Vec<u32>,
    pub after_source: Vec<u32>,
    pub before_target: Vec<u32>,
    /// Tokens of a target that are not text.
    pub hidden: Vec<u32>,
}

impl Frame {
    pub fn of(generation: &Generation) -> Self {
        let end = generation.source_end.then_some(EOS);
        Self {
            before_source: generation.source_prefix.clone(),
            after_source: end.into_iter().collect(),
            before_target: generation.target_prefix.clone(),
            hidden: generation.hidden.clone(),
        }
    }

    /// The most tokens that a source may have within it.
    pub fn room(&self, options: &TranslatorOptions) -> usize {
        let framing = self.before_source.len() + self.after_source.len();
        options.max_source_tokens.saturating_sub(framing).max(1)
    }

    /// The source as the model reads it.
    fn source(&self, tokens: &[u32]) -> Vec<u32> {
        [&self.before_source, tokens, &self.after_source].concat()
    }
}

/// A line as tokens.
#[derive(Debug)]
pub(super) struct Source {
    pub request: Request,
    /// How many tokens were cut off.
    pub truncated: usize,
    /// How many tokens the vocabulary does not know.
    pub unknown: usize,
    /// Which word each token belongs to, if alignments were asked for.
    pub words: Option<Vec<usize>>,
    /// What the translation must contain.
    pub phrases: Vec<Phrase>,
    /// Which units each token writes, if links between them may be needed.
    pub units: Option<Vec<Range<usize>>>,
    /// What the translation must hold.
    pub kept: Vec<String>,
    /// Whether the translation is to have links between units.
    pub is_aligned: bool,
}

impl Source {
    /// Text -> tokens, or nothing if there is nothing to translate.
    pub fn new<L: Line>(
        line: &L,
        tokenizers: &Tokenizers,
        frame: &Frame,
        options: &TranslatorOptions,
    ) -> Option<Self> {
        let text = line.text();
        if is_blank(text) {
            return None;
        }
        let mut tokens = tokenizers.src.encode(text);
        if tokens.is_empty() {
            return None;
        }
        let words = options
            .alignments
            .then(|| alignment::words_of(&tokenizers.src, &tokens, Some(text)));
        let is_aligned = options.alignments || line.is_aligned();
        let may_need_units = is_aligned || !line.kept().is_empty();
        let units = may_need_units.then(|| alignment::units_of(&tokenizers.src, &tokens, text));
        // Longer lines were cut into pieces; of one with several tokens in each character the rest is lost, and told.
        let truncated = tokens.len().saturating_sub(frame.room(options));
        tokens.truncate(tokens.len() - truncated);
        let unknown = tokens.iter().filter(|&&token| token == UNK).count();
        let given = tokenizers.tgt.encode(line.prefix().trim());
        Some(Self {
            request: Request {
                prefix: [&frame.before_target[..], &given].concat(),
                free_prefix: frame.before_target.len(),
                ..Request::new(frame.source(&tokens))
            },
            truncated,
            unknown,
            words,
            phrases: Vec::new(),
            units,
            kept: line.kept().to_vec(),
            is_aligned,
        })
    }
}

//! Lines to tokens.

use attentive_model::directory::Tokenizers;
use attentive_text::lines::is_blank;
use attentive_text::special::{UNK, source_ids};

use super::alignment;
use super::options::TranslatorOptions;
use crate::search::Request;

/// What can be translated: a text, or a text [`WithPrefix`].
pub trait Line {
    /// The text to translate.
    fn text(&self) -> &str;

    /// What its translation must start with; whole words, as a model continues them with a new one.
    fn prefix(&self) -> &str {
        ""
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

/// A line as tokens.
pub(super) struct Source {
    pub request: Request,
    /// How many tokens were cut off.
    pub truncated: usize,
    /// How many tokens the vocabulary does not know.
    pub unknown: usize,
    /// Which word each token belongs to, if alignments were asked for.
    pub words: Option<Vec<usize>>,
}

impl Source {
    /// Text -> tokens, or nothing if there is nothing to translate.
    pub fn new<L: Line>(
        line: &L,
        tokenizers: &Tokenizers,
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
        let truncated = tokens.len().saturating_sub(options.max_source_tokens - 1);
        tokens.truncate(tokens.len() - truncated);
        let unknown = tokens.iter().filter(|&&token| token == UNK).count();
        Some(Self {
            request: Request {
                prefix: tokenizers.tgt.encode(line.prefix().trim()),
                ..Request::new(source_ids(tokens))
            },
            truncated,
            unknown,
            words,
        })
    }
}

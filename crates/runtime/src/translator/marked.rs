//! Text with inline markup: tags leave before a translation and come back around the words that they belonged to.
//!
//! Readers of documents make [`Marked`] texts and get them back translated ([`Translator::translate_marked`]);
//! programs with a queue of their own do the two halves themselves:
//!
//! ```text
//! Marked --Unmarked::of--> text --(split, search, found, join: see `split`)--> Translation --Unmarked::restore--> Marked
//! ```
//!
//! Which words belong together is said by cross-attention (`alignment`), where in the translation tags go by
//! [`attentive_text::markup::Bare`]. A text with markup is raw text, whatever [`TranslatorOptions::lines`] says: its
//! sentences are translated one by one, and what is kept is kept.

use attentive_text::markup::{Bare, Marked};

use super::{Chain, Lines, Translation, Translator, TranslatorOptions};
use crate::error::Result;
use crate::search::SearchModel;

/// What became of a text with markup.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkedTranslation {
    /// The translation with the same tags as its source: each exactly once and well nested.
    pub marked: Marked,
    /// The translation of the text alone: scores, and what was cut, unknown or searched again. Its text is that of
    /// `marked`, but that verbatim parts are private characters.
    pub translation: Translation,
    /// Tags for whose words the translation has no counterpart. They stand where their neighbors are, for a report.
    pub unplaced: Vec<u32>,
}

/// A text whose markup was taken out: the first half of [`Translator::translate_marked`].
#[derive(Debug, Clone)]
pub struct Unmarked(Bare);

impl Unmarked {
    /// Takes the markup out of a text.
    pub fn of(marked: &Marked) -> Self {
        Self(Bare::of(marked))
    }

    /// What is to be translated, as raw text ([`Lines::RawText`]), with alignments if it [has tags](Self::has_tags).
    pub fn text(&self) -> &str {
        self.0.text()
    }

    /// Whether there are tags, so that the translation needs alignments.
    pub fn has_tags(&self) -> bool {
        self.0.has_tags()
    }

    /// The translation of [`Unmarked::text`] with the tags in their places. A translation without alignments keeps
    /// them in their relative places, and says that they are unplaced.
    pub fn restore(&self, translation: Translation) -> MarkedTranslation {
        let links = translation.unit_alignment.as_deref();
        let restored = self.0.restore(&translation.text, links);
        MarkedTranslation {
            marked: restored.marked,
            unplaced: restored.unplaced,
            translation,
        }
    }
}

impl<M: SearchModel + Send + Sync> Translator<M> {
    /// One translation for each text with markup, in the same order: the text translated as raw text, sentence by
    /// sentence; tags around the words that they belonged to, each exactly once and well nested; verbatim parts as
    /// they were. A line break in a text ends a sentence.
    ///
    /// ```
    /// use attentive_runtime::Translator;
    /// use attentive_text::markup::{Marked, Part};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # attentive_model::fake_dir::write(folder.path())?;
    /// # let translator = Translator::open(folder.path())?;
    /// let text = Marked {
    ///     parts: vec![Part::Text("a ".into()), Part::Open(7), Part::Text("b".into()), Part::Close(7)],
    /// };
    /// let translated = translator.translate_marked(&[text]);
    /// assert!(translated[0].marked.parts.contains(&Part::Open(7)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn translate_marked(&self, texts: &[Marked]) -> Vec<MarkedTranslation> {
        translate(texts, |lines, alignments| {
            match self.for_markup(alignments) {
                Ok(translator) => translator.translate(lines),
                // These options differ from those that were checked only in what they ask for.
                Err(_) => self.translate(lines),
            }
        })
    }

    /// The same translator for the text of an [`Unmarked`], with alignments or without.
    pub fn for_markup(&self, alignments: bool) -> Result<Self> {
        self.with_options(TranslatorOptions {
            lines: Lines::RawText,
            alignments: alignments || self.options.alignments,
            ..self.options.clone()
        })
    }
}

impl<A: SearchModel + Send + Sync, B: SearchModel + Send + Sync> Chain<A, B> {
    /// As [`Translator::translate_marked`].
    pub fn translate_marked(&self, texts: &[Marked]) -> Vec<MarkedTranslation> {
        translate(texts, |lines, alignments| {
            let chain = |alignments| {
                let first = self.first.for_markup(alignments)?;
                Self::new(first, self.second.for_markup(alignments)?)
            };
            match chain(alignments) {
                Ok(chain) => chain.translate(lines),
                Err(_) => self.translate(lines),
            }
        })
    }
}

/// Translates the texts that have tags together, and those that have none: they need no alignments.
fn translate(
    texts: &[Marked],
    lines: impl Fn(&[&str], bool) -> Vec<Translation>,
) -> Vec<MarkedTranslation> {
    let texts: Vec<Unmarked> = texts.iter().map(Unmarked::of).collect();
    let translated = |tagged: bool| {
        let own = texts.iter().filter(|text| text.has_tags() == tagged);
        let own: Vec<&str> = own.map(Unmarked::text).collect();
        if own.is_empty() {
            Vec::new()
        } else {
            lines(&own, tagged)
        }
        .into_iter()
    };
    let (mut tagged, mut plain) = (translated(true), translated(false));
    let restored = |text: &Unmarked| {
        let translation = if text.has_tags() {
            tagged.next()
        } else {
            plain.next()
        };
        text.restore(translation.unwrap_or_else(Translation::empty))
    };
    texts.iter().map(restored).collect()
}

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

use attentive_text::markup::{Bare, Marked, Page};

use super::{Alternative, Chain, Lines, Translation, Translator, TranslatorOptions};
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

    /// The texts of a page, without their markup.
    pub fn all(page: &Page) -> Vec<Self> {
        page.texts().iter().map(Self::of).collect()
    }

    /// The page with translations of its texts ([`Unmarked::all`]). Its score is the mean of theirs, and its n-th
    /// alternative has their n-th alternatives.
    pub fn page(page: &Page, texts: &[Self], translations: &[Translation]) -> Translation {
        let ranks = translations.iter().map(|one| one.alternatives.len()).max();
        let ranked = |rank: Option<usize>| {
            let text = |(text, one): (&Self, &Translation)| -> Marked {
                let last = one.alternatives.len().checked_sub(1);
                let other = rank
                    .zip(last)
                    .map(|(rank, last)| &one.alternatives[rank.min(last)]);
                let one = other.map_or_else(|| one.clone(), |other| other.clone().into());
                text.restore(one).marked
            };
            let texts: Vec<Marked> = texts.iter().zip(translations).map(text).collect();
            page.write(&texts)
        };
        let mut whole = Translation::empty();
        for one in translations {
            whole.score += one.score / translations.len() as f64;
            whole.log_prob += one.log_prob;
            whole.unknown += one.unknown;
            whole.repetition_blocked |= one.repetition_blocked;
            if let Some(cut) = one.truncated {
                whole.truncated = Some(whole.truncated.unwrap_or(0) + cut);
            }
        }
        let alternative = |rank| Alternative {
            text: ranked(Some(rank)),
            score: whole.score,
            log_prob: whole.log_prob,
            ..Alternative::empty()
        };
        whole.alternatives = (0..ranks.unwrap_or(0)).map(alternative).collect();
        whole.text = ranked(None);
        whole
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
        let texts: Vec<Unmarked> = texts.iter().map(Unmarked::of).collect();
        let found = translations(&texts, |lines, alignments| {
            self.translate_unmarked(lines, alignments)
        });
        texts.iter().zip(found).map(restored).collect()
    }

    /// One translation for each page, in the same order; the texts of all pages are translated together. The score of a
    /// page is the mean of those of its texts, and its n-th alternative has their n-th alternatives.
    pub fn translate_pages(&self, pages: &[Page]) -> Vec<Translation> {
        let texts: Vec<Vec<Unmarked>> = pages.iter().map(Unmarked::all).collect();
        let found = translations(&texts.concat(), |lines, alignments| {
            self.translate_unmarked(lines, alignments)
        });
        let mut found = found.into_iter();
        let page = |(page, texts): (&Page, &Vec<Unmarked>)| {
            let own: Vec<Translation> = found.by_ref().take(texts.len()).collect();
            Unmarked::page(page, texts, &own)
        };
        pages.iter().zip(&texts).map(page).collect()
    }

    fn translate_unmarked(&self, lines: &[&str], alignments: bool) -> Vec<Translation> {
        match self.for_markup(alignments) {
            Ok(translator) => translator.translate(lines),
            // These options differ from those that were checked only in what they ask for.
            Err(_) => self.translate(lines),
        }
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
        let texts: Vec<Unmarked> = texts.iter().map(Unmarked::of).collect();
        let found = translations(&texts, |lines, alignments| {
            let chain = |alignments| {
                let first = self.first.for_markup(alignments)?;
                Self::new(first, self.second.for_markup(alignments)?)
            };
            match chain(alignments) {
                Ok(chain) => chain.translate(lines),
                Err(_) => self.translate(lines),
            }
        });
        texts.iter().zip(found).map(restored).collect()
    }
}

/// Translates the texts that have tags together, and those that have none: they need no alignments.
fn translations(
    texts: &[Unmarked],
    lines: impl Fn(&[&str], bool) -> Vec<Translation>,
) -> Vec<Translation> {
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
    let translation = |text: &Unmarked| {
        let next = if text.has_tags() {
            tagged.next()
        } else {
            plain.next()
        };
        next.unwrap_or_else(Translation::empty)
    };
    texts.iter().map(translation).collect()
}

fn restored((text, translation): (&Unmarked, Translation)) -> MarkedTranslation {
    text.restore(translation)
}

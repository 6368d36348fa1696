//! Word tokenizers: text cut into words (or cut already, with tabs), and a list of known words.
//!
//! The word list is that of the paper's first reproductions (spaCy tokens, words seen at least
//! twice). Words are found by the Unicode word boundaries (UAX #29); punctuation marks are tokens of
//! their own and spaces are dropped, so [`super::spacing`] puts them back when decoding.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation;

use super::lowercased;
use super::options::{TokenizerKind, TokenizerOptions};
use super::spacing::{Spacing, joined};
use super::vocabulary::Vocabulary;
use super::word_ids::{Reached, WordCounter};
use crate::error::{Result, TextError};
use crate::special::{BOS, EOS, PAD};

/// A tokenizer with a list of words.
#[derive(Debug)]
pub(super) struct WordTokenizer {
    cut: Cut,
    lowercase: bool,
    vocabulary: Vocabulary,
}

/// Where one token ends and the next begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    UnicodeWords,
    Tabs,
    Spaces,
}

/// The file's layout; `format` tells it apart from the subword library's files.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WordFile<'f> {
    format: Cow<'f, str>,
    kind: TokenizerKind,
    lowercase: bool,
    tokens: Cow<'f, [String]>,
}

pub(super) const FORMAT: &str = "attentive-words-1";

impl WordTokenizer {
    pub(super) fn train(
        options: &TokenizerOptions,
        texts: &mut dyn Iterator<Item = &str>,
    ) -> Result<Self> {
        let cut = match options.kind {
            TokenizerKind::Tabs => Cut::Tabs,
            _ => Cut::UnicodeWords,
        };
        let mut counts: HashMap<String, u64> = HashMap::new();
        for text in texts {
            let text = lowercased(text, options.lowercase);
            for token in cut.tokens(&text) {
                // Most tokens are known already, and looking one up needs no owned string.
                match counts.get_mut(token) {
                    Some(count) => *count += 1,
                    None => drop(counts.insert(token.to_owned(), 1)),
                }
            }
        }
        if counts.is_empty() {
            return Err(TextError::NoText);
        }
        let vocabulary =
            Vocabulary::from_counts(counts, options.min_frequency as u64, options.vocab_size);
        if vocabulary.len() == crate::special::SPECIALS.len() {
            return Err(TextError::NoFrequentWords {
                min_frequency: options.min_frequency,
            });
        }
        Ok(Self {
            cut,
            lowercase: options.lowercase,
            vocabulary,
        })
    }

    /// Reads the file's text; says what is wrong if it cannot be used.
    pub(super) fn from_json(json: &str) -> std::result::Result<Self, String> {
        let file: WordFile = serde_json::from_str(json).map_err(|error| error.to_string())?;
        if file.format != FORMAT {
            return Err(format!(
                "its format is {:?}, expected {FORMAT:?}",
                file.format
            ));
        }
        let cut = match file.kind {
            TokenizerKind::Word => Cut::UnicodeWords,
            TokenizerKind::Tabs => Cut::Tabs,
            TokenizerKind::Spaces => Cut::Spaces,
            other => return Err(format!("a word list cannot be of kind {other}")),
        };
        let vocabulary = Vocabulary::new(file.tokens.into_owned())?;
        Ok(Self {
            cut,
            lowercase: file.lowercase,
            vocabulary,
        })
    }

    /// Lines that are cut already, with spaces between tokens.
    pub(super) fn of_spaces(tokens: Vec<String>) -> std::result::Result<Self, String> {
        Ok(Self {
            cut: Cut::Spaces,
            lowercase: false,
            vocabulary: Vocabulary::new(tokens)?,
        })
    }

    pub(super) fn to_json(&self) -> String {
        let file = WordFile {
            format: Cow::Borrowed(FORMAT),
            kind: self.kind(),
            lowercase: self.lowercase,
            tokens: Cow::Borrowed(self.vocabulary.tokens()),
        };
        // Strings, a flag and an enum always have a JSON form.
        serde_json::to_string_pretty(&file).expect("a word list is plain JSON")
    }

    pub(super) fn encode(&self, text: &str) -> Vec<u32> {
        let text = lowercased(text, self.lowercase);
        self.cut
            .tokens(&text)
            .map(|token| self.vocabulary.id_in_text(token))
            .collect()
    }

    pub(super) fn decode(&self, ids: &[u32]) -> String {
        let tokens = ids.iter().filter_map(|id| self.shown(*id));
        match self.cut {
            Cut::Tabs | Cut::Spaces => tokens.collect::<Vec<_>>().join(" "),
            Cut::UnicodeWords => joined(tokens),
        }
    }

    pub(super) fn reached(&self, ids: &[u32]) -> Vec<Reached> {
        let (mut counter, mut spacing) = (WordCounter::default(), Spacing::default());
        let reached = |id: &u32| {
            if let Some(token) = self.shown(*id) {
                if self.cut != Cut::UnicodeWords || spacing.space_before(token) {
                    counter.push([' ']);
                }
                counter.push(token.chars());
            }
            counter.reached()
        };
        ids.iter().map(reached).collect()
    }

    /// What an id adds to a text, if anything.
    fn shown(&self, id: u32) -> Option<&str> {
        (![BOS, EOS, PAD].contains(&id)).then(|| self.vocabulary.shown(id))
    }

    pub(super) fn kind(&self) -> TokenizerKind {
        match self.cut {
            Cut::UnicodeWords => TokenizerKind::Word,
            Cut::Tabs => TokenizerKind::Tabs,
            Cut::Spaces => TokenizerKind::Spaces,
        }
    }

    pub(super) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }
}

impl Cut {
    fn tokens(self, text: &str) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::UnicodeWords => Box::new(
                text.split_word_bounds()
                    .filter(|word| !word.chars().all(char::is_whitespace)),
            ),
            Self::Tabs => Box::new(text.split('\t').filter(|token| !token.is_empty())),
            Self::Spaces => Box::new(text.split([' ', '\t']).filter(|token| !token.is_empty())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::UNK;

    fn trained(kind: TokenizerKind, text: &[&str]) -> WordTokenizer {
        let options = TokenizerOptions {
            kind,
            vocab_size: 0,
            min_frequency: 1,
            lowercase: false,
        };
        WordTokenizer::train(&options, &mut text.iter().copied()).unwrap()
    }

    #[test]
    fn words_and_punctuation_are_tokens_and_spaces_are_not() {
        let tokens: Vec<&str> = Cut::UnicodeWords
            .tokens(" Don't  pay 3.50, Zoë!\t(Größe)")
            .collect();
        assert_eq!(
            tokens,
            ["Don't", "pay", "3.50", ",", "Zoë", "!", "(", "Größe", ")"]
        );
    }

    #[test]
    fn tabs_separate_tokens_that_may_hold_spaces() {
        let tokens: Vec<&str> = Cut::Tabs.tokens("New York\tist\t\tgroß\t.").collect();
        assert_eq!(tokens, ["New York", "ist", "groß", "."]);
    }

    #[test]
    fn spaces_separate_tokens_of_another_program() {
        let tokens = ["<s>", "</s>", "<blank>", "<unk>", "le", "chat@@", "."];
        let spaces = WordTokenizer::of_spaces(tokens.map(str::to_owned).into()).unwrap();
        let ids = spaces.encode(" le chat@@  ici .");
        assert_eq!(ids, [4, 5, UNK, 6]);
        assert_eq!(spaces.decode(&ids), "le chat@@ <unk> .");
        let read = WordTokenizer::from_json(&spaces.to_json()).unwrap();
        assert_eq!(read.encode("chat@@ le"), [5, 4]);
    }

    #[test]
    fn decoding_tabs_joins_with_a_space() {
        let tokenizer = trained(TokenizerKind::Tabs, &["Ein\tMann\t,\tallein\t."]);
        assert_eq!(
            tokenizer.decode(&tokenizer.encode("Ein\tMann\t,\tallein\t.")),
            "Ein Mann , allein ."
        );
    }

    #[test]
    fn rare_and_unknown_words_are_unk_and_shown() {
        let options = TokenizerOptions {
            kind: TokenizerKind::Word,
            vocab_size: 0,
            min_frequency: 2,
            lowercase: false,
        };
        let tokenizer = WordTokenizer::train(&options, &mut ["a b a", "b c"].into_iter()).unwrap();
        assert_eq!(tokenizer.encode("a c b d"), [4, UNK, 5, UNK]);
        assert_eq!(
            tokenizer.decode(&[BOS, 4, UNK, 5, 77, EOS, PAD]),
            "a <unk> b <unk>"
        );
    }

    #[test]
    fn lowercase_makes_one_word_of_two() {
        let options = TokenizerOptions {
            kind: TokenizerKind::Word,
            vocab_size: 0,
            min_frequency: 2,
            lowercase: true,
        };
        let tokenizer = WordTokenizer::train(&options, &mut ["Über über"].into_iter()).unwrap();
        assert_eq!(tokenizer.encode("ÜBER"), [4]);
        assert_eq!(tokenizer.decode(&[4]), "über");
    }

    #[test]
    fn special_spellings_never_become_special_ids() {
        let tabs = trained(
            TokenizerKind::Tabs,
            &["</s>\t<s>\ta", "</s>\t<unk>\t<blank>"],
        );
        assert_eq!(
            tabs.encode("</s>\t<s>\t<blank>\t<unk>\ta"),
            [UNK, UNK, UNK, UNK, 4]
        );
        let word = trained(TokenizerKind::Word, &["</s> <unk> a"]);
        assert!(word.encode("</s> <s> <blank>").iter().all(|id| *id >= UNK));
    }

    #[test]
    fn no_text_and_no_frequent_word_are_errors() {
        let options = TokenizerOptions {
            kind: TokenizerKind::Word,
            vocab_size: 0,
            min_frequency: 2,
            lowercase: false,
        };
        let train = |text| WordTokenizer::train(&options, &mut [text].into_iter()).unwrap_err();
        assert!(matches!(train(" \t "), TextError::NoText));
        let message = train("all words differ").to_string();
        assert!(message.contains("no word occurs 2 times"), "{message}");
        assert!(message.contains("lower `min_frequency`"), "{message}");
    }
}

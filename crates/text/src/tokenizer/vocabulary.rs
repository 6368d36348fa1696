//! A vocabulary: tokens in the order of their ids, the four special tokens first.

use std::collections::HashMap;

use crate::special::{SPECIALS, UNK};

/// Tokens by id and ids by token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Vocabulary {
    tokens: Vec<String>,
    ids: HashMap<String, u32>,
}

impl Vocabulary {
    /// Takes a whole list of tokens; says what is wrong if it does not start with the special
    /// tokens or names a token twice.
    pub(super) fn new(tokens: Vec<String>) -> Result<Self, String> {
        if tokens.len() < SPECIALS.len()
            || !tokens
                .iter()
                .zip(SPECIALS)
                .all(|(token, special)| token == special)
        {
            let found = &tokens[..tokens.len().min(SPECIALS.len())];
            return Err(format!(
                "its first tokens should be {SPECIALS:?} but are {found:?}"
            ));
        }
        if u32::try_from(tokens.len()).is_err() {
            return Err(format!("it has {} tokens, more than ids", tokens.len()));
        }
        let mut ids = HashMap::with_capacity(tokens.len());
        for (id, token) in (0..).zip(&tokens) {
            if let Some(first) = ids.insert(token.clone(), id) {
                return Err(format!(
                    "token {token:?} stands there twice, as {first} and {id}"
                ));
            }
        }
        Ok(Self { tokens, ids })
    }

    /// The tokens that occur `min_frequency` times or more, most frequent first and then by
    /// spelling, so that neither the order of lines nor that of a hash map shows; `limit` counts
    /// the special tokens, and 0 is no limit.
    pub(super) fn from_counts(
        counts: HashMap<String, u64>,
        min_frequency: u64,
        limit: usize,
    ) -> Self {
        let mut kept: Vec<(String, u64)> = counts
            .into_iter()
            .filter(|(token, count)| *count >= min_frequency && !is_special(token))
            .collect();
        kept.sort_unstable_by(|(a, a_count), (b, b_count)| {
            b_count.cmp(a_count).then_with(|| a.cmp(b))
        });
        if limit > 0 {
            kept.truncate(limit.saturating_sub(SPECIALS.len()));
        }
        let tokens: Vec<String> = SPECIALS
            .iter()
            .map(|special| (*special).to_owned())
            .chain(kept.into_iter().map(|(token, _)| token))
            .collect();
        let ids = (0..)
            .zip(&tokens)
            .map(|(id, token)| (token.clone(), id))
            .collect();
        Self { tokens, ids }
    }

    /// The id of a token that was found in a text: special spellings and unknown tokens are `UNK`.
    pub(super) fn id_in_text(&self, token: &str) -> u32 {
        match self.ids.get(token) {
            Some(&id) if id as usize >= SPECIALS.len() => id,
            _ => UNK,
        }
    }

    pub(super) fn id(&self, token: &str) -> Option<u32> {
        self.ids.get(token).copied()
    }

    pub(super) fn token(&self, id: u32) -> Option<&str> {
        self.tokens.get(id as usize).map(String::as_str)
    }

    /// The token of an id, or `<unk>` for an id that does not exist.
    pub(super) fn shown(&self, id: u32) -> &str {
        self.token(id).unwrap_or(SPECIALS[UNK as usize])
    }

    pub(super) fn tokens(&self) -> &[String] {
        &self.tokens
    }

    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }
}

fn is_special(token: &str) -> bool {
    SPECIALS.contains(&token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(counts: &[(&str, u64)]) -> HashMap<String, u64> {
        counts
            .iter()
            .map(|(token, count)| ((*token).to_owned(), *count))
            .collect()
    }

    #[test]
    fn tokens_are_ordered_by_frequency_and_then_by_spelling() {
        let vocabulary = Vocabulary::from_counts(
            counts(&[("b", 2), ("z", 9), ("a", 2), ("rare", 1), ("c", 2)]),
            2,
            0,
        );
        assert_eq!(vocabulary.tokens()[SPECIALS.len()..], ["z", "a", "b", "c"]);
        assert_eq!(vocabulary.id("z"), Some(4));
        assert_eq!(vocabulary.token(4), Some("z"));
        assert_eq!((vocabulary.id("rare"), vocabulary.token(8)), (None, None));
    }

    #[test]
    fn the_limit_counts_the_special_tokens() {
        let vocabulary = Vocabulary::from_counts(counts(&[("a", 3), ("b", 2), ("c", 1)]), 1, 6);
        assert_eq!(
            vocabulary.tokens(),
            ["<s>", "</s>", "<blank>", "<unk>", "a", "b"]
        );
    }

    #[test]
    fn special_spellings_in_a_text_are_unknown_words() {
        let vocabulary = Vocabulary::from_counts(counts(&[("</s>", 99), ("a", 9)]), 1, 0);
        assert_eq!(vocabulary.len(), SPECIALS.len() + 1);
        assert_eq!(vocabulary.id_in_text("</s>"), UNK);
        assert_eq!(vocabulary.id_in_text("a"), 4);
        assert_eq!(vocabulary.id("</s>"), Some(1));
    }

    #[test]
    fn a_list_must_start_with_the_specials_and_name_nothing_twice() {
        let list =
            |tokens: &[&str]| Vocabulary::new(tokens.iter().map(|t| t.to_string()).collect());
        assert!(list(&["<s>", "</s>", "<blank>", "<unk>", "a"]).is_ok());
        assert!(list(&["<s>", "</s>"]).unwrap_err().contains("first tokens"));
        assert!(
            list(&["<s>", "</s>", "<unk>", "<blank>"])
                .unwrap_err()
                .contains("first tokens")
        );
        let twice = list(&["<s>", "</s>", "<blank>", "<unk>", "a", "a"]).unwrap_err();
        assert!(
            twice.contains(r#""a" stands there twice, as 4 and 5"#),
            "{twice}"
        );
    }
}

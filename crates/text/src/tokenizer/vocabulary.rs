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

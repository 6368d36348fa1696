//! Which tokens may come next: the rules that hold for every way of searching.

use attentive_text::special::{BOS, EOS, PAD};

use super::SearchOptions;

/// The rules for one row.
pub(super) struct Allowed<'a> {
    ends: bool,
    banned: &'a [u32],
}

impl<'a> Allowed<'a> {
    /// The rules after `produced` tokens, which `history` holds if `no_repeat_ngram` is set;
    /// `banned` is memory to work with.
    pub(super) fn after(
        produced: usize,
        history: &[u32],
        banned: &'a mut Vec<u32>,
        options: &SearchOptions,
    ) -> Self {
        banned.clear();
        if let Some(n) = options.no_repeat_ngram {
            ban_repetitions(history, n, banned);
        }
        Self {
            ends: produced >= options.min_length,
            banned,
        }
    }

    /// Whether this token may come next.
    pub(super) fn permits(&self, token: u32) -> bool {
        token != BOS && token != PAD && (token != EOS || self.ends) && !self.banned.contains(&token)
    }
}

/// The tokens that would complete `n` tokens which stand in the history already.
fn ban_repetitions(history: &[u32], n: usize, banned: &mut Vec<u32>) {
    let Some(start) = (history.len() + 1).checked_sub(n) else {
        return;
    };
    let tail = &history[start..];
    let repeated = history.windows(n).filter(|seen| seen[..n - 1] == *tail);
    banned.extend(repeated.map(|seen| seen[n - 1]));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn banned(history: &[u32], n: usize) -> Vec<u32> {
        let mut banned = Vec::new();
        ban_repetitions(history, n, &mut banned);
        banned
    }

    #[test]
    fn what_would_repeat_an_n_gram_is_banned() {
        assert_eq!(banned(&[7, 8, 9, 7, 8], 3), [9]);
        assert_eq!(banned(&[7, 8, 7, 9, 7], 2), [8, 9]);
        assert_eq!(banned(&[7, 8], 1), [7, 8]);
        assert!(banned(&[7, 8, 9], 3).is_empty());
        assert!(banned(&[], 2).is_empty());
        assert_eq!(banned(&[7, 7, 7], 3), [7]);
    }

    #[test]
    fn the_end_must_wait_for_the_least_length() {
        let options = SearchOptions {
            min_length: 2,
            ..SearchOptions::default()
        };
        let mut banned = Vec::new();
        assert!(!Allowed::after(1, &[], &mut banned, &options).permits(EOS));
        assert!(Allowed::after(2, &[], &mut banned, &options).permits(EOS));
        assert!(!Allowed::after(2, &[], &mut banned, &options).permits(PAD));
        assert!(!Allowed::after(2, &[], &mut banned, &options).permits(BOS));
    }
}

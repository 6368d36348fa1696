//! No repeated n-grams.

use super::{Constraint, Next};

/// No n-gram of this many tokens may occur twice in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRepeatedNgrams(pub usize);

impl Constraint for NoRepeatedNgrams {
    fn apply(&self, tokens: &[u32], next: &mut Next<'_>) {
        let n = self.0;
        let Some(start) = (tokens.len() + 1).checked_sub(n) else {
            return;
        };
        let last = &tokens[start..];
        for ngram in tokens.windows(n).filter(|ngram| ngram[..n - 1] == *last) {
            next.forbid(ngram[n - 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forbidden(tokens: &[u32], n: usize) -> Vec<usize> {
        let mut row = [-1.0; 12];
        NoRepeatedNgrams(n).apply(tokens, &mut Next::new(&mut row, None));
        (0..12).filter(|&token| row[token] != -1.0).collect()
    }

    #[test]
    fn a_token_that_would_repeat_an_n_gram_is_forbidden() {
        assert_eq!(forbidden(&[7, 8, 9, 7, 8], 3), [9]);
        assert_eq!(forbidden(&[7, 8, 7, 9, 7], 2), [8, 9]);
        assert_eq!(forbidden(&[7, 8], 1), [7, 8]);
        assert!(forbidden(&[7, 8, 9], 3).is_empty());
        assert!(forbidden(&[], 2).is_empty());
        assert_eq!(forbidden(&[7, 7, 7], 3), [7]);
    }
}

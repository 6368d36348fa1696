//! Lengths: sides with nothing in them, sides that are far too long, and pairs of which a side is far longer.

use crate::lines::is_blank;

/// What is too long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Most words of a side; a word of more than 20 characters counts as several, so that a script without spaces
    /// counts too.
    pub most_words: usize,
    /// How many times longer a side may be than usual for the pair of languages, compared to the other side.
    pub max_ratio: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            most_words: 200,
            max_ratio: 3.0,
        }
    }
}

/// Whether a side holds nothing but white space.
pub fn is_empty(src: &str, tgt: &str) -> bool {
    is_blank(src) || is_blank(tgt)
}

/// Whether a side has more words than the limit.
pub fn is_too_long(src: &str, tgt: &str, limits: &Limits) -> bool {
    [src, tgt].into_iter().any(|side| {
        // A word and its space have two bytes at least.
        side.len() >= 2 * limits.most_words && words(side) > limits.most_words
    })
}

fn words(side: &str) -> usize {
    let parts = |word: &str| word.chars().count().div_ceil(LONG_WORD);
    side.split_whitespace().map(parts).sum()
}

const LONG_WORD: usize = 20;

/// The logarithm of how much longer the target is than the source, in characters. Short sides count as longer than
/// they are: `Ja` and `Yes, certainly` is no odd pair.
pub fn log_ratio(src: &str, tgt: &str) -> f64 {
    let length = |side: &str| (side.trim().chars().count() + SHORT) as f64;
    (length(tgt) / length(src)).ln()
}

const SHORT: usize = 15;

/// Whether a side is far longer than usual; `usual` is the usual [`log_ratio`] of the corpus.
pub fn is_out_of_ratio(src: &str, tgt: &str, usual: f64, limits: &Limits) -> bool {
    (log_ratio(src, tgt) - usual).abs() > limits.max_ratio.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_long_and_odd_pairs_are_found() {
        let limits = Limits::default();
        assert!(is_empty("", "x") && is_empty("x", " \t") && !is_empty("x", "y"));
        let long = "word ".repeat(201);
        assert!(is_too_long(&long, "x", &limits) && is_too_long("x", &long, &limits));
        assert!(!is_too_long(&"word ".repeat(200), "x", &limits));
        assert!(is_too_long(&"字".repeat(4100), "x", &limits));
        let odd = |src: &str, tgt: &str| is_out_of_ratio(src, tgt, 0.0, &limits);
        assert!(odd(
            "Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt ein Fenster.",
            "A man."
        ));
        assert!(!odd("Ja.", "Yes, of course I will."));
        assert!(!odd("Ein Mann.", "A man with a hat."));
        // Usual for this pair of languages.
        let (chinese, english) = (
            "我们明天去北京看长城和故宫，然后坐火车回家",
            "Tomorrow we go to Beijing to see the Great Wall and the palace, then take the train home",
        );
        assert!(!is_out_of_ratio(chinese, english, 1.0, &limits));
    }
}

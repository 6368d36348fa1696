//! The words of a line as hashes, for what compares many lines: alignment and languages.

/// Letters of a word that count, so that most forms of a word are one.
const LETTERS: usize = 6;

/// The hashes of a line's words: their first letters in lower case. Scripts without spaces have words of one letter.
pub(super) fn words(line: &str) -> impl Iterator<Item = u64> {
    let mut chars = line.chars().peekable();
    std::iter::from_fn(move || {
        while chars.next_if(|c| !c.is_alphanumeric()).is_some() {}
        let first = chars.next()?;
        let mut word = Fnv::default();
        word.add(first);
        if is_a_word(first) {
            return Some(word.0);
        }
        let mut letters = 1;
        while let Some(next) = chars.next_if(|c| c.is_alphanumeric() && !is_a_word(*c)) {
            letters += 1;
            if letters <= LETTERS {
                word.add(next);
            }
        }
        Some(word.0)
    })
}

/// Whether a letter stands for a word, as in Chinese, or words are not told apart, as in Thai.
fn is_a_word(c: char) -> bool {
    matches!(c, '\u{E00}'..='\u{EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{3040}'..='\u{9FFF}' | '\u{20000}'..)
}

/// The hash of Fowler, Noll and Vo: fast for the few letters of a word.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, c: char) {
        for lower in c.to_lowercase() {
            self.0 = (self.0 ^ u64::from(lower)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_are_one_and_letters_of_chinese_are_words() {
        let all = |line: &str| words(line).collect::<Vec<_>>();
        assert_eq!(all("Spielen, SPIELENDE!"), [all("spiele")[0]; 2]);
        assert_eq!(all("我们 go").len(), 3);
        assert_eq!(all(" ... "), [0u64; 0]);
    }
}

//! Python's idea of white space, which decides where sacreBLEU's words begin and end.
//!
//! `str.split()` and `str.rstrip()` also take the four information separators U+001C to U+001F for white
//! space; Unicode's `White_Space` property, and so Rust's `split_whitespace`, does not. Every metric
//! splits through this file, so that no score depends on that difference.

/// Whether Python's `str.isspace` holds for the character.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// The words of `str.split()`: runs of non-space characters, never empty.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

/// `str.rstrip()`: the text without white space at its end.
pub fn trim_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

/// `str.strip()`: the text without white space at either end.
pub fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn information_separators_split_words_as_in_python() {
        let split: Vec<&str> = words("a\u{1c}b\u{a0}c\u{3000} d\u{200b}e").collect();
        assert_eq!(split, ["a", "b", "c", "d\u{200b}e"]);
        assert_eq!(trim_end(" a \u{1f}\r"), " a");
        assert_eq!(trim("\u{2028} a \u{85}"), "a");
    }
}

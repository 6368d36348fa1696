//! Equal sides: text that nobody translated. A model that sees much of it learns to copy.

/// Whether the target is the source again. Names, titles and numbers are the same in both languages, so both must have
/// some words that begin in lower case.
pub fn is_equal(src: &str, tgt: &str) -> bool {
    let (src, tgt) = (src.trim(), tgt.trim());
    src.eq_ignore_ascii_case(tgt) && lower_case_words(src) >= FEWEST_WORDS
}

const FEWEST_WORDS: usize = 3;

fn lower_case_words(text: &str) -> usize {
    let words = text.split(|c: char| !c.is_alphabetic());
    let words = words.filter(|word| word.chars().next().is_some_and(|c| !c.is_uppercase()));
    words.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_that_nobody_translated_are_found_and_names_are_not() {
        assert!(is_equal("A man is walking.", "a man is walking. "));
        assert!(!is_equal("A man is walking.", "Ein Mann geht."));
        for name in [
            "Barack Obama",
            "CD-ROM 4.2",
            "International Business Machines Corporation",
            "Tom.",
            "",
        ] {
            assert!(!is_equal(name, name), "{name}");
        }
    }
}

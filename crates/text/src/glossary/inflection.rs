//! The commonest endings of words: enough to find `Hunde` for `Hund`, and never a guess about stems.
//!
//! Only endings that are added are known (and `y` that becomes `ies`), and only for words of at least
//! [`LEAST_LETTERS`] letters: a wrong match would force a wrong term, which is worse than a form that has to be
//! listed in the glossary.

/// Shorter words are matched as they stand: `in` is not `ins`.
const LEAST_LETTERS: usize = 4;

/// Endings that words of a language have in other cases and numbers.
fn endings(language: &str) -> &'static [&'static str] {
    match language {
        "de" => &["e", "en", "er", "ern", "es", "s", "n", "em", "ens"],
        "en" => &["s", "es", "'s", "’s"],
        "nl" => &["s", "en", "n", "'s", "e"],
        "fr" => &["s", "x", "e", "es"],
        "es" | "pt" => &["s", "es"],
        "sv" | "da" | "nb" | "no" => &["s", "en", "et", "er", "ar", "or", "e", "n", "r"],
        _ => &[],
    }
}

/// A word of a term with another ending: whether `word` is a form of `term`, both in lowercase letters, in a language
/// (`de`, `pt-BR`).
pub(super) fn is_form(word: &str, term: &str, language: &str) -> bool {
    if term.chars().filter(|c| c.is_alphabetic()).count() < LEAST_LETTERS {
        return false;
    }
    let language = base(language);
    let added = word.strip_prefix(term);
    let exchanged = term.strip_suffix('y').filter(|_| language == "en");
    added.is_some_and(|ending| endings(language).contains(&ending))
        || exchanged.is_some_and(|stem| word.strip_prefix(stem) == Some("ies"))
}

/// The forms of a target term that may be meant where the source term has another ending; the term itself is not among
/// them.
pub fn forms(term: &str, language: &str) -> Vec<String> {
    let language = base(language);
    let last = term.split_whitespace().next_back().unwrap_or_default();
    if last.chars().filter(|c| c.is_alphabetic()).count() < LEAST_LETTERS - 1 {
        return Vec::new();
    }
    let mut forms: Vec<String> = Vec::new();
    if let Some(stem) = term.strip_suffix('y').filter(|_| language == "en") {
        forms.push(format!("{stem}ies"));
    }
    forms.extend(
        endings(language)
            .iter()
            .map(|ending| format!("{term}{ending}")),
    );
    forms
}

fn base(language: &str) -> &str {
    language.split(['-', '_']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_endings_are_known_and_short_words_stand_as_they_are() {
        for (word, term, language) in [
            ("hunde", "hund", "de"),
            ("hundes", "hund", "de-AT"),
            ("frauen", "frau", "de"),
            ("dogs", "dog", ""),
            ("cities", "city", "en"),
            ("houses", "house", "en"),
            ("trains", "train", "fr"),
        ] {
            let expected = !language.is_empty();
            assert_eq!(is_form(word, term, language), expected, "{word} {term}");
        }
        for (word, term, language) in [
            ("ins", "in", "en"),
            ("hundert", "hund", "de"),
            ("citizen", "city", "en"),
            ("hund", "hund", "de"),
            ("häuser", "haus", "de"),
        ] {
            assert!(!is_form(word, term, language), "{word} {term}");
        }
    }

    #[test]
    fn targets_have_forms_too() {
        assert_eq!(
            forms("city", "en"),
            ["cities", "citys", "cityes", "city's", "city’s"]
        );
        assert!(forms("dog", "en").contains(&"dogs".to_owned()));
        assert!(forms("IT", "en").is_empty());
        assert!(forms("dog", "").is_empty());
    }
}

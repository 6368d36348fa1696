//! The languages that a letter can belong to, by its script.
//!
//! Many languages are alone with their script, so that one letter says all; [`super::detector`] asks. Languages
//! that are not listed here are taken to be written in Latin letters.

use std::ops::RangeInclusive;

/// Ranges of letters, and the languages that are written in them.
const SCRIPTS: &[(RangeInclusive<char>, &str)] = &[
    ('\u{0370}'..='\u{03FF}', "el"),
    ('\u{1F00}'..='\u{1FFF}', "el"),
    (
        '\u{0400}'..='\u{052F}',
        "ba be bg ce cv kk kv ky mk mn os ru sr tg tt uk",
    ),
    ('\u{0530}'..='\u{058F}', "hy"),
    ('\u{0590}'..='\u{05FF}', "he yi"),
    ('\u{0600}'..='\u{077F}', "ar fa ks ps sd ug ur"),
    ('\u{FB50}'..='\u{FDFF}', "ar fa ks ps sd ug ur"),
    ('\u{0900}'..='\u{097F}', "hi mr ne sa"),
    ('\u{0980}'..='\u{09FF}', "as bn"),
    ('\u{0A00}'..='\u{0A7F}', "pa"),
    ('\u{0A80}'..='\u{0AFF}', "gu"),
    ('\u{0B00}'..='\u{0B7F}', "or"),
    ('\u{0B80}'..='\u{0BFF}', "ta"),
    ('\u{0C00}'..='\u{0C7F}', "te"),
    ('\u{0C80}'..='\u{0CFF}', "kn"),
    ('\u{0D00}'..='\u{0D7F}', "ml"),
    ('\u{0D80}'..='\u{0DFF}', "si"),
    ('\u{0E00}'..='\u{0E7F}', "th"),
    ('\u{0E80}'..='\u{0EFF}', "lo"),
    ('\u{0F00}'..='\u{0FFF}', "bo dz"),
    ('\u{1000}'..='\u{109F}', "my"),
    ('\u{10A0}'..='\u{10FF}', "ka"),
    ('\u{1100}'..='\u{11FF}', "ko"),
    ('\u{1200}'..='\u{137F}', "am ti"),
    ('\u{1780}'..='\u{17FF}', "km"),
    // Both write Chinese letters; kana are Japanese alone.
    ('\u{3400}'..='\u{9FFF}', "ja yue zh"),
    ('\u{3005}'..='\u{3007}', "ja yue zh"),
    ('\u{20000}'..='\u{3FFFF}', "ja yue zh"),
    ('\u{3040}'..='\u{30FF}', "ja"),
    ('\u{FF66}'..='\u{FF9F}', "ja"),
    ('\u{3130}'..='\u{318F}', "ko"),
    ('\u{AC00}'..='\u{D7AF}', "ko"),
];

/// The languages that are written with a letter; nothing if it is a Latin one.
pub(super) fn languages(letter: char) -> Option<&'static str> {
    let mut scripts = SCRIPTS.iter();
    let found = scripts.find(|(range, _)| range.contains(&letter));
    found.map(|(_, codes)| *codes)
}

/// Whether a language is written in Latin letters.
pub(super) fn is_latin(code: &str) -> bool {
    !codes().any(|own| own == code)
}

/// The languages that are not written in Latin letters; some more than once.
pub(super) fn codes() -> impl Iterator<Item = &'static str> {
    SCRIPTS.iter().flat_map(|(_, codes)| codes.split(' '))
}

/// Whether a language is written with this letter.
#[cfg(test)]
pub(super) fn writes(code: &str, letter: char) -> bool {
    match languages(letter) {
        Some(codes) => codes.split(' ').any(|own| own == code),
        None => is_latin(code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_belongs_to_the_languages_of_its_script() {
        for (code, letters) in [
            ("de", "aßÉ"),
            ("ru", "Яё"),
            ("el", "Ωάἀ"),
            ("ja", "のカ々漢ｶ"),
            ("zh", "漢々"),
            ("ko", "한"),
            ("hi", "ह"),
            ("xx", "a"),
        ] {
            assert!(letters.chars().all(|c| writes(code, c)), "{code}");
        }
        for (code, letters) in [
            ("de", "Яの漢한"),
            ("ru", "aΩ"),
            ("zh", "の한a"),
            ("ja", "한a"),
        ] {
            assert!(!letters.chars().any(|c| writes(code, c)), "{code}");
        }
    }
}

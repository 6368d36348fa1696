//! Codes and names of languages: what models and people call them.
//!
//! Models say `de`, `deu`, `zh-Hans` or `pt_BR`; the detector and the rules for sentences look languages
//! up by one code. The list is `names.txt`.

use std::sync::LazyLock;

const TEXT: &str = include_str!("names.txt");

/// The codes of each language, and its name.
static NAMES: LazyLock<Vec<(Vec<&'static str>, &'static str)>> = LazyLock::new(|| {
    let lines = TEXT.lines().filter(|line| !line.starts_with('#'));
    let fields = lines.filter_map(|line| line.split_once(" = "));
    let codes = |(codes, name): (&'static str, _)| (codes.split(' ').collect(), name);
    fields.map(codes).collect()
});

/// The shortest code of a language, without region or script: `pt` for `pt-BR`, `de` for `DEU`. A code that is
/// not known stays as it is, in lowercase.
///
/// ```
/// use attentive_text::language::canonical;
///
/// assert_eq!(["zh_Hans", "cmn", "ger", "x-y"].map(canonical), ["zh", "zh", "de", "x"]);
/// ```
pub fn canonical(code: &str) -> String {
    let base = code.trim().split(['-', '_']).next().unwrap_or_default();
    let base = base.to_lowercase();
    match entry(&base) {
        Some((codes, _)) => codes[0].to_string(),
        None => base,
    }
}

/// As [`canonical`], with the region or script as it is given: `zh_Hant` for `cmn-Hant`, `pt_BR` for `por_BR`.
pub fn normalized(code: &str) -> String {
    let base = canonical(code);
    match code.trim().split_once(['-', '_']) {
        Some((_, rest)) if !rest.is_empty() => format!("{base}_{rest}"),
        _ => base,
    }
}

/// The English name of a language by any of its codes: `Portuguese` for `pt_BR`.
pub fn name(code: &str) -> Option<&'static str> {
    entry(&canonical(code)).map(|(_, name)| *name)
}

fn entry(code: &str) -> Option<&'static (Vec<&'static str>, &'static str)> {
    NAMES.iter().find(|(codes, _)| codes.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_have_names_whatever_the_code() {
        for (code, expected) in [
            ("de", "German"),
            ("deu", "German"),
            ("fre", "French"),
            ("pt-BR", "Portuguese"),
            ("zh_Hant", "Chinese"),
            ("arb_Arab", "Arabic"),
            (" EN ", "English"),
            ("nb", "Norwegian Bokmål"),
        ] {
            assert_eq!(name(code), Some(expected), "{code}");
        }
        for code in ["", "xx", "-", "_", "deutsch", "\u{0}"] {
            assert_eq!(name(code), None, "{code}");
        }
    }

    #[test]
    fn a_normalized_code_keeps_region_and_script() {
        for (code, expected) in [
            ("cmn-Hant", "zh_Hant"),
            ("por_BR", "pt_BR"),
            (" FRA ", "fr"),
            ("de_", "de"),
        ] {
            assert_eq!(normalized(code), expected);
        }
    }

    #[test]
    fn every_code_stands_once() {
        let mut seen = std::collections::HashSet::new();
        let all = NAMES.iter().flat_map(|(codes, _)| codes);
        let twice: Vec<_> = all.filter(|code| !seen.insert(**code)).collect();
        assert!(twice.is_empty(), "{twice:?}");
        assert!(seen.len() > 350, "{} codes", seen.len());
    }
}

//! Languages by their codes: names, and codes that mean the same.

use attentive_text::language;

/// Stands for the language that a model reads, if nobody said which.
pub const UNKNOWN_SOURCE: &str = "x-source";
/// Stands for the language that a model writes, if nobody said which.
pub const UNKNOWN_TARGET: &str = "x-target";

/// The code as it is compared: `EN_us` is `en-us`.
pub fn normalized(code: &str) -> String {
    code.trim().to_lowercase().replace('_', "-")
}

/// The language without its region or script: `zh` of `zh-Hans`.
pub fn base(code: &str) -> &str {
    code.split(['-', '_']).next().unwrap_or(code)
}

/// Whether words are written with spaces between them.
pub fn has_spaces(code: &str) -> bool {
    let code = normalized(code);
    !["zh", "ja", "th", "lo", "km", "my", "yue", "bo"].contains(&base(&code))
}

/// The English name of a language; its code if it is not known.
pub fn name(code: &str) -> String {
    match normalized(code).as_str() {
        "zh-hans" => "Chinese (simplified)".to_owned(),
        "zh-hant" => "Chinese (traditional)".to_owned(),
        UNKNOWN_SOURCE => "Source".to_owned(),
        UNKNOWN_TARGET => "Target".to_owned(),
        code => language::name(base(code)).map_or_else(|| code.to_owned(), str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_known_in_every_spelling() {
        assert_eq!(name("DE"), "German");
        assert_eq!(name("en_US"), "English");
        assert_eq!(name("ZH-HANS"), "Chinese (simplified)");
        assert_eq!(name("qqq"), "qqq");
        assert_eq!(base("pt-BR"), "pt");
    }
}

//! The options of a Marian model or decoder: flat YAML, read by hand.
//!
//! `special:model.yml` inside the weights says what the model is; `config.yml` or `decoder.yml` beside them says how it
//! is searched. Both are lines of `key: value`, where a value may be a list, in brackets or on lines of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::refused;
use crate::error::Result;

/// Keys and values; a single value is a list of one.
#[derive(Debug, Clone)]
pub(super) struct Options {
    path: PathBuf,
    values: BTreeMap<String, Vec<String>>,
}

impl Options {
    pub fn parse(path: &Path, text: &str) -> Self {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut last = String::new();
        for line in text.lines() {
            let content = line.trim();
            if let Some(item) = content.strip_prefix("- ") {
                values.entry(last.clone()).or_default().push(unquoted(item));
            } else if let Some((key, value)) = content.split_once(':') {
                last = key.trim().to_owned();
                let value = value.trim();
                let list = value
                    .strip_prefix('[')
                    .and_then(|value| value.strip_suffix(']'));
                let items: Vec<String> = match list {
                    Some(list) if list.trim().is_empty() => Vec::new(),
                    Some(list) => list.split(',').map(|item| unquoted(item.trim())).collect(),
                    None if value.is_empty() => Vec::new(),
                    None => vec![unquoted(value)],
                };
                values.insert(last.clone(), items);
            }
        }
        let path = path.to_path_buf();
        Self { path, values }
    }

    /// All values of a key; none if it is missing.
    pub fn list(&self, key: &str) -> &[String] {
        self.values.get(key).map(Vec::as_slice).unwrap_or_default()
    }

    /// The value of a key, unless it is missing or empty.
    pub fn text(&self, key: &str) -> Option<&str> {
        let value = self.list(key).first()?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    /// The number of a key.
    pub fn number<N: std::str::FromStr>(&self, key: &str) -> Result<Option<N>> {
        let parse = |text: &str| {
            let found = format!("{key}: {text}");
            text.parse()
                .map_err(|_| refused(&self.path, "the options", found, "a number is needed there"))
        };
        self.text(key).map(parse).transpose()
    }

    /// The number of a key that must be there.
    pub fn require(&self, key: &str) -> Result<usize> {
        let missing = || {
            refused(
                &self.path,
                "the options",
                format!("no `{key}`"),
                "it is needed",
            )
        };
        self.number(key)?.ok_or_else(missing)
    }

    /// Whether a switch is on.
    pub fn flag(&self, key: &str) -> bool {
        self.text(key) == Some("true")
    }

    /// Refuses a model whose option has another value than those that our model has; a missing one is the default.
    pub fn only(&self, key: &str, allowed: &[&str]) -> Result<()> {
        let found = self.list(key).join(" ");
        if !self.values.contains_key(key) || allowed.contains(&found.as_str()) {
            return Ok(());
        }
        let allowed: Vec<String> = allowed.iter().map(|value| format!("{value:?}")).collect();
        Err(refused(
            &self.path,
            "the options",
            format!("`{key}: {found}`"),
            &format!("this program knows models with {}", allowed.join(" or ")),
        ))
    }
}

fn unquoted(text: &str) -> String {
    let inner = |mark| {
        text.strip_prefix(mark)
            .and_then(|text: &str| text.strip_suffix(mark))
    };
    inner('"')
        .or_else(|| inner('\''))
        .unwrap_or(text)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lists_and_quotes_are_read() {
        let text = "type: transformer\ndim-vocabs:\n  - 8000\n  - 7000\ntransformer-preprocess: \"\"\n\
                    transformer-tied-layers: []\nvocabs: [a.spm, 'b c.spm']\nnormalize: 0.6\nskip: true";
        let options = Options::parse(Path::new("model.yml"), text);
        assert_eq!(options.text("type"), Some("transformer"));
        assert_eq!(options.list("dim-vocabs"), ["8000", "7000"]);
        assert_eq!(options.text("transformer-preprocess"), None);
        assert!(options.list("transformer-tied-layers").is_empty());
        assert_eq!(options.list("vocabs"), ["a.spm", "b c.spm"]);
        assert_eq!(options.number::<f64>("normalize").unwrap(), Some(0.6));
        assert!(options.flag("skip") && !options.flag("no-such"));
        let error = options.only("skip", &["false"]).unwrap_err().to_string();
        assert!(
            error.contains("model.yml") && error.contains("`skip: true`"),
            "{error}"
        );
        assert!(
            options
                .require("enc-depth")
                .unwrap_err()
                .to_string()
                .contains("`enc-depth`")
        );
    }
}

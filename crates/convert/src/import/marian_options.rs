//! The options of a Marian model or decoder: flat YAML, read by hand.
//!
//! `special:model.yml` inside the weights says what the model is; `config.yml` or `decoder.yml` beside them says how it
//! is searched. Both are lines of `key: value`, where a value may be a list, in brackets or on lines of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{files_of, refused, whole_files};
use crate::error::{ConvertError, Result};
use crate::files::Tensors;

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

/// `special:model.yml`: YAML text in a tensor, up to the first NUL.
pub(super) fn options_of(tensors: &Tensors) -> Result<Options> {
    const NAME: &str = "special:model.yml";
    let tensor = tensors
        .get(NAME)
        .ok_or_else(|| ConvertError::MissingTensor {
            path: tensors.path().to_path_buf(),
            name: NAME.to_owned(),
            count: tensors.len(),
        })?;
    let text = tensor
        .bytes()
        .split(|byte| *byte == 0)
        .next()
        .unwrap_or_default();
    Ok(Options::parse(
        tensors.path(),
        &String::from_utf8_lossy(text),
    ))
}

/// The options of `marian-decoder`, if a file beside the model has some: it names models and vocabularies.
pub(super) fn decoder_options(folder: &Path) -> Result<Option<Options>> {
    for path in files_of(folder)? {
        if path
            .extension()
            .is_some_and(|end| end == "yml" || end == "yaml")
        {
            let text = whole_files::settings(&path)?;
            let options = Options::parse(&path, &String::from_utf8_lossy(&text));
            if !options.list("models").is_empty() {
                return Ok(Some(options));
            }
        }
    }
    Ok(None)
}

/// Options with the values that our model has; all others that change what a model computes are read.
pub(super) const ONLY: &[(&str, &[&str])] = &[
    ("type", &["transformer"]),
    ("transformer-ffn-depth", &["2"]),
    ("transformer-decoder-ffn-depth", &["0", "2"]),
    ("transformer-ffn-activation", &["relu", "swish", "gelu"]),
    ("transformer-decoder-autoreg", &["self-attention", "rnn"]),
    ("transformer-postprocess-emb", &["", "d", "n", "dn", "nd"]),
    ("transformer-postprocess-top", &["", "d", "n", "dn", "nd"]),
    ("transformer-no-projection", &["false"]),
    ("transformer-rnn-projection", &["false"]),
    ("transformer-pool", &["false"]),
    ("transformer-no-bias", &["false"]),
    ("transformer-no-affine", &["false"]),
    ("transformer-disable-position-embeddings", &["false"]),
    ("transformer-attention-mask", &["default", ""]),
    ("transformer-alibi-shift", &["false"]),
    ("transformer-alibi-trainable", &["false"]),
    ("layer-normalization", &["false"]),
    ("right-left", &["false"]),
    ("input-types", &[""]),
    ("factors-dim-emb", &["0"]),
    ("factors-combine", &["sum", ""]),
    ("output-approx-knn", &[""]),
    ("lemma-dim-emb", &["0"]),
    ("lemma-dependency", &[""]),
    ("ulr", &["false"]),
    ("embedding-normalization", &["false"]),
];

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

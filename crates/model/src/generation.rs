//! `generation.json`, an optional file of a model directory: how text is framed for this model, and how its
//! translations are usually searched for.
//!
//! Models that this program trains need none. Those of other programs (`attentive-convert`) differ in the tokens
//! around a source, in tokens that must never be produced and in the search that they were made for; the
//! translator of `attentive-runtime` does what this file says, and whoever asks for something else (a beam size on
//! the command line, for example) gets that. Every key is optional.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path};

use attentive_text::language;
use attentive_text::special::{BOS, EOS};
use serde::{Deserialize, Serialize};

use crate::config::TransformerConfig;
use crate::durable;
use crate::error::{ModelError, Result};

/// The name of the file.
pub const FILE: &str = "generation.json";

/// How text is framed for a model, and how its translations are usually searched for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Generation {
    /// The code of the source language: `de`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_language: Option<String>,
    /// The code of the target language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_language: Option<String>,
    /// The languages that a model of several targets writes, each with the token before a source that asks for it:
    /// `fra` with that of `>>fra<<`. [`Generation::choose_target`] chooses one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub target_languages: BTreeMap<String, u32>,
    /// Tokens before every source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source_prefix: Vec<u32>,
    /// Whether every source ends with `</s>`.
    #[serde(skip_serializing_if = "is_true")]
    pub source_end: bool,
    /// The first target tokens, which are given and not part of the text. They cost nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub target_prefix: Vec<u32>,
    /// Tokens that are never produced, besides `<s>` and `<blank>`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forbidden: Vec<u32>,
    /// Tokens that may be produced but are not text: translations leave them out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<u32>,
    /// The beam size; 1 is greedy search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beam: Option<usize>,
    /// Which hypotheses a beam search follows, and when it ends.
    #[serde(skip_serializing_if = "is_default")]
    pub beam_rule: BeamRule,
    /// Alpha of `score = log_prob / length^alpha`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length_penalty: Option<f64>,
    /// The longest target, in tokens for each token of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length_factor: Option<f64>,
    /// The longest target in tokens, `</s>` included, whatever the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<usize>,
    /// The least number of tokens before `</s>`.
    #[serde(skip_serializing_if = "is_default")]
    pub min_length: usize,
    /// What happens to the probability of a `</s>` that would come before that.
    #[serde(skip_serializing_if = "is_default")]
    pub early_end: EarlyEnd,
    /// What happens to a target that is as long as it may be.
    #[serde(skip_serializing_if = "is_default")]
    pub at_limit: AtLimit,
    /// The longest source in tokens, `</s>` included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_source_length: Option<usize>,
    /// The name of a shortlist file in the same directory, which is used unless it is turned off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shortlist: Option<String>,
    /// The license of the weights, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// What the model was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// Which hypotheses a beam search follows, and when it ends. They differ in what becomes of the place in the beam
/// that a complete hypothesis had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BeamRule {
    /// A complete hypothesis takes its place for one step. The search ends when as many hypotheses as the beam
    /// size are complete and no live one is better by its present length, or earlier where that changes nothing.
    #[default]
    Refill,
    /// Marian: a complete hypothesis keeps its place, so the beam shrinks; the search ends when no place is left.
    Shrink,
    /// Hugging Face: the beam stays full of live hypotheses. The search ends when as many as the beam size are
    /// complete and no live one is better than the worst of the best of them by its present length.
    Full,
    /// fairseq, CTranslate2, and Hugging Face with `early_stopping`: the beam stays full, and the search ends when
    /// as many hypotheses as the beam size are complete.
    FullUntilEnough,
}

/// What happens to a target that is as long as it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtLimit {
    /// It is cut there.
    #[default]
    Cut,
    /// Its last token is `</s>`, which costs nothing.
    ForceEnd,
}

/// What happens to the probability of a `</s>` that may not come yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlyEnd {
    /// It is lost: the other tokens keep theirs.
    #[default]
    Lost,
    /// It is left out of the softmax, as CTranslate2 does: the others share it.
    LeftOut,
}

impl Default for Generation {
    fn default() -> Self {
        Self {
            source_language: None,
            target_language: None,
            target_languages: BTreeMap::new(),
            source_prefix: Vec::new(),
            source_end: true,
            target_prefix: Vec::new(),
            forbidden: Vec::new(),
            hidden: Vec::new(),
            beam: None,
            beam_rule: BeamRule::default(),
            length_penalty: None,
            max_length_factor: None,
            max_length: None,
            min_length: 0,
            early_end: EarlyEnd::default(),
            at_limit: AtLimit::default(),
            max_source_length: None,
            shortlist: None,
            license: None,
            origin: None,
        }
    }
}

impl Generation {
    /// The languages that the model reads and writes, if it says both.
    pub fn languages(&self) -> Option<(String, String)> {
        self.source_language
            .clone()
            .zip(self.target_language.clone())
    }

    /// Reads the file of a model directory, and checks it against its configuration. Without a file everything is
    /// as by default.
    pub fn read(directory: &Path, config: &TransformerConfig) -> Result<Self> {
        let path = directory.join(FILE);
        if !path.exists() {
            return Ok(Self::default());
        }
        let bytes = fs::read(&path).map_err(ModelError::io("read", &path))?;
        Self::parse(&path, &bytes, config)
    }

    /// As [`Generation::read`], of the bytes of such a file.
    pub(crate) fn parse(path: &Path, bytes: &[u8], config: &TransformerConfig) -> Result<Self> {
        let bad = |problems| ModelError::BadGeneration {
            path: path.to_owned(),
            problems,
        };
        let found: Self =
            serde_json::from_slice(bytes).map_err(|error| bad(vec![error.to_string()]))?;
        found.check(config).map_err(bad)?;
        Ok(found)
    }

    /// Writes the file into a model directory, whole or not at all; removes it where everything is as by default.
    pub fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(FILE);
        if *self == Self::default() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(ModelError::io("remove", &path)(error))
                }
                _ => Ok(()),
            };
        }
        let text =
            serde_json::to_string_pretty(self).map_err(|error| ModelError::BadGeneration {
                path: path.clone(),
                problems: vec![error.to_string()],
            })?;
        durable::write(&path, format!("{text}\n").as_bytes())
            .map_err(ModelError::io("write", &path))
    }

    /// Makes a model of several target languages one that writes this language: `fr` is `fra`, too. Of several spellings
    /// the same one is taken, else the first one without a script or region, else the first. False if there is none.
    pub fn choose_target(&mut self, code: &str) -> bool {
        let wanted = language::canonical(code);
        let fits = |name: &&String| language::canonical(name) == wanted;
        let names: Vec<&String> = self.target_languages.keys().filter(fits).collect();
        let variant = |code: &str| {
            code.split_once(['_', '-'])
                .map(|(_, rest)| rest.to_lowercase())
        };
        let same = names.iter().find(|name| variant(name) == variant(code));
        let whole = || names.iter().find(|name| variant(name).is_none());
        let Some(name) = same.or_else(whole).or(names.first()) else {
            return false;
        };
        let (name, token) = ((*name).clone(), self.target_languages[*name]);
        self.source_prefix = vec![token];
        self.target_language = Some(name);
        self.target_languages.clear();
        true
    }

    /// Every problem at once, each a sentence that names the key and its value.
    pub fn check(&self, config: &TransformerConfig) -> std::result::Result<(), Vec<String>> {
        let mut problems = Vec::new();
        let (src, tgt) = (config.src_vocab, config.tgt_vocab);
        let languages: Vec<u32> = self.target_languages.values().copied().collect();
        for (key, tokens, vocab) in [
            ("target_languages", &languages, src),
            ("source_prefix", &self.source_prefix, src),
            ("target_prefix", &self.target_prefix, tgt),
            ("forbidden", &self.forbidden, tgt),
            ("hidden", &self.hidden, tgt),
        ] {
            if let Some(token) = tokens.iter().find(|token| **token as usize >= vocab) {
                problems.push(format!(
                    "`{key}` holds token {token}, but the vocabulary has {vocab} tokens"
                ));
            }
        }
        for token in [BOS, EOS] {
            if self.target_prefix.contains(&token) {
                problems.push(format!("`target_prefix` must not hold token {token}"));
            }
        }
        if self.forbidden.contains(&EOS) {
            problems.push(format!("`forbidden` must not hold {EOS}, the end"));
        }
        for (key, value, least) in [
            ("beam", self.beam, 1),
            ("max_length", self.max_length, 1),
            ("max_source_length", self.max_source_length, 2),
        ] {
            if let Some(value) = value.filter(|&value| value < least) {
                problems.push(format!("`{key}` ({value}) must be at least {least}"));
            }
        }
        for (key, value, holds) in [
            ("length_penalty", self.length_penalty, 0.0..f64::INFINITY),
            (
                "max_length_factor",
                self.max_length_factor,
                f64::MIN_POSITIVE..f64::INFINITY,
            ),
        ] {
            if let Some(value) = value.filter(|value| !holds.contains(value)) {
                problems.push(format!("`{key}` ({value}) must be a positive number"));
            }
        }
        if let Some(name) = &self.shortlist {
            let mut parts = Path::new(name).components();
            let plain = matches!(parts.next(), Some(Component::Normal(_)));
            if !plain || parts.next().is_some() {
                problems.push(format!(
                    "`shortlist` ({name:?}) must be the name of a file in the same directory"
                ));
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn is_true(value: &bool) -> bool {
    *value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Preset;

    fn full() -> Generation {
        Generation {
            source_language: Some("en".into()),
            target_language: Some("pt".into()),
            target_languages: [("pt".into(), 5), ("es".into(), 6)].into(),
            source_prefix: vec![7],
            source_end: false,
            target_prefix: vec![8],
            forbidden: vec![3],
            hidden: vec![4],
            beam: Some(6),
            beam_rule: BeamRule::FullUntilEnough,
            length_penalty: Some(0.0),
            max_length_factor: Some(2.5),
            max_length: Some(200),
            min_length: 2,
            early_end: EarlyEnd::LeftOut,
            at_limit: AtLimit::ForceEnd,
            max_source_length: Some(128),
            shortlist: Some("shortlist.bin".into()),
            license: Some("MPL-2.0".into()),
            origin: Some("bergamot".into()),
        }
    }

    #[test]
    fn every_key_is_read_back_as_written_and_nothing_is_written_by_default() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = Preset::Tiny.config(10, 10);
        for generation in [full(), Generation::default()] {
            generation.write(folder.path()).expect("written");
            let read = Generation::read(folder.path(), &config).expect("just written");
            assert_eq!(read, generation);
        }
        assert!(!folder.path().join(FILE).exists());
    }

    #[test]
    fn each_problem_names_its_key_and_value() {
        let config = Preset::Tiny.config(10, 9);
        let bad = Generation {
            target_languages: [("fr".into(), 12)].into(),
            source_prefix: vec![10],
            target_prefix: vec![1],
            forbidden: vec![9, 1],
            beam: Some(0),
            length_penalty: Some(f64::NAN),
            max_length_factor: Some(0.0),
            max_source_length: Some(1),
            shortlist: Some("../other".into()),
            ..Generation::default()
        };
        assert_eq!(
            bad.check(&config).expect_err("bad"),
            [
                "`target_languages` holds token 12, but the vocabulary has 10 tokens",
                "`source_prefix` holds token 10, but the vocabulary has 10 tokens",
                "`forbidden` holds token 9, but the vocabulary has 9 tokens",
                "`target_prefix` must not hold token 1",
                "`forbidden` must not hold 1, the end",
                "`beam` (0) must be at least 1",
                "`max_source_length` (1) must be at least 2",
                "`length_penalty` (NaN) must be a positive number",
                "`max_length_factor` (0) must be a positive number",
                "`shortlist` (\"../other\") must be the name of a file in the same directory",
            ]
        );
        assert_eq!(full().check(&Preset::Tiny.config(10, 10)), Ok(()));
    }

    #[test]
    fn a_target_is_chosen_by_any_code_of_its_language() {
        let several = Generation {
            target_languages: ["cmn_Hans", "cmn_Hant", "fra", "fr_BE", "por"]
                .map(str::to_owned)
                .into_iter()
                .zip(4..)
                .collect(),
            ..Generation::default()
        };
        for (code, name, token) in [
            ("fr", "fra", 6),
            ("FRA", "fra", 6),
            ("fr-BE", "fr_BE", 7),
            ("pt_BR", "por", 8),
            ("zh", "cmn_Hans", 4),
            ("zh-hant", "cmn_Hant", 5),
        ] {
            let mut chosen = several.clone();
            assert!(chosen.choose_target(code), "{code}");
            assert_eq!(chosen.target_language.as_deref(), Some(name), "{code}");
            assert_eq!(chosen.source_prefix, [token], "{code}");
            assert!(chosen.target_languages.is_empty());
        }
        let mut same = several.clone();
        assert!(!same.choose_target("de") && same == several);
    }

    #[test]
    fn a_misspelled_key_is_refused_with_the_file_named() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(FILE), r#"{"beams": 4}"#).expect("written");
        let error = Generation::read(folder.path(), &Preset::Tiny.config(10, 10));
        let message = error.expect_err("a wrong key").to_string();
        assert!(
            message.contains(FILE) && message.contains("`beams`"),
            "{message}"
        );
    }
}

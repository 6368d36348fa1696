//! State dicts of any program, with a small TOML file that says what is what.
//!
//! ```toml
//! weights = "checkpoint.pt"        # beside SOURCE, if that is a folder
//! output_first = true              # matrices are [out, in], as PyTorch has them (the default)
//!
//! [model]                          # the keys of our config.json, the sizes of the vocabularies aside
//! d_model = 128
//! d_ff = 512
//! heads = 8
//! encoder_layers = 5
//! decoder_layers = 5
//! norm = "pre"
//! positions = "timing_signal"
//! position_offset = 2
//!
//! [vocabulary]                     # files beside the weights
//! source = "dict.roman.txt"        # fairseq's dict.*.txt, or .json, .yml, .txt
//! target = "dict.nqo.txt"
//! tokenizer = "subword-nmt"        # or sentencepiece, characters, spaces
//! pieces = "bpe.code"              # codes of subword-nmt, or a SentencePiece model
//! start = "</s>"                   # what the decoder reads first; "" for zeros
//!
//! [tensors]                        # our modules and theirs; with names = "fairseq" above only what is different
//! "encoder.layers.{layer}.self_attention.query" = "encoder.layers.{layer}.self_attn.q_proj"
//! source_embedding = "encoder.embed_tokens.weight"
//! target_embedding = "decoder.embed_tokens.weight"
//! output = "decoder.output_projection.weight"
//!
//! [generation]                     # the keys of generation.json
//! beam = 5
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use attentive_model::Tokenizers;
use attentive_model::config::{Preset, TransformerConfig};
use attentive_model::generation::Generation;
use attentive_text::Tokenizer;
use attentive_text::tokenizer::vocabulary_file;
use serde::Deserialize;

use super::parts::{Parts, vector};
use super::state_dict::{self, Names};
use super::vocabulary::{Order, Specials, Start};
use super::{Model, refused, whole_files};
use crate::error::{ConvertError, Result};
use crate::files::Tensors;

/// What a state dict holds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mapping {
    pub weights: Option<PathBuf>,
    #[serde(default = "yes")]
    pub output_first: bool,
    /// `fairseq` takes its names where `tensors` has none.
    pub names: Option<String>,
    /// What fairseq's names begin with.
    #[serde(default)]
    pub prefix: String,
    pub model: toml::Table,
    pub vocabulary: VocabularyFiles,
    #[serde(default)]
    pub tensors: BTreeMap<String, String>,
    #[serde(default)]
    pub generation: Generation,
}

/// The vocabularies and the tokenizer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VocabularyFiles {
    pub source: PathBuf,
    pub target: PathBuf,
    pub tokenizer: String,
    pub pieces: Option<PathBuf>,
    pub target_pieces: Option<PathBuf>,
    pub start: Option<String>,
    pub end: Option<String>,
    pub padding: Option<String>,
    pub unknown: Option<String>,
}

fn yes() -> bool {
    true
}

/// Reads a mapping file and the model that it describes.
pub(super) fn read(source: &Path, path: &Path) -> Result<Model> {
    let text = whole_files::settings(path)?;
    let text = String::from_utf8(text).map_err(|error| bad(path, error.to_string()))?;
    let mapping: Mapping = toml::from_str(&text).map_err(|error| bad(path, error.to_string()))?;
    let (folder, weights) = match (source.is_dir(), &mapping.weights) {
        (true, Some(name)) => (source, source.join(name)),
        (true, None) => (source, state_dict::weights_of(source)?),
        (false, _) => (super::folder_of(source), source.to_path_buf()),
    };
    let tensors = state_dict::read(&weights)?;
    convert(path, folder, &tensors, mapping, "a state dict")
}

fn bad(path: &Path, problem: String) -> ConvertError {
    refused(path, "the mapping", problem, "correct it")
}

/// Makes a model of the tensors; `path` is what says what they are.
pub(super) fn convert(
    path: &Path,
    folder: &Path,
    tensors: &Tensors,
    mapping: Mapping,
    format: &'static str,
) -> Result<Model> {
    let mut names = match mapping.names.as_deref() {
        Some("fairseq") => Names::fairseq(&mapping.prefix),
        None => Names::new(BTreeMap::new(), true),
        Some(other) => {
            return Err(bad(
                path,
                format!("`names` ({other:?}) must be \"fairseq\""),
            ));
        }
    };
    names.output_first = mapping.output_first;
    let own = |key: &str, usual: &str| {
        let usual = || format!("{}{usual}", mapping.prefix);
        mapping.tensors.get(key).cloned().unwrap_or_else(usual)
    };
    let special = [
        own("source_embedding", "encoder.embed_tokens.weight"),
        own("target_embedding", "decoder.embed_tokens.weight"),
        own("output", "decoder.output_projection.weight"),
        own("output_bias", "decoder.output_projection.bias"),
    ];
    names.add(&mapping.tensors);

    let d_model = mapping
        .model
        .get("d_model")
        .and_then(toml::Value::as_integer);
    let d_model =
        d_model.ok_or_else(|| bad(path, "`model.d_model` is missing".to_owned()))? as usize;
    let need = |name: &str| -> Result<super::parts::Matrix> {
        names
            .table(tensors, name, d_model)?
            .ok_or_else(|| ConvertError::MissingTensor {
                path: tensors.path().to_path_buf(),
                name: name.to_owned(),
                count: tensors.len(),
            })
    };
    let (src_table, tgt_table) = (need(&special[0])?, need(&special[1])?);
    let output = names.table(tensors, &special[2], d_model)?;
    let (src, src_tokenizer) =
        mapping
            .vocabulary
            .side(folder, &mapping.vocabulary.source, src_table.rows, false)?;
    let (tgt, tgt_tokenizer) =
        mapping
            .vocabulary
            .side(folder, &mapping.vocabulary.target, tgt_table.rows, true)?;
    let mut parts = Parts::default();
    let tying = parts.embeddings((&src_table, &src), (&tgt_table, &tgt), output.as_ref());
    let bias = match tensors.get(&special[3]) {
        Some(_) => Some(vector(tensors, &special[3], tgt_table.rows)?),
        None => None,
    };
    parts.vector("embeddings.projection_bias", tgt.bias(bias.as_deref(), &[]));

    let config = TransformerConfig {
        tying,
        ..model_of(path, &mapping.model, [src.len(), tgt.len()])?
    };
    names.collect(tensors, &config, &mut parts)?;
    Ok(Model {
        format,
        weights: tensors.path().to_path_buf(),
        config,
        parts,
        tokenizers: Tokenizers {
            src: src_tokenizer,
            tgt: tgt_tokenizer,
        },
        generation: mapping.generation,
        shortlist: None,
        warnings: Vec::new(),
    })
}

/// Our configuration: the keys of the mapping, and the paper's for the others.
fn model_of(
    path: &Path,
    keys: &toml::Table,
    [src_vocab, tgt_vocab]: [usize; 2],
) -> Result<TransformerConfig> {
    let wrong = |error: serde_json::Error| bad(path, format!("[model]: {error}"));
    let base = TransformerConfig {
        dropout: 0.0,
        norm_epsilon: 1e-5,
        ..Preset::Base.config(src_vocab, tgt_vocab)
    };
    let mut config = serde_json::to_value(base).map_err(wrong)?;
    for (key, value) in keys {
        config[key.as_str()] = serde_json::to_value(value).map_err(wrong)?;
    }
    if !keys.contains_key("kv_heads") {
        config["kv_heads"] = config["heads"].clone();
    }
    serde_json::from_value(config).map_err(wrong)
}

impl VocabularyFiles {
    /// The order of the ids of a side, and its tokenizer.
    fn side(
        &self,
        folder: &Path,
        file: &Path,
        rows: usize,
        target: bool,
    ) -> Result<(Order, Tokenizer)> {
        let path = folder.join(file);
        let name = super::name_of(&path);
        let (fairseq, entries) = match path.extension().and_then(|end| end.to_str()) {
            Some("json") => (false, vocabulary_file::json(&path)?),
            Some("yml" | "yaml") => (false, vocabulary_file::yml(&path)?),
            _ if name.starts_with("dict.") => (true, vocabulary_file::fairseq_dict(&path)?),
            _ => (false, vocabulary_file::txt(&path)?),
        };
        // fairseq's special tokens come before its dictionary.
        let before = ["<s>", "<pad>", "</s>", "<unk>"]
            .into_iter()
            .filter(|_| fairseq);
        let mut tokens: Vec<String> = before.map(str::to_owned).collect();
        tokens.extend(entries.into_iter().map(|(token, _)| token));
        let id = |spelling: &str| {
            tokens
                .iter()
                .position(|token| token == spelling)
                .map(|id| id as u32)
        };
        let need = |spelling: &str| {
            let found = format!("no token {spelling:?}");
            id(spelling)
                .ok_or_else(|| refused(&path, "the vocabulary", found, "it is a special token"))
        };
        let text =
            |own: &Option<String>, usual: &str| own.clone().unwrap_or_else(|| usual.to_owned());
        let end = need(&text(&self.end, "</s>"))?;
        let specials = Specials {
            start: match text(&self.start, "<s>").as_str() {
                "" => Start::Zero,
                start => Start::Token(need(start)?),
            },
            end,
            padding: id(&text(&self.padding, "<pad>")),
            unknown: id(&text(&self.unknown, "<unk>")),
        };
        let order = Order::new(&path, tokens, rows, specials)?;
        let pieces = self
            .target_pieces
            .as_ref()
            .filter(|_| target)
            .or(self.pieces.as_ref());
        let pieces_path = pieces.map(|name| folder.join(name));
        let pieces = || -> Result<Vec<u8>> {
            let missing = || bad(folder, "`vocabulary.pieces` is missing".to_owned());
            whole_files::tokenizer(pieces_path.as_deref().ok_or_else(missing)?)
        };
        let vocabulary = order.tokens();
        let tokenizer = match self.tokenizer.as_str() {
            "subword-nmt" => {
                Tokenizer::subword_nmt(&String::from_utf8_lossy(&pieces()?), vocabulary)
            }
            "sentencepiece" => Tokenizer::sentencepiece_with_vocabulary(&pieces()?, vocabulary),
            "characters" => Tokenizer::characters(vocabulary),
            "spaces" => Tokenizer::spaces(vocabulary),
            other => {
                let known = "subword-nmt, sentencepiece, characters and spaces are known";
                return Err(refused(
                    folder,
                    "`vocabulary.tokenizer`",
                    format!("{other:?}"),
                    known,
                ));
            }
        };
        let of = pieces_path.as_deref().unwrap_or(&path);
        let tokenizer = tokenizer.map_err(ConvertError::tokenizer(of))?;
        Ok((order, tokenizer))
    }
}

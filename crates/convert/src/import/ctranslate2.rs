//! Models of CTranslate2: `model.bin` with its vocabularies, and Argos packages, which hold one.
//!
//! Matrices stand output by output; queries, keys and values of an attention are one matrix. int8 has a scale for each
//! row, int16 one for all, and both are divisors. Every variable is either used or known to change nothing, so
//! that a model with parts that ours lacks is refused by their names.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use attentive_model::Tokenizers;
use attentive_model::config::{
    Activation, Autoregression, EmbeddingNorm, FinalNorm, NormPlacement, PositionKind,
    TransformerConfig,
};
use attentive_model::generation::{BeamRule, EarlyEnd, Generation};
use attentive_text::Tokenizer;
use attentive_text::special::BOS;
use attentive_text::tokenizer::vocabulary_file;
use serde_json::Value;

use super::ctranslate2_variables::Variables;
use super::exported::{self, Exported};
use super::parts::Parts;
use super::vocabulary::{Order, Specials, Start};
use super::{Model, folder_of, json, refused, whole_files};
use crate::error::{ConvertError, Result};
use crate::files::archive::{Archive, Checksums};
use crate::files::bytes::Bytes;
use crate::files::ctranslate2;
use crate::files::limits::Budget;

/// Reads a folder with `model.bin`.
pub(super) fn read(folder: &Path) -> Result<Model> {
    let path = folder.join("model.bin");
    let file = ctranslate2::read(&path)?;
    let config = match folder.join("config.json") {
        path if path.is_file() => json(&path)?,
        _ => Value::Null,
    };
    let variables = Variables {
        file: &file,
        path: &path,
        used: RefCell::default(),
    };
    let exported = Exported::of(&folder.join("config.json"), &config)?;
    let tokens = SpecialTokens::read(&variables, &config);
    let mut parts = Parts::default();
    let src_table = variables.table(&["encoder/embeddings_0", "encoder/embeddings"])?;
    let tgt_table = variables.table(&["decoder/embeddings"])?;
    let output = variables.table(&["decoder/projection"])?;
    let rows = [src_table.rows, tgt_table.rows];
    let own = match exported {
        Some(_) => exported::tokenizers(folder)?,
        None => None,
    };
    let vocabulary = match own {
        Some(tokenizers) => Vocabulary {
            src: exported::order(&path, &tokenizers.src, rows[0])?,
            tgt: exported::order(&path, &tokenizers.tgt, rows[1])?,
            tokenizers,
        },
        None => Vocabulary::read(folder, &tokens, rows)?,
    };
    let tying = parts.embeddings(
        (&src_table, &vocabulary.src),
        (&tgt_table, &vocabulary.tgt),
        Some(&output),
    );
    let bias = variables.vector("decoder/projection/bias", rows[1])?;
    parts.vector(
        "embeddings.projection_bias",
        vocabulary.tgt.bias(bias.as_deref(), &[]),
    );

    let layers = ["encoder", "decoder"].map(|stack| variables.layers(stack));
    let d_model = src_table.columns;
    let d_ff = variables.rows("encoder/layer_0/ffn/linear_0/weight");
    let heads = variables.heads()?;
    let model = TransformerConfig {
        src_vocab: vocabulary.src.len(),
        tgt_vocab: vocabulary.tgt.len(),
        d_model,
        d_ff,
        heads,
        kv_heads: heads,
        encoder_layers: layers[0],
        decoder_layers: layers[1],
        dropout: 0.0,
        norm: match variables.number("pre_norm") {
            Some(0.0) => NormPlacement::Post,
            _ => NormPlacement::Pre,
        },
        activation: match variables.number("activation").unwrap_or(0.0) as i64 {
            0 => Activation::Relu,
            1 => Activation::GeluTanh,
            2 => Activation::Swish,
            3 => Activation::Gelu,
            4 => Activation::GeluSigmoid,
            other => {
                let found = format!("activation {other}");
                return Err(refused(&path, "the variables", found, "0 to 4 are known"));
            }
        },
        positions: PositionKind::TimingSignal,
        position_offset: 1,
        max_positions: 1024,
        embedding_scale: variables.embedding_scale(d_model),
        embedding_norm: if variables.has("encoder/layernorm_embedding/gamma") {
            EmbeddingNorm::LayerNorm
        } else {
            EmbeddingNorm::None
        },
        final_norm: if variables.has("encoder/layer_norm/gamma") {
            FinalNorm::LayerNorm
        } else {
            FinalNorm::None
        },
        autoregression: Autoregression::SelfAttention,
        tying,
        norm_epsilon: config
            .get("layer_norm_epsilon")
            .and_then(Value::as_f64)
            .unwrap_or(1e-5),
    };
    let model = variables.positions(model, &mut parts)?;
    variables.stacks(&model, &mut parts)?;
    variables.all_are_used()?;

    if let Some(Exported { config, generation }) = exported {
        return Ok(Model {
            format: "CTranslate2",
            config,
            parts,
            tokenizers: vocabulary.tokenizers,
            generation,
            shortlist: None,
            warnings: Vec::new(),
            weights: path,
        });
    }
    let mut generation = Generation {
        source_end: tokens.source_end,
        beam_rule: BeamRule::FullUntilEnough,
        max_length: Some(256),
        min_length: 1,
        early_end: EarlyEnd::LeftOut,
        origin: Some("CTranslate2".to_owned()),
        ..Generation::default()
    };
    if tokens.source_start {
        generation.source_prefix.push(BOS);
    }
    Ok(Model {
        format: "CTranslate2",
        config: model,
        parts,
        tokenizers: vocabulary.tokenizers,
        generation,
        shortlist: None,
        warnings: Vec::new(),
        weights: path,
    })
}

/// Reads an Argos package that is unpacked: `metadata.json`, `model/` and `sentencepiece.model`.
pub(super) fn read_argos(folder: &Path) -> Result<Model> {
    let metadata = json(&folder.join("metadata.json"))?;
    let mut model = read(&folder.join("model"))?;
    let code = |key: &str| Some(metadata.get(key)?.as_str()?.to_owned());
    model.format = "Argos (CTranslate2)";
    model.generation.source_language = code("from_code");
    model.generation.target_language = code("to_code");
    model.generation.beam = Some(4);
    // Argos forces this word before every target of its models of many languages.
    if let Some(prefix) = code("target_prefix").filter(|prefix| !prefix.is_empty()) {
        let id = model.tokenizers.tgt.id(&prefix);
        let path = folder.join("metadata.json");
        let found = format!("`target_prefix` {prefix:?}");
        let id =
            id.ok_or_else(|| refused(&path, "the package", found, "the vocabulary lacks it"))?;
        model.generation.target_prefix = vec![id];
    }
    Ok(model)
}

/// Reads an Argos package, a zip file. What is needed of it is unpacked into a folder that goes away again.
pub(super) fn read_package(package: &Path) -> Result<Model> {
    let folder = tempfile::tempdir().map_err(ConvertError::io("unpack", package))?;
    let bytes = Bytes::map(package)?;
    let mut budget = Budget::new(package, bytes.len());
    let archive = Archive::open(package, &bytes, &mut budget)?;
    let root = archive
        .names()
        .find_map(|name| name.strip_suffix("metadata.json"));
    let root = root.ok_or_else(|| ConvertError::Unrecognized {
        path: package.to_path_buf(),
        found: "it holds no metadata.json".to_owned(),
    })?;
    let model = folder.path().join("model");
    fs::create_dir(&model).map_err(ConvertError::io("create", &model))?;
    for name in archive.names() {
        // Names of one or two plain parts: nothing is written anywhere else.
        let inner: Vec<&str> = name
            .strip_prefix(root)
            .unwrap_or_default()
            .split('/')
            .collect();
        let place = match inner[..] {
            [file] if is_plain(file) => folder.path().join(file),
            ["model", file] if is_plain(file) => model.join(file),
            _ => continue,
        };
        if let Some(contents) = archive.read(name, Checksums::Verified, &mut budget)? {
            fs::write(&place, &contents[..]).map_err(ConvertError::io("write", &place))?;
        }
    }
    read_argos(folder.path())
}

fn is_plain(file: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !file.is_empty() && !file.starts_with('.') && file.bytes().all(allowed)
}

/// The spellings of special tokens, and which of them are around a source.
struct SpecialTokens {
    unknown: String,
    end: String,
    start: String,
    source_start: bool,
    source_end: bool,
    start_from_zero: bool,
}

impl SpecialTokens {
    /// From `config.json` (version 6), else from variables, else as CTranslate2 has them without either.
    fn read(variables: &Variables<'_>, config: &Value) -> Self {
        let text = |key: &str, usual: &str| {
            let own = config.get(key).and_then(Value::as_str).map(str::to_owned);
            own.or_else(|| variables.text(key))
                .unwrap_or_else(|| usual.to_owned())
        };
        let flag = |new: &str, old: &str| {
            let own = config.get(new).and_then(Value::as_bool);
            own.unwrap_or_else(|| variables.number(old) == Some(1.0))
        };
        let first = text("bos_token", "<s>");
        Self {
            unknown: text("unk_token", "<unk>"),
            end: text("eos_token", "</s>"),
            start: text("decoder_start_token", &first),
            source_start: flag("add_source_bos", "with_source_bos"),
            source_end: flag("add_source_eos", "with_source_eos"),
            start_from_zero: variables.number("start_from_zero_embedding") == Some(1.0),
        }
    }
}

/// Tokenizers, and where the rows of the tables go.
struct Vocabulary {
    tokenizers: Tokenizers,
    src: Order,
    tgt: Order,
}

impl Vocabulary {
    fn read(folder: &Path, special: &SpecialTokens, rows: [usize; 2]) -> Result<Self> {
        let file = |name: &str| {
            ["json", "txt"]
                .map(|end| folder.join(format!("{name}_vocabulary.{end}")))
                .into_iter()
                .find(|path| path.is_file())
        };
        let shared = file("shared");
        let of_side = |name: &str| {
            shared.clone().or_else(|| file(name)).ok_or_else(|| {
                let found = format!("neither shared_vocabulary nor {name}_vocabulary");
                refused(
                    folder,
                    "the folder",
                    found,
                    "a file .json or .txt is needed",
                )
            })
        };
        let [src_path, tgt_path] = [of_side("source")?, of_side("target")?];
        let src_tokens = tokens(&src_path, rows[0], special)?;
        let tgt_tokens = tokens(&tgt_path, rows[1], special)?;
        let src = order(&src_path, &src_tokens, rows[0], special)?;
        let tgt = order(&tgt_path, &tgt_tokens, rows[1], special)?;
        let pieces = |names: &[&str]| {
            let package = folder_of(folder);
            let package = Some(package).filter(|package| package.join("metadata.json").is_file());
            let folders = || [Some(folder), package].into_iter().flatten();
            let mut paths = names
                .iter()
                .flat_map(|name| folders().map(move |folder| folder.join(name)));
            paths.find(|path| path.is_file())
        };
        let shared = [
            "sentencepiece.model",
            "spm.model",
            "sentencepiece.bpe.model",
        ];
        let src_pieces = pieces(&["source.spm"]).or_else(|| pieces(&shared));
        let tgt_pieces = pieces(&["target.spm"]).or_else(|| pieces(&shared));
        Ok(Self {
            tokenizers: Tokenizers {
                src: tokenizer(src_pieces, &src_path, &src, &src_tokens)?,
                tgt: tokenizer(tgt_pieces, &tgt_path, &tgt, &tgt_tokens)?,
            },
            src,
            tgt,
        })
    }
}

fn tokens(path: &Path, rows: usize, special: &SpecialTokens) -> Result<Vec<String>> {
    let tokens = if path.extension().is_some_and(|end| end == "json") {
        vocabulary_file::json(path)?
    } else {
        vocabulary_file::txt(path)?
    };
    let mut tokens: Vec<String> = tokens.into_iter().map(|(token, _)| token).collect();
    // CTranslate2 adds the unknown token where a vocabulary has none.
    if tokens.len() < rows && !tokens.contains(&special.unknown) {
        tokens.push(special.unknown.clone());
    }
    Ok(tokens)
}

fn order(path: &Path, tokens: &[String], rows: usize, special: &SpecialTokens) -> Result<Order> {
    let id = |spelling: &str| {
        let place = tokens.iter().position(|token| token == spelling);
        place.map(|place| place as u32)
    };
    let need = |spelling: &str| {
        id(spelling).ok_or_else(|| {
            let found = format!("no token {spelling:?}");
            refused(
                path,
                "the vocabulary",
                found,
                "it is one of the model's special tokens",
            )
        })
    };
    let end = need(&special.end)?;
    let specials = Specials {
        start: if special.start_from_zero {
            Start::Zero
        } else {
            Start::Token(need(&special.start)?)
        },
        end,
        padding: id("<blank>").or_else(|| id("<pad>")),
        unknown: id(&special.unknown),
    };
    Order::new(path, tokens.to_vec(), rows, specials)
}

/// SentencePiece where there is a file, characters where all tokens are such, and otherwise tokens with spaces between.
fn tokenizer(
    pieces: Option<PathBuf>,
    vocabulary_path: &Path,
    order: &Order,
    tokens: &[String],
) -> Result<Tokenizer> {
    let vocabulary = order.tokens();
    if let Some(path) = pieces {
        let bytes = whole_files::tokenizer(&path)?;
        return Tokenizer::sentencepiece_with_vocabulary(&bytes, vocabulary)
            .map_err(ConvertError::tokenizer(&path));
    }
    let is_special = |token: &str| token.starts_with('<') && token.ends_with('>');
    let mut others = tokens.iter().filter(|token| !is_special(token));
    let tokenizer = if others.all(|token| token.chars().count() == 1) {
        Tokenizer::characters(vocabulary)
    } else {
        Tokenizer::spaces(vocabulary)
    };
    tokenizer.map_err(ConvertError::tokenizer(vocabulary_path))
}

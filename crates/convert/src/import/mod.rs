//! Other programs' models to model directories.
//!
//! ```text
//! folder or file --detect--> format --its importer--> Model: config, parts, tokenizers, generation --> model directory
//! ```
//!
//! - `detect`: which format it is, from the files.
//! - `huggingface`, `marian` (and `bergamot`, its small models), `ctranslate2` (and Argos packages), `fairseq`: what
//!   the files of each format mean.
//! - `bert`, `vit`: the encoders with heads of Hugging Face, which are families of their own.
//! - `mapping`: a state dict of any program, with a file that says what its tensors are.
//! - `exported`: what exporting a model of ours left for its way back.
//! - `vocabulary`: which token becomes which of our ids. `parts`: weights under our names, written as our file.
//! - `whole_files`: settings and tokenizers, with limits of their sizes.

mod bergamot;
mod bert;
mod ctranslate2;
mod ctranslate2_variables;
mod detect;
pub(crate) mod exported;
mod fairseq;
mod huggingface;
mod huggingface_vocabulary;
mod mapping;
mod marian;
mod marian_options;
mod marian_vocabulary;
mod parts;
mod state_dict;
mod vit;
mod vocabulary;
mod whole_files;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use attentive_model::config::{ModelConfig, TransformerConfig};
use attentive_model::{Generation, ModelError, Shortlist, Tokenizers, durable};

use crate::error::{ConvertError, Result};
pub use detect::{Format, detect};
use parts::Parts;
use whole_files::json;

/// How to import a model.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// The numbers of the weights.
    pub weights: WeightKind,
    /// A file that says which tensors of a state dict are which of ours, for models of other programs than those that
    /// are known.
    pub mapping: Option<PathBuf>,
    /// The source language of a model of many languages, as the model calls it: `en`.
    pub source_language: Option<String>,
    /// The target language of a model of many languages.
    pub target_language: Option<String>,
}

/// The numbers of the weights of an imported model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WeightKind {
    /// Int8 where the original is int8, with its scales; f32 otherwise.
    #[default]
    AsIs,
    /// 32-bit floating point.
    F32,
    /// 8-bit integers.
    Int8,
}

/// What was imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// What it was made from, such as `Marian (npz)`.
    pub source_format: String,
    /// The codes of the source and the target language, where the files say them.
    pub languages: Option<(String, String)>,
    /// The languages that a model of several targets writes, if none of them was chosen.
    pub targets: Vec<String>,
    /// What is different from the original, each a sentence.
    pub warnings: Vec<String>,
}

/// A model of another program in our terms, before it is written.
struct Model {
    format: &'static str,
    /// What errors call the weights.
    weights: PathBuf,
    config: TransformerConfig,
    parts: Parts,
    tokenizers: Tokenizers,
    generation: Generation,
    shortlist: Option<Shortlist>,
    warnings: Vec<String>,
}

/// The name of the shortlist of an imported model.
const SHORTLIST: &str = "shortlist.bin";

/// Writes the model of `source`, a folder or a file of another program, to the new model directory `out`, which
/// appears complete or not at all.
pub fn import(source: &Path, out: &Path, options: &ImportOptions) -> Result<Imported> {
    if out.exists() && !fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none()) {
        return Err(ConvertError::AlreadyThere {
            path: out.to_path_buf(),
        });
    }
    if options.mapping.is_none()
        && let Format::HuggingFace { folder } = detect(source)?
    {
        let config = json(&folder.join("config.json"))?;
        match config["model_type"].as_str() {
            Some(bert::MODEL_TYPE) => return bert::import(&folder, out),
            Some(vit::MODEL_TYPE) => return vit::import(&folder, out),
            _ => {}
        }
    }
    let mut model = read(source, options)?;
    targets(&mut model, options)?;
    let impossible = |problems| ModelError::ImpossibleModel {
        path: model.weights.clone(),
        problems,
    };
    model.config.check().map_err(impossible)?;
    model.parts.has_layers(&model.weights, &model.config)?;
    if model.shortlist.is_some() {
        model.generation.shortlist = Some(SHORTLIST.to_owned());
    }
    let impossible = |problems| ModelError::BadGeneration {
        path: model.weights.clone(),
        problems,
    };
    model.generation.check(&model.config).map_err(impossible)?;

    let Generation {
        source_language,
        target_language,
        target_languages,
        ..
    } = model.generation.clone();
    let mut warnings = model.warnings;
    let failed = ConvertError::io_at("create", out);
    durable::write_folder(out, failed, |folder| {
        let written = model.parts.write(
            folder,
            &model.weights,
            &model.config,
            &model.tokenizers,
            options.weights,
        )?;
        warnings.extend(written);
        if let Some(shortlist) = &model.shortlist {
            let path = folder.join(SHORTLIST);
            durable::write(&path, &shortlist.to_bytes())
                .map_err(ConvertError::io("write", &path))?;
        }
        Ok(model.generation.write(folder)?)
    })?;
    Ok(Imported {
        source_format: model.format.to_owned(),
        languages: source_language.zip(target_language),
        targets: target_languages.into_keys().collect(),
        warnings,
    })
}

fn read(source: &Path, options: &ImportOptions) -> Result<Model> {
    if let Some(mapping) = &options.mapping {
        return mapping::read(source, mapping);
    }
    match detect(source)? {
        Format::HuggingFace { folder } => huggingface::read(&folder, options),
        Format::Marian { weights } => marian::read(&weights),
        Format::Ctranslate2 { folder } => ctranslate2::read(&folder),
        Format::Argos { folder } => ctranslate2::read_argos(&folder),
        Format::ArgosPackage { package } => ctranslate2::read_package(&package),
        Format::Fairseq { weights } => fairseq::read(&weights),
    }
}

/// Models of several target languages (of OPUS-MT, for example) have a token such as `>>fra<<` for each, which stands
/// before the source. The one that was asked for is put there always; without one, all of them are noted.
fn targets(model: &mut Model, options: &ImportOptions) -> Result<()> {
    let tokenizer = &model.tokenizers.src;
    let language = |id: u32| {
        let token = tokenizer.token(id)?;
        let code = token.strip_prefix(">>")?.strip_suffix("<<")?;
        Some((code.to_owned(), id)).filter(|_| !code.is_empty())
    };
    let found: BTreeMap<String, u32> = (0..tokenizer.vocab_size() as u32)
        .filter_map(language)
        .collect();
    let chosen = !model.generation.source_prefix.is_empty();
    if found.len() < 2 || chosen {
        return Ok(());
    }
    let names: Vec<String> = found.keys().cloned().collect();
    model.generation.target_languages = found;
    model.generation.target_language = None;
    match &options.target_language {
        Some(code) if !model.generation.choose_target(code) => Err(refused(
            &model.weights,
            "the model",
            format!("the target language {code:?}"),
            &format!("it writes {}", names.join(", ")),
        )),
        _ => Ok(()),
    }
}

/// The folder of a file.
fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// The files of a folder, by name.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = || ConvertError::io_at("read", folder);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed())? {
        let path = entry.map_err(failed())?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The name of a file, for looking at how it begins and ends.
fn name_of(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

/// A JSON file that is not what was expected.
fn bad_json(path: &Path, expected: &str, error: &serde_json::Error) -> ConvertError {
    ConvertError::Damaged {
        path: path.to_path_buf(),
        format: "JSON",
        place: format!("line {}", error.line()),
        expected: expected.to_owned(),
        found: error.to_string(),
    }
}

/// What another program's model has that ours cannot have.
fn refused(
    path: &Path,
    place: impl Into<String>,
    found: impl Into<String>,
    remedy: &str,
) -> ConvertError {
    ConvertError::Unsupported {
        path: path.to_path_buf(),
        place: place.into(),
        found: found.into(),
        remedy: remedy.to_owned(),
    }
}

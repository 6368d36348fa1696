//! Model directories to other programs' models: Hugging Face, CTranslate2, Marian, ONNX.
//!
//! `source` reads the model in the layouts that other programs have; each format is a file here. What a format
//! cannot express is refused with its name, and nothing is written then. A folder appears whole or not at all.

mod ctranslate2;
mod huggingface;
mod marian;
mod npz;
mod onnx;
mod source;

use std::path::Path;

use attentive_model::directory::ModelDir;
use attentive_model::durable;

use crate::error::{ConvertError, Result};
use source::Source;

/// The program that a model is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// A folder that `transformers` loads with `AutoModelForSeq2SeqLM` and `AutoTokenizer`.
    HuggingFace,
    /// Encoder, decoder and decoder with past as separate ONNX graphs.
    Onnx,
    /// A folder that `ctranslate2.Translator` loads.
    Ctranslate2,
    /// `model.npz` and its vocabulary for `marian-decoder`.
    Marian,
}

impl ExportFormat {
    /// What the format is called in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::HuggingFace => "Hugging Face",
            Self::Onnx => "ONNX",
            Self::Ctranslate2 => "CTranslate2",
            Self::Marian => "Marian",
        }
    }
}

/// Writes the model into the folder `out`, which must not be there yet. What differs a little in the other program is
/// told in the warnings. An int8 model keeps its 8 bits in CTranslate2 and ONNX, and becomes f32 elsewhere.
pub fn export(model: &ModelDir, format: ExportFormat, out: &Path) -> Result<Vec<String>> {
    if out.exists() {
        return Err(ConvertError::AlreadyThere {
            path: out.to_path_buf(),
        });
    }
    let source = Source::new(model, format)?;
    let failed = |error| ConvertError::io("write", out)(error);
    durable::write_folder(out, failed, |folder| match format {
        ExportFormat::HuggingFace => huggingface::write(&source, folder),
        ExportFormat::Onnx => onnx::write(&source, folder),
        ExportFormat::Ctranslate2 => ctranslate2::write(&source, folder),
        ExportFormat::Marian => marian::write(&source, folder),
    })
}

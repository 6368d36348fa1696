//! The vocabularies of a Marian model: SentencePiece files, whose ids are the model's, or `token: id` in YAML.

use std::path::{Path, PathBuf};

use attentive_model::Tokenizers;
use attentive_text::tokenizer::vocabulary_file;
use attentive_text::{SentencePiece, Tokenizer};

use super::marian_options::Options;
use super::vocabulary::{Order, Specials, Start};
use super::{bergamot, files_of, folder_of, name_of, refused};
use crate::error::{ConvertError, Result};

/// Tokenizers, and where the rows of the tables go.
pub(super) struct Vocabularies {
    pub tokenizers: Tokenizers,
    pub src: Order,
    pub tgt: Order,
    /// Whether both sides have one file.
    pub shared: bool,
}

impl Vocabularies {
    /// Those that the decoder's options name, else those beside the weights.
    pub fn find(
        weights: &Path,
        decoder: Option<&Options>,
        [src, tgt]: &[usize; 2],
    ) -> Result<Self> {
        let folder = folder_of(weights);
        let named = decoder.map_or(&[][..], |decoder| decoder.list("vocabs"));
        let named: Vec<PathBuf> = named
            .iter()
            .filter_map(|name| Path::new(name).file_name().map(|name| folder.join(name)))
            .filter(|path| path.is_file())
            .collect();
        let found = files_of(folder)?;
        let found: Vec<PathBuf> = found
            .into_iter()
            .filter(|path| is_vocabulary(path))
            .collect();
        let [src_path, tgt_path] = match (&named[..], &found[..]) {
            ([src, tgt], _) => [src.clone(), tgt.clone()],
            (_, [shared]) => [shared.clone(), shared.clone()],
            (_, [a, b]) => match (side_of(a), side_of(b)) {
                (Some(Side::Source), Some(Side::Target)) => [a.clone(), b.clone()],
                (Some(Side::Target), Some(Side::Source)) => [b.clone(), a.clone()],
                _ => return Err(unclear(folder, &found)),
            },
            _ => return Err(unclear(folder, &found)),
        };
        let shared = src_path == tgt_path;
        let (src_tokenizer, src) = vocabulary(&src_path, *src)?;
        let (tgt_tokenizer, tgt) = vocabulary(&tgt_path, *tgt)?;
        Ok(Self {
            tokenizers: Tokenizers {
                src: src_tokenizer,
                tgt: tgt_tokenizer,
            },
            src,
            tgt,
            shared,
        })
    }
}

fn is_vocabulary(path: &Path) -> bool {
    let name = name_of(path);
    let name = name.strip_suffix(".gz").unwrap_or(name);
    name.ends_with(".spm")
        || name.contains("vocab") && (name.ends_with(".yml") || name.ends_with(".yaml"))
}

enum Side {
    Source,
    Target,
}

fn side_of(path: &Path) -> Option<Side> {
    let name = name_of(path);
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    match (has(&["src", "source"]), has(&["trg", "tgt", "target"])) {
        (true, false) => Some(Side::Source),
        (false, true) => Some(Side::Target),
        _ => None,
    }
}

fn unclear(folder: &Path, found: &[PathBuf]) -> ConvertError {
    let names: Vec<&str> = found.iter().map(|path| name_of(path)).collect();
    let found = if names.is_empty() {
        "no vocabulary (.spm or vocab.yml)".to_owned()
    } else {
        format!("vocabularies {}", names.join(", "))
    };
    refused(
        folder,
        "the folder",
        found,
        "put one vocabulary beside the weights, or one with `src` and one with `trg` in its name",
    )
}

/// A vocabulary for a table of so many rows.
fn vocabulary(path: &Path, rows: usize) -> Result<(Tokenizer, Order)> {
    let name = name_of(path);
    if name.ends_with(".spm") || name.ends_with(".spm.gz") {
        let bytes = bergamot::unpacked(path)?;
        let file = SentencePiece::from_bytes(&bytes, path)?;
        let order = Order::of_sentencepiece(path, &file, rows, Start::Zero)?;
        return Ok((Tokenizer::from_bytes(&bytes, path)?, order));
    }
    let tokens: Vec<String> = vocabulary_file::yml(path)?
        .into_iter()
        .map(|(token, _)| token)
        .collect();
    let id = |spelling| {
        tokens
            .iter()
            .position(|token| token == spelling)
            .map(|id| id as u32)
    };
    let specials = Specials {
        start: Start::Zero,
        end: id("</s>").unwrap_or(0),
        padding: None,
        unknown: id("<unk>").or(Some(1)),
    };
    let order = Order::new(path, tokens, rows, specials)?;
    let tokenizer = Tokenizer::spaces(order.tokens()).map_err(ConvertError::tokenizer(path))?;
    Ok((tokenizer, order))
}

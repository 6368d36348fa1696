//! The file of a tokenizer whose parts come from another program: its vocabulary in the order of our ids, and what
//! cuts text into tokens of that vocabulary.
//!
//! One JSON file, so that the parts cannot be mixed up. A SentencePiece model is in it as base64, the codes of
//! subword-nmt and the `tokenizer.json` of BERT are in it as text, as they were read; characters need nothing else. [`super::file`] tells
//! it apart from the other tokenizer files.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::characters::Characters;
use super::options::TokenizerKind;
use super::subword_nmt::SubwordNmt;
use super::wordpiece::WordPiece;
use super::{Inner, SentencePiece};

const FORMAT: &str = "attentive-imported-1";

/// The file's layout.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImportedFile<'f> {
    format: Cow<'f, str>,
    kind: TokenizerKind,
    tokens: Cow<'f, [String]>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    sentencepiece: Option<Cow<'f, str>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    codes: Option<Cow<'f, str>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    tokenizer: Option<Cow<'f, str>>,
}

/// Whether this is the format of such a file, of this version or another.
pub(super) fn is_format(format: &str) -> bool {
    format.starts_with("attentive-imported")
}

/// Reads the file's text; says what is wrong if it cannot be used.
pub(super) fn from_json(json: &str) -> Result<Inner, String> {
    let file: ImportedFile = serde_json::from_str(json).map_err(|error| error.to_string())?;
    if file.format != FORMAT {
        return Err(format!(
            "its format is {:?}, expected {FORMAT:?}",
            file.format
        ));
    }
    let tokens = file.tokens.into_owned();
    match (file.kind, file.sentencepiece, file.codes, file.tokenizer) {
        (TokenizerKind::SentencePiece, Some(model), None, None) => {
            let model = base64::decode(model.as_bytes())
                .map_err(|error| format!("its SentencePiece model is not base64 ({error})"))?;
            let model = SentencePiece::with_vocabulary(&model, tokens)?;
            Ok(Inner::SentencePiece(Arc::new(model)))
        }
        (TokenizerKind::SubwordNmt, None, Some(codes), None) => Ok(Inner::SubwordNmt(Arc::new(
            SubwordNmt::new(&codes, tokens)?,
        ))),
        (TokenizerKind::WordPiece, None, None, Some(json)) => {
            Ok(Inner::WordPiece(Arc::new(WordPiece::new(&json, tokens)?)))
        }
        (TokenizerKind::Characters, None, None, None) => {
            Ok(Inner::Characters(Arc::new(Characters::new(tokens)?)))
        }
        (kind, ..) => Err(format!(
            "its kind is {kind}, expected sentencepiece with `sentencepiece`, subword-nmt with `codes`, wordpiece \
             with `tokenizer`, or characters with none of them"
        )),
    }
}

pub(super) fn sentencepiece_to_json(model: &SentencePiece) -> String {
    to_json(&ImportedFile {
        format: Cow::Borrowed(FORMAT),
        kind: TokenizerKind::SentencePiece,
        tokens: Cow::Borrowed(model.vocabulary().tokens()),
        sentencepiece: Some(Cow::Owned(base64::encode(model.file()))),
        codes: None,
        tokenizer: None,
    })
}

pub(super) fn subword_nmt_to_json(model: &SubwordNmt) -> String {
    to_json(&ImportedFile {
        format: Cow::Borrowed(FORMAT),
        kind: TokenizerKind::SubwordNmt,
        tokens: Cow::Borrowed(model.vocabulary().tokens()),
        sentencepiece: None,
        codes: Some(Cow::Borrowed(model.codes())),
        tokenizer: None,
    })
}

pub(super) fn wordpiece_to_json(model: &WordPiece) -> String {
    to_json(&ImportedFile {
        format: Cow::Borrowed(FORMAT),
        kind: TokenizerKind::WordPiece,
        tokens: Cow::Borrowed(model.vocabulary().tokens()),
        sentencepiece: None,
        codes: None,
        tokenizer: Some(Cow::Owned(model.json())),
    })
}

pub(super) fn characters_to_json(model: &Characters) -> String {
    to_json(&ImportedFile {
        format: Cow::Borrowed(FORMAT),
        kind: TokenizerKind::Characters,
        tokens: Cow::Borrowed(model.vocabulary().tokens()),
        sentencepiece: None,
        codes: None,
        tokenizer: None,
    })
}

fn to_json(file: &ImportedFile) -> String {
    // Strings and an enum always have a JSON form.
    serde_json::to_string_pretty(file).expect("a tokenizer of strings is plain JSON")
}

//! The tokenizers of Hugging Face models: SentencePiece with `vocab.json`, or alphabets in the configuration; and
//! the tokens around a text.

use std::fs;
use std::path::Path;

use attentive_model::{Generation, Tokenizers};
use attentive_text::Tokenizer;
use attentive_text::tokenizer::vocabulary_file;
use serde_json::Value;

use super::exported;
use super::huggingface::{Config, Family, Search};
use super::vocabulary::{Order, Specials};
use super::{ImportOptions, refused};
use crate::error::{ConvertError, Result};

/// Tokenizers, and where the rows of the tables go.
pub(super) struct Vocabulary {
    pub tokenizers: Tokenizers,
    pub src: Order,
    pub tgt: Order,
    pub rows: [usize; 2],
    /// The target's tokens in the other program's order.
    tokens: Vec<String>,
}

impl Vocabulary {
    pub fn read(
        folder: &Path,
        config: &Config<'_>,
        family: Family,
        specials: Specials,
        rows: [usize; 2],
    ) -> Result<Self> {
        if config.get("attentive").is_some()
            && let Some(tokenizers) = exported::tokenizers(folder)?
        {
            return Self::of_exported(config.path, tokenizers, rows);
        }
        let file = |name: &str| Some(folder.join(name)).filter(|path| path.is_file());
        let bytes = |path: &Path| fs::read(path).map_err(ConvertError::io("read", path));
        // Letters to phonemes: both alphabets are in the configuration.
        if let [Some(src), Some(tgt)] =
            ["grapheme_chars", "phoneme_chars"].map(|key| config.text(key))
        {
            // The first four characters stand for special tokens.
            let special = ["<pad>", "<s>", "</s>", "<unk>"].map(str::to_owned);
            let tokens = |chars: &str| {
                let others = chars.chars().skip(special.len()).map(String::from);
                special.iter().cloned().chain(others).collect::<Vec<_>>()
            };
            let specials = Specials {
                unknown: Some(3),
                ..specials
            };
            let src = Order::new(config.path, tokens(src), rows[0], specials)?;
            let tgt = Order::new(config.path, tokens(tgt), rows[1], specials)?;
            return Ok(Self {
                tokenizers: Tokenizers {
                    src: Tokenizer::characters(src.tokens())?,
                    tgt: Tokenizer::characters(tgt.tokens())?,
                },
                src,
                tgt,
                rows,
                tokens: Vec::new(),
            });
        }
        let pieces = match family {
            Family::Marian => [file("source.spm"), file("target.spm")],
            _ => {
                let both = file("sentencepiece.bpe.model").or_else(|| file("spm.128k.model"));
                [both.clone(), both]
            }
        };
        let ([Some(src_pieces), Some(tgt_pieces)], Some(vocab)) = (pieces, file("vocab.json"))
        else {
            let found = "a tokenizer that is not a SentencePiece model (source.spm, target.spm or \
                         sentencepiece.bpe.model) with vocab.json";
            return Err(refused(
                folder,
                "the tokenizer",
                found,
                "only such tokenizers are read",
            ));
        };
        let of_file = |path: &Path| -> Result<Vec<String>> {
            let tokens = vocabulary_file::json(path)?;
            Ok(tokens.into_iter().map(|(token, _)| token).collect())
        };
        let mut src_tokens = of_file(&vocab)?;
        src_tokens.extend(added_tokens(folder, src_tokens.len())?);
        let tgt_tokens = match file("target_vocab.json") {
            Some(path) => of_file(&path)?,
            None => src_tokens.clone(),
        };
        let order = |path: &Path, tokens: &[String], rows| {
            let unknown = tokens.iter().position(|token| token == "<unk>");
            let specials = Specials {
                unknown: unknown.map(|id| id as u32),
                ..specials
            };
            Order::new(path, tokens.to_vec(), rows, specials)
        };
        let src = order(&vocab, &src_tokens, rows[0])?;
        let tgt = order(&vocab, &tgt_tokens, rows[1])?;
        let tokenizer = |path: &Path, order: &Order| -> Result<Tokenizer> {
            Ok(Tokenizer::sentencepiece_with_vocabulary(
                &bytes(path)?,
                order.tokens(),
            )?)
        };
        Ok(Self {
            tokenizers: Tokenizers {
                src: tokenizer(&src_pieces, &src)?,
                tgt: tokenizer(&tgt_pieces, &tgt)?,
            },
            src,
            tgt,
            rows,
            tokens: tgt_tokens,
        })
    }

    /// Tokenizers of ours, whose ids stay as they are.
    fn of_exported(path: &Path, tokenizers: Tokenizers, rows: [usize; 2]) -> Result<Self> {
        Ok(Self {
            src: exported::order(path, &tokenizers.src, rows[0])?,
            tgt: exported::order(path, &tokenizers.tgt, rows[1])?,
            tokenizers,
            rows,
            tokens: Vec::new(),
        })
    }

    /// The tokens that a family has around a source and before a target.
    pub fn frame(
        &self,
        generation: &mut Generation,
        search: &Search<'_>,
        family: Family,
        options: &ImportOptions,
    ) -> Result<()> {
        let src_ids = self.src.ids(self.rows[0]);
        let tgt_ids = self.tgt.ids(self.rows[1]);
        let our = |ids: &[Option<u32>], id: usize| ids.get(id).copied().flatten();
        if family != Family::Marian {
            let first = search
                .id("bos_token_id")
                .and_then(|id| our(&tgt_ids, id as usize));
            generation.hidden.extend(first);
        }
        match family {
            Family::Marian | Family::Pegasus => {}
            Family::Bart => {
                let first = search
                    .id("bos_token_id")
                    .and_then(|id| our(&src_ids, id as usize));
                generation.source_prefix.extend(first);
                let forced = search
                    .id("forced_bos_token_id")
                    .and_then(|id| our(&tgt_ids, id as usize));
                generation.target_prefix.extend(forced);
            }
            Family::Mbart | Family::M2m100 => {
                for (language, ids, key, tokens) in [
                    (
                        &options.source_language,
                        &src_ids,
                        "from",
                        &mut generation.source_prefix,
                    ),
                    (
                        &options.target_language,
                        &tgt_ids,
                        "to",
                        &mut generation.target_prefix,
                    ),
                ] {
                    tokens.push(self.language(
                        search.config.path,
                        language.as_deref(),
                        ids,
                        key,
                    )?);
                }
            }
        }
        Ok(())
    }

    /// The token of a language: `__de__` in M2M100, `de_DE` in mBART, `deu_Latn` in NLLB.
    fn language(
        &self,
        path: &Path,
        code: Option<&str>,
        ids: &[Option<u32>],
        option: &str,
    ) -> Result<u32> {
        let is_language =
            |token: &str| token.starts_with("__") && token.ends_with("__") || token.contains('_');
        let known = || {
            let known = self
                .tokens
                .iter()
                .rev()
                .take(256)
                .filter(|token| is_language(token));
            known
                .map(|token| token.trim_matches('_'))
                .take(12)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let Some(code) = code else {
            let remedy = format!("say which with --{option}, for example one of {}", known());
            return Err(refused(
                path,
                "the model",
                "a choice of many languages",
                &remedy,
            ));
        };
        let spellings = [format!("__{code}__"), code.to_owned()];
        let place = self
            .tokens
            .iter()
            .position(|token| spellings.contains(token));
        let id = place.and_then(|place| ids.get(place).copied().flatten());
        id.ok_or_else(|| {
            let remedy = format!("there are {}", known());
            refused(path, "the model", format!("the language {code:?}"), &remedy)
        })
    }
}

/// Tokens behind those of `vocab.json`, as M2M100 has them: `added_tokens.json`, or a list of special tokens.
fn added_tokens(folder: &Path, first: usize) -> Result<Vec<String>> {
    let path = folder.join("added_tokens.json");
    let mut added = Vec::new();
    if path.is_file()
        && let Value::Object(tokens) = Config::read(&path)?.json
    {
        let mut numbered: Vec<(u64, String)> = tokens
            .into_iter()
            .filter_map(|(token, id)| Some((id.as_u64()?, token)))
            .filter(|(id, _)| *id >= first as u64)
            .collect();
        numbered.sort();
        for (id, token) in numbered {
            if id == (first + added.len()) as u64 {
                added.push(token);
            }
        }
        return Ok(added);
    }
    let path = folder.join("special_tokens_map.json");
    if path.is_file()
        && let Some(Value::Array(tokens)) = Config::read(&path)?.get("additional_special_tokens")
    {
        let text = |token: &Value| {
            Some(
                token
                    .as_str()
                    .or_else(|| token.get("content")?.as_str())?
                    .to_owned(),
            )
        };
        added.extend(tokens.iter().filter_map(text));
    }
    Ok(added)
}

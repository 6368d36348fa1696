//! The tokenizers of Hugging Face models: SentencePiece with `vocab.json`, or alphabets in the configuration; and
//! the tokens around a text.

use std::path::Path;

use attentive_model::{Generation, Tokenizers};
use attentive_text::tokenizer::vocabulary_file;
use attentive_text::{SentencePiece, Tokenizer};
use serde_json::Value;

use super::exported;
use super::huggingface::{Config, Family, Search};
use super::vocabulary::{Order, Specials};
use super::{ImportOptions, refused, whole_files};
use crate::error::{ConvertError, Result};

/// Tokenizers, and where the rows of the tables go.
pub(super) struct Vocabulary {
    pub tokenizers: Tokenizers,
    pub src: Order,
    pub tgt: Order,
    pub rows: [usize; 2],
    /// The target's tokens in the other program's order.
    tokens: Vec<String>,
    /// What `tokenizer_config.json` calls the tokenizer, without the ending that only says how fast it is.
    tokenizer_class: Option<String>,
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
        let bytes = whole_files::tokenizer;
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
            let wrong = || ConvertError::tokenizer(config.path);
            return Ok(Self {
                tokenizers: Tokenizers {
                    src: Tokenizer::characters(src.tokens()).map_err(wrong())?,
                    tgt: Tokenizer::characters(tgt.tokens()).map_err(wrong())?,
                },
                src,
                tgt,
                rows,
                tokens: Vec::new(),
                tokenizer_class: None,
            });
        }
        let pieces = match family {
            Family::Marian => [file("source.spm"), file("target.spm")],
            _ => {
                let both = file("sentencepiece.bpe.model").or_else(|| file("spm.128k.model"));
                [both.clone(), both]
            }
        };
        let of_file = |path: &Path| -> Result<Vec<String>> {
            let tokens = vocabulary_file::json(path)?;
            Ok(tokens.into_iter().map(|(token, _)| token).collect())
        };
        let (src_pieces, tgt_pieces, vocab, mut src_tokens) = match (pieces, file("vocab.json")) {
            ([Some(src), Some(tgt)], Some(vocab)) => {
                let tokens = of_file(&vocab)?;
                (src, tgt, vocab, tokens)
            }
            // mBART and NLLB number the pieces of the file as fairseq does.
            ([Some(src), Some(tgt)], None) if family != Family::Marian => {
                let tokens = fairseq_order(&bytes(&src)?, &src)?;
                (src.clone(), tgt, src, tokens)
            }
            _ => {
                let found = "a tokenizer that is not a SentencePiece model (source.spm and target.spm with \
                             vocab.json, or sentencepiece.bpe.model)";
                return Err(refused(
                    folder,
                    "the tokenizer",
                    found,
                    "only such tokenizers are read",
                ));
            }
        };
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
            Tokenizer::sentencepiece_with_vocabulary(&bytes(path)?, order.tokens())
                .map_err(ConvertError::tokenizer(path))
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
            tokenizer_class: tokenizer_class(folder)?,
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
            tokenizer_class: None,
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
                // The older tokenizer has the language behind the source, where ours has nothing.
                let class = self.tokenizer_class.as_deref();
                if family == Family::Mbart && class != Some("MBart50Tokenizer") {
                    let found = format!(
                        "an mBART model with the tokenizer {}",
                        class.unwrap_or("of its first version")
                    );
                    let remedy = "mBART-50 (`tokenizer_class` MBart50Tokenizer) is read";
                    return Err(refused(search.config.path, "the model", found, remedy));
                }
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
            let remedy = format!(
                "say which with `attentive import FOLDER --from CODE --to CODE --out DIR`; --{option} is missing, for \
                 example one of {}",
                known()
            );
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

fn tokenizer_class(folder: &Path) -> Result<Option<String>> {
    let path = folder.join("tokenizer_config.json");
    if !path.is_file() {
        return Ok(None);
    }
    let config = Config::read(&path)?;
    let class = config.text("tokenizer_class");
    Ok(class.map(|class| class.strip_suffix("Fast").unwrap_or(class).to_owned()))
}

/// The pieces of a SentencePiece file behind fairseq's four special tokens; the first three of the file are such.
fn fairseq_order(bytes: &[u8], path: &Path) -> Result<Vec<String>> {
    let file = SentencePiece::from_bytes(bytes, path)?;
    let tokenizer = Tokenizer::from_bytes(bytes, path)?;
    let spelled = |id: &u32| tokenizer.token(*id).unwrap_or_default().to_owned();
    let special = ["<s>", "<pad>", "</s>", "<unk>"].map(str::to_owned);
    let others = file.ids().iter().skip(3).map(spelled);
    Ok(special.into_iter().chain(others).collect())
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

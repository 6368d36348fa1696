//! Models of Hugging Face's `transformers`: Marian (OPUS-MT), BART, mBART and M2M100; of Pegasus only those that this
//! program exported.
//!
//! `config.json` says what the model is, `generation_config.json` (else `config.json`) how it is searched, and the
//! tokenizer is that of the family. They differ in norms and positions; the names of their tensors are fairseq's.

use std::path::Path;

use attentive_model::config::{
    Activation, Autoregression, EmbeddingNorm, FinalNorm, NormPlacement, PositionKind,
    TransformerConfig, Tying,
};
use attentive_model::generation::{AtLimit, BeamRule, Generation};
use serde_json::Value;

use super::exported::{self, Exported};
use super::huggingface_vocabulary::Vocabulary;
use super::parts::{Parts, vector};
use super::state_dict::{self, Names};
use super::vocabulary::{Specials, Start};
use super::{ImportOptions, Model, json, name_of, refused};
use crate::error::{ConvertError, Result};

/// The families, which differ in norms and positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Marian,
    Pegasus,
    Bart,
    Mbart,
    M2m100,
}

/// A `config.json`, with errors that name it.
pub(super) struct Config<'a> {
    pub path: &'a Path,
    pub json: Value,
}

impl<'a> Config<'a> {
    pub fn read(path: &'a Path) -> Result<Self> {
        let json = json(path)?;
        Ok(Self { path, json })
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.json.get(key).filter(|value| !value.is_null())
    }

    pub fn size(&self, key: &str) -> Result<usize> {
        let size = self.get(key).and_then(Value::as_u64);
        size.map(|size| size as usize).ok_or_else(|| {
            refused(
                self.path,
                "the configuration",
                format!("no number `{key}`"),
                "it is needed",
            )
        })
    }

    fn id(&self, key: &str) -> Option<u32> {
        self.get(key)?.as_u64()?.try_into().ok()
    }

    fn flag(&self, key: &str, default: bool) -> bool {
        self.get(key).and_then(Value::as_bool).unwrap_or(default)
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// A size that must be the same for both stacks.
    fn both(&self, end: &str) -> Result<usize> {
        let [encoder, decoder] =
            ["encoder", "decoder"].map(|stack| self.size(&format!("{stack}_{end}")));
        let (encoder, decoder) = (encoder?, decoder?);
        if encoder == decoder {
            return Ok(encoder);
        }
        let found = format!("{encoder} `encoder_{end}` and {decoder} `decoder_{end}`");
        Err(refused(
            self.path,
            "the configuration",
            found,
            "they must be the same",
        ))
    }
}

/// Reads a model folder.
pub(super) fn read(folder: &Path, options: &ImportOptions) -> Result<Model> {
    let path = folder.join("config.json");
    let config = Config::read(&path)?;
    let exported = Exported::of(&path, &config.json)?;
    let family = match config.text("model_type").unwrap_or_default() {
        "marian" => Family::Marian,
        "pegasus" if exported.is_some() => Family::Pegasus,
        "bart" => Family::Bart,
        "mbart" => Family::Mbart,
        "m2m_100" => Family::M2m100,
        other => {
            let known = "marian, bart, mbart, m2m_100, bert and vit are known";
            return Err(refused(
                &path,
                "the configuration",
                format!("`model_type` {other:?}"),
                known,
            ));
        }
    };
    let weights = state_dict::weights_of(folder)?;
    let tensors = state_dict::read(&weights)?;
    let prefix = if tensors.names().any(|name| name.starts_with("model.")) {
        "model."
    } else {
        ""
    };
    let names = Names::fairseq(prefix);
    let d_model = config.size("d_model")?;
    let table = |name: String| names.table(&tensors, &name, d_model);
    // The table of a side, else the one that both sides share. PyTorch's files often have one table under several
    // names; it is taken once.
    let [src_name, tgt_name] = ["encoder", "decoder"].map(|side| {
        let own = format!("{prefix}{side}.embed_tokens.weight");
        let own = Some(own).filter(|name| tensors.get(name).is_some());
        own.unwrap_or_else(|| format!("{prefix}shared.weight"))
    });
    let need = |name: &str| {
        table(name.to_owned())?.ok_or_else(|| ConvertError::MissingTensor {
            path: weights.clone(),
            name: name.to_owned(),
            count: tensors.len(),
        })
    };
    let tgt_table = need(&tgt_name)?;
    let place = |name: &str| {
        tensors
            .get(name)
            .map(|tensor| tensor.bytes().as_ptr_range())
    };
    let own_src_table = if place(&src_name) == place(&tgt_name) {
        None
    } else {
        Some(need(&src_name)?)
    };
    let src_table = own_src_table.as_ref().unwrap_or(&tgt_table);
    let output = if config.flag("tie_word_embeddings", true) {
        None
    } else {
        table("lm_head.weight".to_owned())?
    };

    let generation_path = folder.join("generation_config.json");
    let generation_config = if generation_path.is_file() {
        Some(Config::read(&generation_path)?)
    } else {
        None
    };
    let search = Search {
        config: &config,
        generation: generation_config.as_ref(),
    };
    let specials = match exported {
        Some(_) => exported::SPECIALS,
        None => specials(&search, family)?,
    };
    let rows = [src_table.rows, tgt_table.rows];
    let vocabulary = Vocabulary::read(folder, &config, family, specials, rows)?;
    let Vocabulary { src, tgt, .. } = &vocabulary;

    let mut parts = Parts::default();
    let tying = parts.embeddings((src_table, src), (&tgt_table, tgt), output.as_ref());
    let bias = match tensors.get("final_logits_bias") {
        Some(_) => Some(vector(&tensors, "final_logits_bias", rows[1])?),
        None => None,
    };
    let forbidden = search.forbidden();
    // With this option the forbidden tokens are taken out of the softmax.
    let silent = if search.get("renormalize_logits") == Some(&Value::Bool(true)) {
        &forbidden[..]
    } else {
        &[]
    };
    parts.vector(
        "embeddings.projection_bias",
        tgt.bias(bias.as_deref(), silent),
    );
    let config = match &exported {
        Some(own) => own.config.clone(),
        None => transformer(&config, family, [src.len(), tgt.len()], tying)?,
    };
    let config = match config.positions {
        PositionKind::Learned => learned_positions(&tensors, prefix, family, config, &mut parts)?,
        _ => config,
    };
    names.collect(&tensors, &config, &mut parts)?;

    let mut warnings = Vec::new();
    let mut generation = search.generation(&vocabulary, &mut warnings)?;
    if let Some(own) = exported {
        generation = own.generation;
    } else {
        vocabulary.frame(&mut generation, &search, family, options)?;
        // A prefix is on top of the length here, and part of it there.
        let given = generation.target_prefix.len();
        generation.max_length = generation
            .max_length
            .map(|most| most.saturating_sub(given).max(1));
        let [from, to] = languages(folder);
        generation.source_language = options.source_language.clone().or(from);
        generation.target_language = options.target_language.clone().or(to);
        generation.origin = Some(origin(folder, &search));
    }
    Ok(Model {
        format: match family {
            Family::Marian => "Hugging Face (Marian)",
            Family::Pegasus => "Hugging Face (Pegasus)",
            Family::Bart => "Hugging Face (BART)",
            Family::Mbart => "Hugging Face (mBART)",
            Family::M2m100 => "Hugging Face (M2M100)",
        },
        weights,
        config,
        parts,
        tokenizers: vocabulary.tokenizers,
        generation,
        shortlist: None,
        warnings,
    })
}

fn transformer(
    config: &Config<'_>,
    family: Family,
    [src_vocab, tgt_vocab]: [usize; 2],
    tying: Tying,
) -> Result<TransformerConfig> {
    let heads = config.both("attention_heads")?;
    let activation = match config.text("activation_function").unwrap_or("gelu") {
        "relu" => Activation::Relu,
        "swish" | "silu" => Activation::Swish,
        "gelu" => Activation::Gelu,
        "gelu_new" | "gelu_pytorch_tanh" => Activation::GeluTanh,
        "quick_gelu" => Activation::GeluSigmoid,
        other => {
            let found = format!("`activation_function` {other:?}");
            let known =
                "relu, swish, silu, gelu, gelu_new, gelu_pytorch_tanh and quick_gelu are known";
            return Err(refused(config.path, "the configuration", found, known));
        }
    };
    let learned = matches!(family, Family::Bart | Family::Mbart);
    Ok(TransformerConfig {
        src_vocab,
        tgt_vocab,
        d_model: config.size("d_model")?,
        d_ff: config.both("ffn_dim")?,
        heads,
        kv_heads: heads,
        encoder_layers: config.size("encoder_layers")?,
        decoder_layers: config.size("decoder_layers")?,
        dropout: 0.0,
        norm: match family {
            Family::Marian | Family::Bart => NormPlacement::Post,
            Family::Pegasus | Family::Mbart | Family::M2m100 => NormPlacement::Pre,
        },
        activation,
        positions: match family {
            Family::Marian | Family::Pegasus => PositionKind::SinusoidalHalves,
            Family::M2m100 => PositionKind::TimingSignal,
            Family::Bart | Family::Mbart => PositionKind::Learned,
        },
        position_offset: match family {
            // Positions begin behind the number of the padding.
            Family::M2m100 => config.id("pad_token_id").unwrap_or(1) as usize + 1,
            _ => 0,
        },
        max_positions: 1024,
        embedding_scale: (!config.flag("scale_embedding", false)).then_some(1.0),
        embedding_norm: if learned {
            EmbeddingNorm::LayerNorm
        } else {
            EmbeddingNorm::None
        },
        final_norm: FinalNorm::Auto,
        autoregression: Autoregression::SelfAttention,
        tying,
        norm_epsilon: 1e-5,
    })
}

/// Tables of positions; the first two rows of BART's are not used.
fn learned_positions(
    tensors: &crate::files::Tensors,
    prefix: &str,
    family: Family,
    mut config: TransformerConfig,
    parts: &mut Parts,
) -> Result<TransformerConfig> {
    let unused = match family {
        Family::Bart | Family::Mbart => 2,
        Family::Marian | Family::Pegasus | Family::M2m100 => 0,
    };
    let d = config.d_model;
    for (side, ours) in [("encoder", "source"), ("decoder", "target")] {
        let name = format!("{prefix}{side}.embed_positions.weight");
        let rows = tensors
            .get(&name)
            .and_then(|table| table.shape.first().copied());
        let rows = rows.unwrap_or(unused).max(unused);
        let table = tensors.require(&name, &[rows, d])?.to_f32();
        config.max_positions = rows - unused;
        parts.vector(
            format!("embeddings.{ours}_positions.weight"),
            table[unused * d..].to_vec(),
        );
    }
    Ok(config)
}

/// The special tokens of the decoder; `eos` may be a list in newer files.
fn specials(search: &Search<'_>, family: Family) -> Result<Specials> {
    let end = search.ids("eos_token_id").first().copied();
    let start = search
        .id("decoder_start_token_id")
        .or_else(|| search.id("bos_token_id"));
    let missing = |key: &str| {
        refused(
            search.config.path,
            "the configuration",
            format!("no `{key}`"),
            "it is needed",
        )
    };
    let start = start.ok_or_else(|| missing("decoder_start_token_id"))?;
    Ok(Specials {
        start: match family {
            Family::Marian | Family::Pegasus => Start::Token(start),
            // These may predict their `<s>`; it is no text.
            Family::Bart | Family::Mbart | Family::M2m100 => Start::CopyOf(start),
        },
        end: end.ok_or_else(|| missing("eos_token_id"))?,
        padding: search.id("pad_token_id"),
        unknown: None,
    })
}

/// How `generate` searches: `generation_config.json`, and `config.json` for what it lacks.
pub(super) struct Search<'a> {
    pub config: &'a Config<'a>,
    generation: Option<&'a Config<'a>>,
}

impl Search<'_> {
    fn get(&self, key: &str) -> Option<&Value> {
        let own = self.generation.and_then(|generation| generation.get(key));
        own.or_else(|| self.config.get(key))
    }

    pub fn id(&self, key: &str) -> Option<u32> {
        self.get(key)?.as_u64()?.try_into().ok()
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.get(key)?.as_f64()
    }

    /// A number, or a list of some.
    fn ids(&self, key: &str) -> Vec<u32> {
        let number = |value: &Value| value.as_u64()?.try_into().ok();
        match self.get(key) {
            Some(Value::Array(values)) => values.iter().filter_map(number).collect(),
            Some(value) => number(value).into_iter().collect(),
            None => Vec::new(),
        }
    }

    /// Single tokens of `bad_words_ids`.
    fn forbidden(&self) -> Vec<u32> {
        let Some(Value::Array(words)) = self.get("bad_words_ids") else {
            return Vec::new();
        };
        let single = |word: &Value| match &word.as_array()?[..] {
            [token] => token.as_u64()?.try_into().ok(),
            _ => None,
        };
        words.iter().filter_map(single).collect()
    }

    fn generation(
        &self,
        vocabulary: &Vocabulary,
        warnings: &mut Vec<String>,
    ) -> Result<Generation> {
        let ids = vocabulary.tgt.ids(vocabulary.rows[1]);
        let our = |id: &u32| ids.get(*id as usize).copied().flatten();
        let end = self.ids("eos_token_id").first().and_then(our);
        let forbidden: Vec<u32> = self.forbidden().iter().filter_map(our).collect();
        for (key, usual) in [("no_repeat_ngram_size", 0.0), ("repetition_penalty", 1.0)] {
            if let Some(value) = self.number(key).filter(|value| *value != usual) {
                warnings.push(format!("`{key}` ({value}) of its generation is left out"));
            }
        }
        Ok(Generation {
            forbidden: forbidden
                .into_iter()
                .filter(|id| Some(*id) != end)
                .collect(),
            beam: self.id("num_beams").map(|size| size as usize),
            beam_rule: match self.get("early_stopping") {
                Some(Value::Bool(true)) => BeamRule::FullUntilEnough,
                _ => BeamRule::Full,
            },
            length_penalty: Some(self.number("length_penalty").unwrap_or(1.0))
                .filter(|alpha| *alpha >= 0.0),
            // The first of these tokens is the start.
            max_length: self
                .id("max_length")
                .filter(|most| *most > 1)
                .map(|most| most as usize - 1),
            min_length: self
                .id("min_length")
                .map_or(0, |least| (least as usize).saturating_sub(1)),
            at_limit: match self.get("forced_eos_token_id") {
                Some(_) => AtLimit::ForceEnd,
                None => AtLimit::Cut,
            },
            ..Generation::default()
        })
    }
}

/// The languages that the tokenizer's configuration names, or a folder such as `opus-mt-fr-en`. Where there are several
/// targets, a name such as `opus-mt-en-ROMANCE` says only the source.
fn languages(folder: &Path) -> [Option<String>; 2] {
    let path = folder.join("tokenizer_config.json");
    if let Some(config) = path
        .is_file()
        .then(|| Config::read(&path))
        .and_then(Result::ok)
        && let [Some(from), Some(to)] = ["source_lang", "target_lang"].map(|key| config.text(key))
    {
        return [Some(from.to_owned()), Some(to.to_owned())];
    }
    let name = name_of(folder);
    let mut parts = name.rsplit('-');
    let (to, from) = (parts.next(), parts.next());
    let is_code = |code: &&str| {
        (2..=3).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    match from.filter(is_code) {
        Some(from) if name.contains("opus") => {
            [Some(from.to_owned()), to.filter(is_code).map(str::to_owned)]
        }
        _ => [None, None],
    }
}

fn origin(folder: &Path, search: &Search<'_>) -> String {
    let name = search
        .config
        .text("_name_or_path")
        .filter(|name| !name.is_empty());
    name.map_or_else(|| name_of(folder).to_owned(), str::to_owned)
}

//! A folder that `transformers` loads: config.json, model.safetensors, tokenizer files, generation_config.json.
//!
//! Which class it becomes follows from the norms: Marian has them after the sub-layers, Pegasus before; BART and mBART
//! are these two with a norm of the embeddings and learned positions. All store their positions as a table, so that
//! any formula can be expressed. `config.json` carries our own configuration under the key `attentive`, from which
//! importing gives the same model back to the last bit.

use std::path::Path;

use attentive_model::config::{Activation, EmbeddingNorm, NormPlacement, PositionKind, Tying};
use attentive_model::durable;
use attentive_model::weights::Weights;
use attentive_text::special::{BOS, EOS, PAD, SPECIALS, UNK};
use attentive_text::{Tokenizer, TokenizerKind};
use serde_json::{Map, Value, json};

use super::source::{Source, TARGET_TABLE};
use crate::error::{ConvertError, Result};

/// A class of `transformers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Marian,
    Pegasus,
    Bart,
    MBart,
}

/// Writes the folder; what `transformers` computes a little differently comes back as warnings.
pub(super) fn write(source: &Source<'_>, folder: &Path) -> Result<Vec<String>> {
    let class = Class::of(source)?;
    let warnings = settings(source, class, folder)?;
    let tensors = Tensors::of(source, class)?.all;
    let tensors = tensors
        .iter()
        .map(|(name, shape, values)| (name.as_str(), &shape[..], &values[..]));
    Weights::write(folder.join("model.safetensors"), tensors)?;
    Ok(warnings)
}

/// Writes configuration and tokenizers for graphs that compute the model themselves, if `transformers` has a class for
/// it; else our own files.
pub(super) fn write_settings(source: &Source<'_>, folder: &Path) -> Result<Vec<String>> {
    match Class::of(source) {
        Ok(class) => {
            settings(source, class, folder)?;
            Ok(Vec::new())
        }
        Err(reason) => {
            write_json(
                folder,
                "config.json",
                &json!({"attentive": source.exported()}),
            )?;
            source.model.tokenizers.save(folder)?;
            Ok(vec![format!(
                "config.json and the tokenizers are attentive's own: {reason}"
            )])
        }
    }
}

fn settings(source: &Source<'_>, class: Class, folder: &Path) -> Result<Vec<String>> {
    tokenizers(source, class, folder)?;
    write_json(folder, "config.json", &class.config(source))?;
    write_json(folder, "generation_config.json", &generation(source))?;
    let epsilon = source.config.norm_epsilon;
    Ok(if epsilon == EPSILON {
        Vec::new()
    } else {
        vec![format!(
            "transformers adds {EPSILON:e} to the variance in its norms, this model {epsilon:e}: its numbers will \
             differ from about the fifth digit on"
        )]
    })
}

/// What `transformers` adds to the variance in every norm of these classes.
const EPSILON: f64 = 1e-5;

impl Class {
    fn of(source: &Source<'_>) -> Result<Self> {
        let config = source.config;
        source.require_self_attention()?;
        source.require_plain_text()?;
        let embedding_norm = config.embedding_norm == EmbeddingNorm::LayerNorm;
        let learned = config.positions == PositionKind::Learned;
        let class = match (config.norm, embedding_norm) {
            (NormPlacement::Post, false) => Self::Marian,
            (NormPlacement::Pre, false) => Self::Pegasus,
            (NormPlacement::Post, true) => Self::Bart,
            (NormPlacement::Pre, true) => Self::MBart,
        };
        source.require(
            !embedding_norm || learned,
            "a norm of the embeddings with sinusoidal positions",
        )?;
        let final_norm = config.has_final_norm();
        let expected = config.norm == NormPlacement::Pre;
        source.require(
            final_norm == expected,
            if expected {
                "norms before the sub-layers without a final norm"
            } else {
                "norms after the sub-layers with a final norm"
            },
        )?;
        source.require(
            class == Self::Marian || config.tying == Tying::All,
            "norms before the sub-layers with other embeddings than one shared matrix (`model.tying` is not \"all\")",
        )?;
        let is_known = matches!(config.embedding_scale, None | Some(1.0));
        source.require(
            is_known,
            "an embedding scale other than 1 and the root of the width",
        )?;
        Ok(class)
    }

    fn model_type(self) -> &'static str {
        match self {
            Self::Marian => "marian",
            Self::Pegasus => "pegasus",
            Self::Bart => "bart",
            Self::MBart => "mbart",
        }
    }

    fn architecture(self) -> &'static str {
        match self {
            Self::Marian => "MarianMTModel",
            Self::Pegasus => "PegasusForConditionalGeneration",
            Self::Bart => "BartForConditionalGeneration",
            Self::MBart => "MBartForConditionalGeneration",
        }
    }

    /// Learned positions of BART begin behind two rows that nobody uses.
    fn unused_positions(self) -> usize {
        match self {
            Self::Marian | Self::Pegasus => 0,
            Self::Bart | Self::MBart => 2,
        }
    }

    fn config(self, source: &Source<'_>) -> Value {
        let config = source.config;
        let own = serde_json::to_value(source.exported()).expect("plain numbers");
        json!({
            "architectures": [self.architecture()],
            "model_type": self.model_type(),
            "is_encoder_decoder": true,
            "torch_dtype": "float32",
            "vocab_size": config.src_vocab,
            "decoder_vocab_size": config.tgt_vocab,
            "share_encoder_decoder_embeddings": config.tying == Tying::All,
            "tie_word_embeddings": config.tying != Tying::None,
            "d_model": config.d_model,
            "encoder_layers": config.encoder_layers,
            "decoder_layers": config.decoder_layers,
            "num_hidden_layers": config.encoder_layers,
            "encoder_attention_heads": config.heads,
            "decoder_attention_heads": config.heads,
            "encoder_ffn_dim": config.d_ff,
            "decoder_ffn_dim": config.d_ff,
            "activation_function": activation(config.activation),
            "dropout": config.dropout,
            "attention_dropout": 0.0,
            "activation_dropout": 0.0,
            "encoder_layerdrop": 0.0,
            "decoder_layerdrop": 0.0,
            "scale_embedding": config.embedding_scale.is_none(),
            "static_position_embeddings": true,
            "max_position_embeddings": source.position_rows(),
            "bos_token_id": BOS,
            "eos_token_id": EOS,
            "pad_token_id": PAD,
            "decoder_start_token_id": BOS,
            "forced_bos_token_id": null,
            "forced_eos_token_id": null,
            "attentive": own,
        })
    }
}

fn activation(activation: Activation) -> &'static str {
    match activation {
        Activation::Relu => "relu",
        Activation::Swish => "swish",
        Activation::Gelu => "gelu",
        Activation::GeluTanh => "gelu_new",
        Activation::GeluSigmoid => "quick_gelu",
    }
}

/// The search that the model is used with; `<s>` and `<blank>` are never produced.
fn generation(source: &Source<'_>) -> Value {
    json!({
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "pad_token_id": PAD,
        "decoder_start_token_id": BOS,
        "bad_words_ids": [[BOS], [PAD]],
        "max_length": source.position_rows().min(512),
        "num_beams": 4,
    })
}

/// The tensors under their names there: name, shape, values.
struct Tensors<'a> {
    source: &'a Source<'a>,
    all: Vec<(String, Vec<usize>, Vec<f32>)>,
}

impl<'a> Tensors<'a> {
    fn of(source: &'a Source<'a>, class: Class) -> Result<Self> {
        let config = source.config;
        let mut tensors = Self {
            source,
            all: Vec::new(),
        };
        tensors.embeddings()?;
        for (stack, side, layers) in [
            ("encoder", "source", config.encoder_layers),
            ("decoder", "target", config.decoder_layers),
        ] {
            let theirs = format!("model.{stack}");
            let unused = class.unused_positions();
            let rows = source.position_rows();
            let mut positions = vec![0.0; unused * config.d_model];
            positions.extend(source.positions(side, rows)?);
            let name = format!("{theirs}.embed_positions.weight");
            tensors.add(name, &[rows + unused, config.d_model], positions);
            if config.embedding_norm == EmbeddingNorm::LayerNorm {
                let ours = format!("{stack}.embedding_norm");
                tensors.norm(&ours, &format!("{theirs}.layernorm_embedding"))?;
            }
            if config.has_final_norm() {
                tensors.norm(
                    &format!("{stack}.final_norm"),
                    &format!("{theirs}.layer_norm"),
                )?;
            }
            for layer in 0..layers {
                tensors.layer(stack, layer)?;
            }
        }
        Ok(tensors)
    }

    fn embeddings(&mut self) -> Result<()> {
        let (source, config) = (self.source, self.source.config);
        let mut table = |theirs: &str, vocab: usize, ours: &str| -> Result<()> {
            let values = source.table(ours)?.real();
            self.add(theirs, &[vocab, config.d_model], values);
            Ok(())
        };
        if config.tying == Tying::All {
            table("model.shared.weight", config.tgt_vocab, TARGET_TABLE)?;
        } else {
            let encoder = "model.encoder.embed_tokens.weight";
            table(encoder, config.src_vocab, source.source_table())?;
            table(
                "model.decoder.embed_tokens.weight",
                config.tgt_vocab,
                TARGET_TABLE,
            )?;
        }
        if let Some(projection) = source.untied_projection()? {
            let shape = [config.tgt_vocab, config.d_model];
            self.add("lm_head.weight", &shape, projection.real());
        }
        let bias = source.tensor("embeddings.projection_bias")?;
        self.add("final_logits_bias", &[1, config.tgt_vocab], bias);
        Ok(())
    }

    fn layer(&mut self, stack: &str, layer: usize) -> Result<()> {
        let ours = format!("{stack}.layers.{layer}");
        let theirs = format!("model.{stack}.layers.{layer}");
        let attentions = [
            ("self_attention", "self_attn"),
            ("cross_attention", "encoder_attn"),
        ];
        let count = if stack == "decoder" { 2 } else { 1 };
        for (our, their) in &attentions[..count] {
            for (part, projection) in PROJECTIONS {
                let (our, their) = (
                    format!("{ours}.{our}.{part}"),
                    format!("{theirs}.{their}.{projection}"),
                );
                self.linear(&our, &their)?;
            }
            self.norm(
                &format!("{ours}.{our}_norm"),
                &format!("{theirs}.{their}_layer_norm"),
            )?;
        }
        self.linear(
            &format!("{ours}.feed_forward.inner"),
            &format!("{theirs}.fc1"),
        )?;
        self.linear(
            &format!("{ours}.feed_forward.outer"),
            &format!("{theirs}.fc2"),
        )?;
        self.norm(
            &format!("{ours}.feed_forward_norm"),
            &format!("{theirs}.final_layer_norm"),
        )
    }

    fn linear(&mut self, ours: &str, theirs: &str) -> Result<()> {
        let layer = self.source.linear(ours)?;
        let outputs = layer.bias.len();
        self.add(
            format!("{theirs}.weight"),
            &[outputs, layer.inputs],
            layer.weight.real(),
        );
        self.add(format!("{theirs}.bias"), &[outputs], layer.bias);
        Ok(())
    }

    fn norm(&mut self, ours: &str, theirs: &str) -> Result<()> {
        for leaf in ["weight", "bias"] {
            let values = self.source.tensor(&format!("{ours}.{leaf}"))?;
            self.add(format!("{theirs}.{leaf}"), &[values.len()], values);
        }
        Ok(())
    }

    fn add(&mut self, name: impl Into<String>, shape: &[usize], values: Vec<f32>) {
        self.all.push((name.into(), shape.to_vec(), values));
    }
}

/// The parts of an attention, ours and theirs.
const PROJECTIONS: [(&str, &str); 4] = [
    ("query", "q_proj"),
    ("key", "k_proj"),
    ("value", "v_proj"),
    ("output", "out_proj"),
];

/// Writes the tokenizers as `AutoTokenizer` finds them; those of two languages with the target's in a folder of its own.
fn tokenizers(source: &Source<'_>, class: Class, folder: &Path) -> Result<()> {
    let both = &source.model.tokenizers;
    if let (Some(src), Some(tgt)) = (both.src.sentencepiece(), both.tgt.sentencepiece()) {
        source.require(
            class == Class::Marian,
            "a SentencePiece tokenizer beside norms before the sub-layers",
        )?;
        return marian_tokenizer(source, folder, src, tgt);
    }
    fast_tokenizer(source, &both.src, folder)?;
    if !both.is_shared() {
        let folder = folder.join("target_tokenizer");
        std::fs::create_dir(&folder).map_err(ConvertError::io("create", &folder))?;
        fast_tokenizer(source, &both.tgt, &folder)?;
    }
    Ok(())
}

/// `MarianTokenizer`: pieces of `source.spm` and `target.spm` are looked up in `vocab.json`.
fn marian_tokenizer(source: &Source<'_>, folder: &Path, src: &[u8], tgt: &[u8]) -> Result<()> {
    let both = &source.model.tokenizers;
    let separate = source.config.tying != Tying::All;
    for (name, file) in [("source.spm", src), ("target.spm", tgt)] {
        let path = folder.join(name);
        durable::write(&path, file).map_err(ConvertError::io("write", &path))?;
    }
    write_json(folder, "vocab.json", &vocabulary(&both.src))?;
    if separate {
        write_json(folder, "target_vocab.json", &vocabulary(&both.tgt))?;
    }
    write_json(
        folder,
        "tokenizer_config.json",
        &json!({
            "tokenizer_class": "MarianTokenizer",
            "separate_vocabs": separate,
            "eos_token": SPECIALS[EOS as usize],
            "pad_token": SPECIALS[PAD as usize],
            "unk_token": SPECIALS[UNK as usize],
            "model_max_length": source.position_rows(),
        }),
    )
}

fn vocabulary(tokenizer: &Tokenizer) -> Value {
    let token = |id| {
        tokenizer
            .token(id)
            .expect("every id has a token")
            .to_string()
    };
    let entries = (0..tokenizer.vocab_size() as u32).map(|id| (token(id), json!(id)));
    Value::Object(entries.collect::<Map<_, _>>())
}

/// `PreTrainedTokenizerFast`: our file, which is one of the `tokenizers` library, told to do what our program does around
/// it: a space before the text, which is taken away after decoding, and `</s>` at the end.
fn fast_tokenizer(source: &Source<'_>, tokenizer: &Tokenizer, folder: &Path) -> Result<()> {
    let is_subword = matches!(
        tokenizer.kind(),
        TokenizerKind::Bpe | TokenizerKind::Unigram
    );
    source.require(
        is_subword,
        &format!("a tokenizer of the kind \"{}\"", tokenizer.kind()),
    )?;
    let file = tokenizer.to_bytes()?;
    let mut file: Value = serde_json::from_slice(&file).expect("our own JSON");
    let end = SPECIALS[EOS as usize];
    let (text, end_token) = (
        |id: &str| json!({"Sequence": {"id": id, "type_id": 0}}),
        json!({"SpecialToken": {"id": end, "type_id": 0}}),
    );
    file["post_processor"] = json!({
        "type": "TemplateProcessing",
        "single": [text("A"), end_token],
        "pair": [text("A"), text("B"), end_token],
        "special_tokens": {end: {"id": end, "ids": [EOS], "tokens": [end]}},
    });
    let (normalizer, decoder) = (file["normalizer"].take(), file["decoder"].take());
    let space = json!({"type": "Prepend", "prepend": " "});
    file["normalizer"] = match normalizer {
        Value::Null => space,
        first => json!({"type": "Sequence", "normalizers": [first, space]}),
    };
    let no_space = json!({"type": "Strip", "content": " ", "start": 1, "stop": 0});
    file["decoder"] = json!({"type": "Sequence", "decoders": [decoder, no_space]});
    write_json(folder, "tokenizer.json", &file)?;
    write_json(
        folder,
        "tokenizer_config.json",
        &json!({
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": SPECIALS[BOS as usize],
            "eos_token": end,
            "pad_token": SPECIALS[PAD as usize],
            "unk_token": SPECIALS[UNK as usize],
            "clean_up_tokenization_spaces": false,
            "model_input_names": ["input_ids", "attention_mask"],
            "model_max_length": source.position_rows(),
        }),
    )
}

pub(super) fn write_json(folder: &Path, name: &str, value: &Value) -> Result<()> {
    let path = folder.join(name);
    let mut text = serde_json::to_string_pretty(value).expect("JSON without odd keys");
    text.push('\n');
    durable::write(&path, text.as_bytes()).map_err(ConvertError::io("write", &path))
}

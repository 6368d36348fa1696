//! A folder that `ctranslate2.Translator` loads: model.bin of version 6, config.json, the vocabularies, and our
//! tokenizer files beside them, since CTranslate2 takes and gives tokens.
//!
//! Queries, keys and values of a self-attention are one matrix there, keys and values of a cross-attention another.
//! 8-bit weights keep their values; a scale is what a value is divided by. A string is its length with the closing
//! NUL as u16, the bytes and the NUL.

use std::io::Write;
use std::path::Path;

use attentive_model::config::{Activation, EmbeddingNorm, NormPlacement, Tying};
use attentive_model::durable::DurableFile;
use attentive_text::Tokenizer;
use attentive_text::special::{BOS, EOS, SPECIALS, UNK};
use serde_json::json;

use super::huggingface::write_json;
use super::source::{Matrix, Source, TARGET_TABLE};
use crate::error::{ConvertError, Result};

/// Writes the folder.
pub(super) fn write(source: &Source<'_>, folder: &Path) -> Result<Vec<String>> {
    check(source)?;
    let variables = Variables::of(source)?;
    let path = folder.join("model.bin");
    variables
        .write(&path)
        .map_err(ConvertError::io("write", &path))?;
    let token = |id: u32| SPECIALS[id as usize];
    let config = json!({
        "add_source_bos": false,
        "add_source_eos": true,
        "bos_token": token(BOS),
        "eos_token": token(EOS),
        "unk_token": token(UNK),
        "decoder_start_token": token(BOS),
        "layer_norm_epsilon": source.config.norm_epsilon,
        "attentive": source.exported(),
    });
    write_json(folder, "config.json", &config)?;
    let both = &source.model.tokenizers;
    if source.config.tying == Tying::All {
        write_json(folder, "shared_vocabulary.json", &json!(tokens(&both.tgt)))?;
    } else {
        write_json(folder, "source_vocabulary.json", &json!(tokens(&both.src)))?;
        write_json(folder, "target_vocabulary.json", &json!(tokens(&both.tgt)))?;
    }
    both.save(folder)?;
    Ok(Vec::new())
}

/// Refuses what a `TransformerSpec` cannot say.
fn check(source: &Source<'_>) -> Result<()> {
    let config = source.config;
    source.require_self_attention()?;
    source.require_plain_text()?;
    let final_norm = config.has_final_norm() == (config.norm == NormPlacement::Pre);
    source.require(
        final_norm,
        "norms of the stacks' ends that do not follow from the norms of the layers",
    )
}

fn tokens(tokenizer: &Tokenizer) -> Vec<&str> {
    let ids = 0..tokenizer.vocab_size() as u32;
    ids.map(|id| tokenizer.token(id).expect("every id has a token"))
        .collect()
}

/// The named values of a model.bin.
struct Variables {
    variables: Vec<(String, Vec<u32>, Data)>,
    aliases: Vec<(String, String)>,
}

/// The numbers of one variable.
enum Data {
    F32(Vec<f32>),
    I16(i16),
    I8(Vec<i8>),
}

impl Data {
    /// CTranslate2's number of the type.
    fn code(&self) -> u8 {
        match self {
            Self::F32(_) => 0,
            Self::I8(_) => 1,
            Self::I16(_) => 2,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::F32(values) => values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect(),
            Self::I16(value) => value.to_le_bytes().to_vec(),
            Self::I8(values) => values.iter().map(|&value| value as u8).collect(),
        }
    }
}

impl Variables {
    fn of(source: &Source<'_>) -> Result<Self> {
        let config = source.config;
        let mut all = Self {
            variables: Vec::new(),
            aliases: Vec::new(),
        };
        let all_tied = config.tying == Tying::All;
        let width = config.d_model;
        let table = source.table(TARGET_TABLE)?;
        all.matrix("decoder/embeddings", [config.tgt_vocab, width], table);
        if all_tied {
            all.alias("encoder/embeddings_0", "decoder/embeddings");
        } else {
            let table = source.table(source.source_table())?;
            all.matrix("encoder/embeddings_0", [config.src_vocab, width], table);
        }
        match source.untied_projection()? {
            Some(projection) => {
                all.matrix("decoder/projection", [config.tgt_vocab, width], projection);
            }
            None => all.alias("decoder/projection", "decoder/embeddings"),
        }
        let bias = source.tensor("embeddings.projection_bias")?;
        all.add("decoder/projection/bias", &[bias.len()], Data::F32(bias));
        for (stack, side, layers) in [
            ("encoder", "source", config.encoder_layers),
            ("decoder", "target", config.decoder_layers),
        ] {
            all.stack_settings(source, stack);
            let rows = source.position_rows();
            let positions = Data::F32(source.positions(side, rows)?);
            let name = format!("{stack}/position_encodings/encodings");
            all.add(name, &[rows, config.d_model], positions);
            if config.embedding_norm == EmbeddingNorm::LayerNorm {
                let ours = format!("{stack}.embedding_norm");
                all.norm(source, &format!("{stack}/layernorm_embedding"), &ours)?;
            }
            if config.has_final_norm() {
                all.norm(
                    source,
                    &format!("{stack}/layer_norm"),
                    &format!("{stack}.final_norm"),
                )?;
            }
            for layer in 0..layers {
                all.layer(source, stack, layer)?;
            }
        }
        // CTranslate2 reads variables by name; sorted, files of one model are equal whatever the order here.
        all.variables.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(all)
    }

    fn stack_settings(&mut self, source: &Source<'_>, stack: &str) {
        let config = source.config;
        let activation = match config.activation {
            Activation::Relu => 0,
            Activation::GeluTanh => 1,
            Activation::Swish => 2,
            Activation::Gelu => 3,
            Activation::GeluSigmoid => 4,
        };
        let mut number = |name: &str, data| self.add(format!("{stack}/{name}"), &[], data);
        number("num_heads", Data::I16(config.heads as i16));
        number(
            "pre_norm",
            Data::I8(vec![i8::from(config.norm == NormPlacement::Pre)]),
        );
        number("activation", Data::I8(vec![activation]));
        number(
            "scale_embeddings",
            match config.embedding_scale {
                None => Data::I8(vec![1]),
                Some(scale) => Data::F32(vec![scale as f32]),
            },
        );
    }

    fn layer(&mut self, source: &Source<'_>, stack: &str, layer: usize) -> Result<()> {
        let (ours, theirs) = (
            format!("{stack}.layers.{layer}"),
            format!("{stack}/layer_{layer}"),
        );
        let parts = |attention: &str, parts: &[&str]| -> Vec<String> {
            parts
                .iter()
                .map(|part| format!("{ours}.{attention}.{part}"))
                .collect()
        };
        let own = format!("{theirs}/self_attention");
        self.norm(
            source,
            &format!("{own}/layer_norm"),
            &format!("{ours}.self_attention_norm"),
        )?;
        let fused = parts("self_attention", &["query", "key", "value"]);
        self.linear(source, &format!("{own}/linear_0"), &fused)?;
        self.linear(
            source,
            &format!("{own}/linear_1"),
            &parts("self_attention", &["output"]),
        )?;
        if stack == "decoder" {
            let cross = format!("{theirs}/attention");
            self.norm(
                source,
                &format!("{cross}/layer_norm"),
                &format!("{ours}.cross_attention_norm"),
            )?;
            self.linear(
                source,
                &format!("{cross}/linear_0"),
                &parts("cross_attention", &["query"]),
            )?;
            let fused = parts("cross_attention", &["key", "value"]);
            self.linear(source, &format!("{cross}/linear_1"), &fused)?;
            self.linear(
                source,
                &format!("{cross}/linear_2"),
                &parts("cross_attention", &["output"]),
            )?;
        }
        let ffn = format!("{theirs}/ffn");
        self.norm(
            source,
            &format!("{ffn}/layer_norm"),
            &format!("{ours}.feed_forward_norm"),
        )?;
        self.linear(
            source,
            &format!("{ffn}/linear_0"),
            &[format!("{ours}.feed_forward.inner")],
        )?;
        self.linear(
            source,
            &format!("{ffn}/linear_1"),
            &[format!("{ours}.feed_forward.outer")],
        )
    }

    fn norm(&mut self, source: &Source<'_>, theirs: &str, ours: &str) -> Result<()> {
        for (their, our) in [("gamma", "weight"), ("beta", "bias")] {
            let values = source.tensor(&format!("{ours}.{our}"))?;
            self.add(
                format!("{theirs}/{their}"),
                &[values.len()],
                Data::F32(values),
            );
        }
        Ok(())
    }

    /// Several of our linear layers, one below the other, as one of theirs.
    fn linear(&mut self, source: &Source<'_>, theirs: &str, ours: &[String]) -> Result<()> {
        let mut bias = Vec::new();
        let mut weight: Option<Matrix> = None;
        let mut inputs = 0;
        for name in ours {
            let layer = source.linear(name)?;
            inputs = layer.inputs;
            bias.extend(layer.bias);
            match (&mut weight, layer.weight) {
                (None, first) => weight = Some(first),
                (Some(Matrix::Real(all)), Matrix::Real(more)) => all.extend(more),
                (
                    Some(Matrix::Int8 { values, scales }),
                    Matrix::Int8 {
                        values: more,
                        scales: also,
                    },
                ) => {
                    values.extend(more);
                    scales.extend(also);
                }
                (Some(_), _) => unreachable!("a directory is of one number format"),
            }
        }
        let rows = bias.len();
        self.add(format!("{theirs}/bias"), &[rows], Data::F32(bias));
        self.matrix(theirs, [rows, inputs], weight.expect("at least one layer"));
        Ok(())
    }

    fn matrix(&mut self, theirs: &str, shape: [usize; 2], matrix: Matrix) {
        let name = format!("{theirs}/weight");
        match matrix {
            Matrix::Real(values) => self.add(name, &shape, Data::F32(values)),
            Matrix::Int8 { values, scales } => {
                // Ours multiplies, theirs divides. A row of zeros has the scale 0 here.
                let inverse = |scale: f32| if scale == 0.0 { 1.0 } else { 1.0 / scale };
                let scales: Vec<f32> = scales.into_iter().map(inverse).collect();
                self.add(format!("{name}_scale"), &shape[..1], Data::F32(scales));
                self.add(name, &shape, Data::I8(values));
            }
        }
    }

    fn alias(&mut self, alias: &str, target: &str) {
        let is_int8 = self
            .variables
            .iter()
            .any(|(name, ..)| *name == format!("{target}/weight_scale"));
        for leaf in ["weight", "weight_scale"]
            .iter()
            .take(1 + usize::from(is_int8))
        {
            self.aliases
                .push((format!("{alias}/{leaf}"), format!("{target}/{leaf}")));
        }
    }

    fn add(&mut self, name: impl Into<String>, shape: &[usize], data: Data) {
        let shape = shape.iter().map(|&size| size as u32).collect();
        self.variables.push((name.into(), shape, data));
    }

    fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut file = DurableFile::create(path)?;
        let number =
            |file: &mut DurableFile, value: usize| file.write_all(&(value as u32).to_le_bytes());
        number(&mut file, VERSION)?;
        string(&mut file, "TransformerSpec")?;
        number(&mut file, REVISION)?;
        number(&mut file, self.variables.len())?;
        for (name, shape, data) in &self.variables {
            string(&mut file, name)?;
            file.write_all(&[shape.len() as u8])?;
            for &size in shape {
                file.write_all(&size.to_le_bytes())?;
            }
            let bytes = data.bytes();
            file.write_all(&[data.code()])?;
            number(&mut file, bytes.len())?;
            file.write_all(&bytes)?;
        }
        number(&mut file, self.aliases.len())?;
        for (alias, target) in &self.aliases {
            string(&mut file, alias)?;
            string(&mut file, target)?;
        }
        file.commit()
    }
}

/// The version of the container, and of `TransformerSpec` in it.
const VERSION: usize = 6;
const REVISION: usize = 7;

fn string(file: &mut impl Write, text: &str) -> std::io::Result<()> {
    file.write_all(&(text.len() as u16 + 1).to_le_bytes())?;
    file.write_all(text.as_bytes())?;
    file.write_all(&[0])
}

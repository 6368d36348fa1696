//! Models of Marian: `.npz` and `.bin` files with their options inside, and a vocabulary beside them.
//!
//! Matrices are `[in, out]`; int8 ones (of `.bin` files) stand output by output. Decoding starts from a vector of
//! zeros, `<unk>` is never produced, and the beam shrinks by each complete hypothesis. Every option that changes what
//! the model computes is either done or refused by its name. [`super::bergamot`] has what comes beside small models.

use std::path::Path;

use attentive_model::config::{
    Activation, Autoregression, EmbeddingNorm, FinalNorm, NormPlacement, PositionKind,
    TransformerConfig,
};
use attentive_model::generation::{BeamRule, Generation};
use attentive_text::special::UNK;

use super::marian_options::{ONLY, Options, decoder_options, options_of};
use super::marian_vocabulary::Vocabularies;
use super::parts::{Matrix, Parts, vector};
use super::{Model, bergamot, folder_of, name_of, refused};
use crate::error::{ConvertError, Result};
use crate::files::marian_bin::{self, MarianBin};
use crate::files::npz;

/// Reads a model; its vocabulary, decoder options and shortlist are looked for beside the weights.
pub(super) fn read(path: &Path) -> Result<Model> {
    let is_npz = path.extension().is_some_and(|end| end == "npz");
    let weights = if is_npz {
        MarianBin {
            tensors: npz::read(path)?,
            intgemm: Default::default(),
        }
    } else {
        marian_bin::read(path)?
    };
    let options = options_of(&weights.tensors)?;
    let decoder = decoder_options(folder_of(path))?;
    let mut reader = Reader::new(&weights, &options)?;
    let vocabularies = Vocabularies::find(path, decoder.as_ref(), &reader.tables()?)?;
    let (config, parts) = reader.read(&vocabularies)?;
    let mut generation = Generation {
        forbidden: vec![UNK],
        beam_rule: BeamRule::Shrink,
        max_length_factor: Some(3.0),
        origin: Some(name_of(path).to_owned()),
        ..Generation::default()
    };
    let mut warnings = Vec::new();
    if let Some(decoder) = &decoder {
        search_options(decoder, &mut generation, &mut warnings)?;
    }
    let shortlist = bergamot::shortlist(path, decoder.as_ref(), &vocabularies)?;
    if let Some((from, to)) = bergamot::languages(path) {
        generation.source_language = Some(from);
        generation.target_language = Some(to);
    }
    let format = match (is_npz, config.autoregression) {
        (_, Autoregression::Ssru) => "Bergamot",
        (true, _) => "Marian (npz)",
        (false, _) => "Marian (bin)",
    };
    Ok(Model {
        format,
        weights: path.to_path_buf(),
        config,
        parts,
        tokenizers: vocabularies.tokenizers,
        generation,
        shortlist,
        warnings,
    })
}

/// How `marian-decoder` would search.
fn search_options(
    decoder: &Options,
    generation: &mut Generation,
    warnings: &mut Vec<String>,
) -> Result<()> {
    generation.beam = decoder.number("beam-size")?.or(generation.beam);
    generation.length_penalty = decoder.number("normalize")?;
    if let Some(factor) = decoder.number("max-length-factor")? {
        generation.max_length_factor = Some(factor);
    }
    if decoder.flag("allow-unk") {
        generation.forbidden.clear();
    }
    if decoder.number("word-penalty")?.unwrap_or(0.0) != 0.0 {
        warnings.push("the decoder's `word-penalty` is left out".to_owned());
    }
    if !decoder.list("output-approx-knn").is_empty() {
        let warning = "the decoder's `output-approx-knn` is left out: every token is looked at";
        warnings.push(warning.to_owned());
    }
    Ok(())
}

/// Marian's names to ours.
struct Reader<'a> {
    weights: &'a MarianBin,
    options: &'a Options,
    d_model: usize,
    d_ff: usize,
    norm: NormPlacement,
}

impl<'a> Reader<'a> {
    /// Refuses what our model does not have.
    fn new(weights: &'a MarianBin, options: &'a Options) -> Result<Self> {
        for (key, allowed) in ONLY {
            options.only(key, allowed)?;
        }
        let path = weights.tensors.path();
        let d_ff = options.require("transformer-dim-ffn")?;
        let decoder_d_ff = options.number("transformer-decoder-dim-ffn")?.unwrap_or(0);
        if decoder_d_ff != 0 && decoder_d_ff != d_ff {
            let found = format!("`transformer-decoder-dim-ffn: {decoder_d_ff}` beside {d_ff}");
            return Err(refused(
                path,
                "the options",
                found,
                "one width for both stacks is needed",
            ));
        }
        let letters = |key| {
            let value = options.text(key).unwrap_or_default();
            value.replace('d', "") // Dropout is for training.
        };
        let (pre, post) = (
            letters("transformer-preprocess"),
            letters("transformer-postprocess"),
        );
        let norm = match (pre.as_str(), post.as_str()) {
            ("", "an") => NormPlacement::Post,
            ("n", "a") => NormPlacement::Pre,
            _ => {
                let found = format!(
                    "`transformer-preprocess: {pre:?}` with `transformer-postprocess: {post:?}`"
                );
                let remedy = "this program knows \"\" with \"dan\" (post-norm) and \"n\" with \"da\" (pre-norm)";
                return Err(refused(path, "the options", found, remedy));
            }
        };
        Ok(Self {
            weights,
            options,
            d_model: options.require("dim-emb")?,
            d_ff,
            norm,
        })
    }

    fn names(&self) -> [&'static str; 2] {
        if self.weights.tensors.get("Wemb").is_some() {
            ["Wemb", "Wemb"]
        } else {
            ["encoder_Wemb", "decoder_Wemb"]
        }
    }

    /// How many rows the tables of both sides have, which must be as many as the options say.
    fn tables(&self) -> Result<[usize; 2]> {
        let rows = |name| -> Result<usize> {
            let tensors = &self.weights.tensors;
            let shape = tensors.get(name).map_or(&[][..], |table| &table.shape);
            let rows = shape.first().copied().unwrap_or(0);
            tensors.require(name, &[rows, self.d_model])?;
            Ok(rows)
        };
        let [src, tgt] = self.names();
        let rows = [rows(src)?, rows(tgt)?];
        let said = self.options.list("dim-vocabs");
        // 0 stands for a size that the vocabulary decides.
        let fits = |(said, rows): (&String, usize)| said == "0" || *said == rows.to_string();
        if !said.is_empty() && (said.len() != 2 || !said.iter().zip(rows).all(fits)) {
            let found = format!(
                "`dim-vocabs: [{}]` beside tables of {} and {} rows",
                said.join(", "),
                rows[0],
                rows[1]
            );
            return Err(self.refused(found, "one source and one target of these sizes are needed"));
        }
        Ok(rows)
    }

    /// Whether positions are a table. Marian reads `transformer-train-positions`; the option that its command line has
    /// is another one, which alone changes nothing.
    fn has_learned_positions(&self) -> Result<bool> {
        const ASKED: &str = "transformer-train-positions";
        let asked = self.options.flag(ASKED);
        let offered = self.options.flag("transformer-train-position-embeddings");
        let there = self.weights.tensors.get("Wpos").is_some();
        match (there, asked || offered) {
            (true, false) => Err(self.refused(
                format!("a table `Wpos` without `{ASKED}: true`"),
                "the table and the option belong together",
            )),
            (there, _) => Ok(there || asked),
        }
    }

    fn refused(&self, found: String, remedy: &str) -> ConvertError {
        refused(self.weights.tensors.path(), "the options", found, remedy)
    }

    fn read(&mut self, vocabularies: &Vocabularies) -> Result<(TransformerConfig, Parts)> {
        let Vocabularies { src, tgt, .. } = vocabularies;
        let (options, tensors, d) = (self.options, &self.weights.tensors, self.d_model);
        let has_norm = |key| options.text(key).unwrap_or_default().contains('n');
        let (emb_norm, top_norm) = (
            has_norm("transformer-postprocess-emb"),
            has_norm("transformer-postprocess-top"),
        );
        let ssru = options.text("transformer-decoder-autoreg") == Some("rnn");
        let cell = options.text("dec-cell").unwrap_or("gru"); // Marian's default.
        if ssru && cell != "ssru" {
            let found = format!("`transformer-decoder-autoreg: rnn` with `dec-cell: {cell}`");
            return Err(self.refused(found, "this program knows models with the cell \"ssru\""));
        }
        let learned = self.has_learned_positions()?;
        let heads = options.require("transformer-heads")?;
        let mut parts = Parts::default();

        let [src_rows, tgt_rows] = self.tables()?;
        let [src_name, tgt_name] = self.names();
        let source = self.table(src_name, src_rows)?;
        let target = self.table(tgt_name, tgt_rows)?;
        let tied = options.flag("tied-embeddings-all") || options.flag("tied-embeddings");
        let output = if tied {
            None
        } else {
            Some(self.output(tgt_rows)?)
        };
        let tying = parts.embeddings((&source, src), (&target, tgt), output.as_ref());
        let bias = match tensors.get("decoder_ff_logit_out_b") {
            None if options.flag("output-omit-bias") => None,
            _ => Some(vector(tensors, "decoder_ff_logit_out_b", tgt_rows)?),
        };
        parts.vector("embeddings.projection_bias", tgt.bias(bias.as_deref(), &[]));
        let mut max_positions = 1024;
        if learned {
            let table = tensors.get("Wpos").filter(|table| table.shape.len() == 2);
            max_positions = table.map_or(0, |table| table.shape[0]);
            let table = tensors.require("Wpos", &[max_positions, d])?.to_f32();
            parts.vector("embeddings.source_positions.weight", table.clone());
            parts.vector("embeddings.target_positions.weight", table);
        }

        let layers = [options.require("enc-depth")?, options.require("dec-depth")?];
        let tied_layers = options.list("transformer-tied-layers");
        if !tied_layers.is_empty() && tied_layers.len() != layers[1] {
            let found = format!(
                "`transformer-tied-layers: [{}]` with `dec-depth: {}`",
                tied_layers.join(", "),
                layers[1]
            );
            let remedy = "a number for each layer of the decoder is needed";
            return Err(self.refused(found, remedy));
        }
        for (stack, count) in [("encoder", layers[0]), ("decoder", layers[1])] {
            for layer in 0..count {
                // Only the decoder shares layers: Marian's encoder does not read the option.
                let theirs = match tied_layers.get(layer) {
                    Some(number) if stack == "decoder" => format!("{stack}_l{number}"),
                    _ => format!("{stack}_l{}", layer + 1),
                };
                let ours = format!("{stack}.layers.{layer}");
                if stack == "decoder" && ssru {
                    self.ssru(
                        &mut parts,
                        &format!("{ours}.ssru"),
                        &format!("{theirs}_rnn"),
                    )?;
                } else {
                    self.attention(
                        &mut parts,
                        &format!("{ours}.self_attention"),
                        &format!("{theirs}_self"),
                    )?;
                }
                if stack == "decoder" {
                    self.attention(
                        &mut parts,
                        &format!("{ours}.cross_attention"),
                        &format!("{theirs}_context"),
                    )?;
                }
                self.feed_forward(
                    &mut parts,
                    &format!("{ours}.feed_forward"),
                    &format!("{theirs}_ffn"),
                )?;
            }
            if emb_norm {
                self.norm(
                    &mut parts,
                    &format!("{stack}.embedding_norm"),
                    &format!("{stack}_emb"),
                    "_pre",
                )?;
            }
            if top_norm {
                self.norm(
                    &mut parts,
                    &format!("{stack}.final_norm"),
                    &format!("{stack}_top"),
                    "",
                )?;
            }
        }
        let config = TransformerConfig {
            src_vocab: src.len(),
            tgt_vocab: tgt.len(),
            d_model: d,
            d_ff: self.d_ff,
            heads,
            kv_heads: heads,
            encoder_layers: layers[0],
            decoder_layers: layers[1],
            dropout: 0.0,
            norm: self.norm,
            activation: match options.text("transformer-ffn-activation") {
                Some("swish") | None => Activation::Swish,
                Some("gelu") => Activation::GeluSigmoid,
                Some(_) => Activation::Relu,
            },
            positions: if learned {
                PositionKind::Learned
            } else {
                PositionKind::TimingSignal
            },
            position_offset: 0,
            max_positions,
            embedding_scale: learned.then_some(1.0),
            embedding_norm: if emb_norm {
                EmbeddingNorm::LayerNorm
            } else {
                EmbeddingNorm::None
            },
            final_norm: match (self.norm, top_norm) {
                (NormPlacement::Pre, true) | (NormPlacement::Post, false) => FinalNorm::Auto,
                (_, true) => FinalNorm::LayerNorm,
                (_, false) => FinalNorm::None,
            },
            autoregression: if ssru {
                Autoregression::Ssru
            } else {
                Autoregression::SelfAttention
            },
            tying,
            norm_epsilon: 1e-6,
        };
        Ok((config, parts))
    }

    fn attention(&self, parts: &mut Parts, ours: &str, theirs: &str) -> Result<()> {
        let d = self.d_model;
        for (name, letter) in [
            ("query", 'q'),
            ("key", 'k'),
            ("value", 'v'),
            ("output", 'o'),
        ] {
            let [weight, bias] = ['W', 'b'].map(|kind| format!("{theirs}_{kind}{letter}"));
            self.linear(parts, &format!("{ours}.{name}"), [&weight, &bias], d, d)?;
        }
        self.layer_norm(parts, ours, &format!("{theirs}_Wo"))
    }

    fn feed_forward(&self, parts: &mut Parts, ours: &str, theirs: &str) -> Result<()> {
        let (d, d_ff) = (self.d_model, self.d_ff);
        let names = |number| ['W', 'b'].map(|kind| format!("{theirs}_{kind}{number}"));
        let ([w1, b1], [w2, b2]) = (names(1), names(2));
        self.linear(parts, &format!("{ours}.inner"), [&w1, &b1], d, d_ff)?;
        self.linear(parts, &format!("{ours}.outer"), [&w2, &b2], d_ff, d)?;
        self.layer_norm(parts, ours, &format!("{theirs}_ffn"))
    }

    fn ssru(&self, parts: &mut Parts, ours: &str, theirs: &str) -> Result<()> {
        let d = self.d_model;
        parts.matrix(
            format!("{ours}.input.weight"),
            self.matrix(&format!("{theirs}_W"), d, d)?,
        );
        let [weight, bias] = ["Wf", "bf"].map(|name| format!("{theirs}_{name}"));
        self.linear(parts, &format!("{ours}.forget"), [&weight, &bias], d, d)?;
        // The norm before the cell has the name of the cell, the one behind it that of a network.
        let norm = match self.norm {
            NormPlacement::Pre => theirs.to_owned(),
            NormPlacement::Post => format!("{theirs}_ffn"),
        };
        self.layer_norm(parts, ours, &norm)
    }

    fn linear(
        &self,
        parts: &mut Parts,
        ours: &str,
        [weight, bias]: [&str; 2],
        inputs: usize,
        outputs: usize,
    ) -> Result<()> {
        parts.matrix(
            format!("{ours}.weight"),
            self.matrix(weight, inputs, outputs)?,
        );
        parts.vector(
            format!("{ours}.bias"),
            vector(&self.weights.tensors, bias, outputs)?,
        );
        Ok(())
    }

    /// The normalization of a sub-layer.
    fn layer_norm(&self, parts: &mut Parts, ours: &str, theirs: &str) -> Result<()> {
        let end = match self.norm {
            NormPlacement::Pre => "_pre",
            NormPlacement::Post => "",
        };
        self.norm(parts, &format!("{ours}_norm"), theirs, end)
    }

    fn norm(&self, parts: &mut Parts, ours: &str, theirs: &str, end: &str) -> Result<()> {
        for (name, kind) in [("weight", "scale"), ("bias", "bias")] {
            let values = vector(
                &self.weights.tensors,
                &format!("{theirs}_ln_{kind}{end}"),
                self.d_model,
            )?;
            parts.vector(format!("{ours}.{name}"), values);
        }
        Ok(())
    }

    fn matrix(&self, name: &str, inputs: usize, outputs: usize) -> Result<Matrix> {
        let tensors = &self.weights.tensors;
        if let Some(multiplier) = self.weights.intgemm.get(name) {
            let tensor = tensors.require(name, &[outputs, inputs])?;
            let scales = vec![1.0 / multiplier; outputs];
            return Ok(Matrix::of_int8(tensor, [outputs, inputs], scales));
        }
        let tensor = tensors.require(name, &[inputs, outputs])?;
        Ok(Matrix::new(tensor, [inputs, outputs]).transposed())
    }

    /// A table of tokens.
    fn table(&self, name: &str, rows: usize) -> Result<Matrix> {
        let shape = [rows, self.d_model];
        let tensor = self.weights.tensors.require(name, &shape)?;
        Ok(match self.weights.intgemm.get(name) {
            Some(multiplier) => Matrix::of_int8(tensor, shape, vec![1.0 / multiplier; rows]),
            None => Matrix::new(tensor, shape),
        })
    }

    /// The output layer where it is not tied.
    fn output(&self, rows: usize) -> Result<Matrix> {
        const NAME: &str = "decoder_ff_logit_out_W";
        let turned = format!("{NAME}t");
        if self.weights.tensors.get(&turned).is_some()
            && !self.weights.intgemm.contains_key(&turned)
        {
            return self.table(&turned, rows);
        }
        self.matrix(NAME, self.d_model, rows)
    }
}

//! How good a model is: loss and perplexity by teacher forcing, BLEU by translating.
//!
//! Neighbors: [`crate::task::translation`] validates with this, `attentive evaluate` is this.

use std::path::Path;

use attentive_metrics::bleu::corpus_bleu;
use attentive_model::directory::Tokenizers;
use attentive_nn::{models::EncoderDecoder, pass::Pass};
use attentive_runtime::{
    search::SearchOptions,
    translator::{Translator, TranslatorOptions},
};
use attentive_text::special::{source_ids, target_ids};

use crate::{
    Recipe, Result,
    data::{
        batches::{Batch, Budget, plan_in_order},
        corpus::Pair,
    },
    events::Sample,
    recipe::RECIPE_FILE,
    task::translation::{batch_loss, smoothing},
};

/// What teacher forcing says about a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// The label-smoothed objective per target token.
    pub loss: f64,
    /// `exp` of the cross-entropy per target token.
    pub perplexity: f64,
    /// Target tokens counted, `</s>` included.
    pub tokens: usize,
    /// Pairs that could not be counted because a side was empty or longer than the model reaches.
    pub left_out: usize,
}

/// Tokens of a batch when nothing is kept for a backward pass.
const BATCH_TOKENS: usize = 4096;

/// Label smoothing of a model without a recipe: the paper's (§5.4).
const PAPER_SMOOTHING: f64 = 0.1;

/// The label smoothing that a model was trained with, as the recipe in its directory says.
pub fn label_smoothing(model_dir: &Path) -> Result<f64> {
    let recipe = model_dir.join(RECIPE_FILE);
    if !recipe.is_file() {
        return Ok(PAPER_SMOOTHING);
    }
    Ok(smoothing(&Recipe::load_from_run(&recipe)?.training))
}

/// Loss, with this label smoothing, and perplexity of the references `tgt` for the sources `src`, line by
/// line.
///
/// Pairs with more than `longest` tokens on a side are left out: the memory of attention grows with the
/// square of the length, so a single enormous line would exhaust any machine.
pub fn evaluate<N: EncoderDecoder>(
    model: &N,
    config: &N::Config,
    tokenizers: &Tokenizers,
    src: &[String],
    tgt: &[String],
    longest: usize,
    smoothing: f64,
) -> Result<Evaluation> {
    let limit = N::longest(config).map_or(longest, |limit| limit.min(longest));
    let pairs: Vec<Pair> = src
        .iter()
        .zip(tgt)
        .map(|(src, tgt)| Pair {
            src: source_ids(tokenizers.src.encode(src)),
            tgt: target_ids(&tokenizers.tgt.encode(tgt)),
        })
        .filter(|pair| pair.src.len() > 1 && pair.tgt.len() > 2)
        .filter(|pair| pair.src.len() <= limit && pair.tgt.len() <= limit)
        .collect();
    let (loss, cross_entropy, tokens) = sums(model, &pairs, smoothing);
    let count = tokens.max(1) as f64;
    Ok(Evaluation {
        loss: loss / count,
        perplexity: (cross_entropy / count).exp(),
        tokens,
        left_out: src.len() - pairs.len(),
    })
}

/// Sums of objective and cross-entropy over all pairs, and the number of target tokens.
pub fn sums<N: EncoderDecoder>(model: &N, pairs: &[Pair], smoothing: f64) -> (f64, f64, usize) {
    let (mut objective, mut cross_entropy, mut tokens) = (0.0, 0.0, 0);
    for indices in plan_in_order(pairs, Budget::Tokens(BATCH_TOKENS)) {
        let batch = Batch::collect(pairs, &indices);
        let loss = batch_loss(model, &batch, smoothing, &mut Pass::evaluation());
        objective += f64::from(loss.objective.into_scalar::<f32>());
        cross_entropy += f64::from(loss.cross_entropy.into_scalar::<f32>());
        tokens += batch.tgt_tokens();
    }
    (objective, cross_entropy, tokens)
}

/// Translates `src` and scores it against `tgt` as sacreBLEU would; the first `samples` lines come back.
pub fn bleu<N: EncoderDecoder>(
    model: &N,
    config: &N::Config,
    tokenizers: &Tokenizers,
    src: &[String],
    tgt: &[String],
    beam: usize,
    samples: usize,
) -> Result<(f64, Vec<Sample>)> {
    let options = TranslatorOptions {
        search: match beam {
            0 | 1 => SearchOptions::greedy(),
            size => SearchOptions::beam(size),
        },
        // The network's operations are spread over the threads themselves.
        threads: Some(1),
        ..TranslatorOptions::default()
    };
    let translator = Translator::new(
        model.clone(),
        tokenizers.clone(),
        options.within(N::longest(config)),
    )?;
    let outputs: Vec<String> = translator
        .translate(src)
        .into_iter()
        .map(|translation| translation.text)
        .collect();
    let samples = (0..src.len().min(samples))
        .map(|i| Sample {
            source: src[i].clone(),
            reference: tgt[i].clone(),
            output: outputs[i].clone(),
        })
        .collect();
    Ok((corpus_bleu(&outputs, &references(tgt)).score, samples))
}

/// References as a model writes: between pre-tokenized words, which tabs separate in files, stand spaces.
pub fn references(tgt: &[String]) -> Vec<String> {
    tgt.iter().map(|line| line.replace('\t', " ")).collect()
}

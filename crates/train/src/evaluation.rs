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
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Recipe, Result,
    data::{
        batches::{Batch, Budget, plan_in_order},
        corpus::Pair,
    },
    distributed::{Communicator, SingleProcess, all_gather},
    events::Sample,
    recipe::{RECIPE_FILE, Validation},
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
    let (loss, cross_entropy, tokens) = sums(model, &pairs, smoothing, &SingleProcess);
    let count = tokens.max(1) as f64;
    Ok(Evaluation {
        loss: loss / count,
        perplexity: (cross_entropy / count).exp(),
        tokens,
        left_out: src.len() - pairs.len(),
    })
}

/// Sums of objective and cross-entropy over all pairs, and the number of target tokens. The processes share the
/// batches, and all get the sums, added in the order of the batches.
pub fn sums<N: EncoderDecoder>(
    model: &N,
    pairs: &[Pair],
    smoothing: f64,
    processes: &dyn Communicator,
) -> (f64, f64, usize) {
    let plan = plan_in_order(pairs, Budget::Tokens(BATCH_TOKENS));
    let of_batch = |indices: &Vec<usize>| {
        let batch = Batch::collect(pairs, indices);
        let loss = batch_loss(model, &batch, smoothing, &mut Pass::evaluation());
        let [objective, entropy] = [loss.objective, loss.cross_entropy];
        // Bits, because JSON has no word for what is not a number.
        let bits = [objective, entropy].map(|sum| sum.into_scalar::<f32>().to_bits());
        (bits, batch.tgt_tokens())
    };
    let (mut objective, mut cross_entropy, mut tokens) = (0.0, 0.0, 0);
    for (bits, of_tokens) in share(&plan, processes, of_batch) {
        let [of_objective, of_entropy] = bits.map(|bits| f64::from(f32::from_bits(bits)));
        objective += of_objective;
        cross_entropy += of_entropy;
        tokens += of_tokens;
    }
    (objective, cross_entropy, tokens)
}

/// What `work` makes of all items, in their order: each process works on every so manyth of them and gets the
/// results of the others.
pub fn share<I, O: Serialize + DeserializeOwned>(
    items: &[I],
    processes: &dyn Communicator,
    work: impl Fn(&I) -> O,
) -> Vec<O> {
    let size = processes.size();
    let own: Vec<O> = items
        .iter()
        .skip(processes.rank())
        .step_by(size)
        .map(work)
        .collect();
    joined(own, processes)
}

/// The results of all processes, of which each has every so manyth, in their order.
fn joined<O: Serialize + DeserializeOwned>(own: Vec<O>, processes: &dyn Communicator) -> Vec<O> {
    if processes.size() == 1 {
        return own;
    }
    let own = serde_json::to_vec(&own).expect("plain numbers and strings");
    let mut all: Vec<_> = all_gather(processes, own)
        .iter()
        .map(|bytes| {
            serde_json::from_slice::<Vec<O>>(bytes)
                .unwrap_or_default()
                .into_iter()
        })
        .collect();
    let mut joined = Vec::new();
    for rank in (0..all.len()).cycle() {
        match all[rank].next() {
            Some(one) => joined.push(one),
            None => break,
        }
    }
    joined
}

/// Translates `src` and scores it against `tgt` as sacreBLEU would; with the beam size of `validation`; the
/// samples that it asks for come back. The processes share the lines.
pub fn bleu<N: EncoderDecoder>(
    model: &N,
    config: &N::Config,
    tokenizers: &Tokenizers,
    src: &[String],
    tgt: &[String],
    validation: &Validation,
    processes: &dyn Communicator,
) -> Result<(f64, Vec<Sample>)> {
    let options = TranslatorOptions {
        search: match validation.beam {
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
    let own = src.iter().skip(processes.rank()).step_by(processes.size());
    let own: Vec<String> = own.cloned().collect();
    let own = translator.translate(&own).into_iter();
    let outputs = joined(own.map(|translation| translation.text).collect(), processes);
    let samples = (0..src.len().min(validation.samples))
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

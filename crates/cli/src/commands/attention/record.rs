//! A sentence through the model: tokens, every attention weight, and the decoder's opinions.

use anyhow::bail;
use attentive_pictures::map::Map;
use attentive_pictures::record::{Candidate, Record, Side, Step};
use attentive_runtime::inspection::{Inspect, Inspection, Prediction};
use attentive_runtime::search::{SearchOptions, search};
use attentive_text::special::{BOS, EOS, UNK};

use super::refuse_long;
use crate::model::LoadedModel;
use crate::terminal::Terminal;
use crate::wording::plural;

/// Candidates for each position.
const TOP: usize = 10;
/// More tokens than this cannot be told apart in any picture.
const MOST_TOKENS: usize = 256;

/// The record of a sentence and its translation, the model's own if none is given.
pub fn make(
    model: &LoadedModel,
    sentence: &str,
    target: Option<&str>,
    beam: usize,
    terminal: &Terminal,
) -> anyhow::Result<Record> {
    // `<s>` or `</s>` comes with every sentence.
    let limit = model
        .config
        .position_limit()
        .unwrap_or(MOST_TOKENS)
        .min(MOST_TOKENS)
        - 1;
    let src = model.tokenizers.src.encode(sentence);
    if src.is_empty() {
        bail!("the sentence is empty: there is nothing to look at");
    }
    refuse_long("the sentence", src.len(), limit)?;
    tell_unknown("the sentence", &src, terminal);
    let tgt = match target {
        Some(text) => model.tokenizers.tgt.encode(text),
        None => translated(model, &src, beam, limit),
    };
    refuse_long("the translation", tgt.len(), limit)?;
    if target.is_some() {
        tell_unknown("the translation", &tgt, terminal);
    }
    let seen = model.network.inspect(&src, &tgt, TOP);
    Ok(assembled(model, &src, &tgt, seen, sentence, target)?)
}

/// What the model would say itself.
fn translated(model: &LoadedModel, src: &[u32], beam: usize, limit: usize) -> Vec<u32> {
    let mut options = match beam {
        1 => SearchOptions::greedy(),
        beam => SearchOptions::beam(beam),
    };
    options.max_length.cap = Some(limit);
    let source = [src, &[EOS]].concat();
    let found = search(&model.network, &[source], &options)
        .into_iter()
        .flatten();
    found
        .map(|hypothesis| hypothesis.tokens)
        .next()
        .unwrap_or_default()
}

fn tell_unknown(what: &str, ids: &[u32], terminal: &Terminal) {
    let unknown = ids.iter().filter(|id| **id == UNK).count();
    if unknown > 0 {
        let words = plural(unknown, "word", "words");
        terminal.warn(format_args!(
            "{what} has {words} that the model does not know: it sees <unk>"
        ));
    }
}

fn assembled(
    model: &LoadedModel,
    src: &[u32],
    tgt: &[u32],
    seen: Inspection,
    sentence: &str,
    target: Option<&str>,
) -> attentive_pictures::Result<Record> {
    let tokenizers = &model.tokenizers;
    let source = Side::new(&tokenizers.src, &[src, &[EOS]].concat());
    let read = Side::new(&tokenizers.tgt, &[&[BOS], tgt].concat());
    let written = Side::new(&tokenizers.tgt, &[tgt, &[EOS]].concat());
    let stack = |layers: Vec<Vec<Vec<f32>>>, rows: usize, cols: usize| {
        let heads = |heads: Vec<Vec<f32>>| -> attentive_pictures::Result<Vec<Map>> {
            heads
                .into_iter()
                .map(|weights| Map::new(rows, cols, weights))
                .collect()
        };
        layers
            .into_iter()
            .map(heads)
            .collect::<attentive_pictures::Result<Vec<_>>>()
    };
    let target_text = match target {
        Some(text) => text.to_owned(),
        None => tokenizers.tgt.decode(tgt),
    };
    let (src_len, tgt_len) = (source.len(), written.len());
    Record {
        encoder: stack(seen.encoder, src_len, src_len)?,
        decoder: stack(seen.decoder, tgt_len, tgt_len)?,
        cross: stack(seen.cross, tgt_len, src_len)?,
        steps: seen.predictions.iter().map(|step| opinion(model, step)).collect(),
        source_text: sentence.to_owned(),
        target_text,
        source,
        read,
        written,
    }
    .check()
}

fn opinion(model: &LoadedModel, prediction: &Prediction) -> Step {
    let candidate = |&(id, log_prob): &(u32, f32)| Candidate {
        id,
        text: model.tokenizers.tgt.label(id),
        probability: log_prob.exp(),
    };
    Step {
        probability: prediction.log_prob.exp(),
        rank: prediction.rank,
        next: prediction.candidates.iter().map(candidate).collect(),
    }
}

//! `attentive classify`: the class of each text, or pair of texts, by a BERT with a classifier.

use std::io::Write;

use anyhow::bail;
use clap::Args;
use serde_json::{Map, Value, json};

use super::bert_input::{BatchedInput, Tabs};
use crate::terminal::Terminal;

/// Arguments of `classify`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ClassifyArgs {
    #[command(flatten)]
    input: BatchedInput,
}

const EXAMPLES: &str = "\
Examples:
  attentive classify --model runs/bert-sst2 \"A film of rare beauty.\"
  attentive classify --model runs/bert-mrpc --input pairs.tsv

A line with a tab is a pair of texts.";

/// Classifies.
pub fn run(args: ClassifyArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let json = args.input.json;
    args.input
        .run(Tabs::Pairs, terminal, |model, texts, framed, output| {
            let Some(classes) = model.network.classify(framed) else {
                bail!("this model has no classifier, as a BertForSequenceClassification has one");
            };
            for (text, probabilities) in texts.iter().zip(classes) {
                let named = model.labels.iter().zip(&probabilities);
                let best = named.clone().max_by(|(_, a), (_, b)| a.total_cmp(b));
                let Some((label, probability)) = best else {
                    continue;
                };
                if json {
                    let all: Map<String, Value> = named
                        .map(|(label, probability)| (label.clone(), json!(probability)))
                        .collect();
                    let record = json!({"text": text, "label": label, "probabilities": all});
                    writeln!(output, "{record}")?;
                } else {
                    writeln!(output, "{label}\t{probability:.4}")?;
                }
            }
            Ok(())
        })
}

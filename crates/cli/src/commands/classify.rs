//! `attentive classify`: the class of each text, or pair of texts, by a BERT with a classifier, or of each image by a ViT.

use std::io::Write;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use serde_json::{Map, Value, json};

use super::bert_input::{BatchedInput, Tabs};
use super::images::{LoadedVit, is_image_model};
use crate::exit::Ending;
use crate::terminal::Terminal;

/// Arguments of `classify`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ClassifyArgs {
    #[command(flatten)]
    input: BatchedInput,
    /// Token merging: so many tokens of an image become one with another in each layer; several numbers are those of the
    /// layers (ViT)
    #[arg(long, value_name = "R", value_delimiter = ',')]
    merge: Vec<usize>,
}

const EXAMPLES: &str = "\
Examples:
  attentive classify --model runs/bert-sst2 \"A film of rare beauty.\"
  attentive classify --model runs/bert-mrpc --input pairs.tsv
  attentive classify --model runs/vit-mnist digit.png other.png
  attentive classify --model runs/vit-mnist t10k-images-idx3-ubyte.gz --merge 0,12,12,12

A line with a tab is a pair of texts. With a ViT the arguments are PNG files, or IDX files of images.";

/// Classifies.
pub fn run(args: ClassifyArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let input = &args.input.input;
    if is_image_model(&input.model, terminal) {
        let model = LoadedVit::open(&input.model, &input.device.device, &args.merge, terminal)?;
        let files: Vec<PathBuf> = input.texts.iter().map(PathBuf::from).collect();
        return model.classify(&files, args.input.batch_size, args.input.json);
    }
    if args.merge.iter().any(|count| *count > 0) {
        return Err(
            Ending::Usage("--merge is for images, and this model reads text".to_owned()).into(),
        );
    }
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

//! `attentive embed`: a vector for each text, with a BERT: the mean of its tokens' vectors, of length 1.

use std::io::Write;

use attentive_nn::models::bert::text::{Framed, Texts};
use clap::Args;
use serde_json::json;

use super::bert_input::{BertInput, LoadedBert};
use crate::arguments::positive;
use crate::output::Output;
use crate::terminal::Terminal;

/// Arguments of `embed`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct EmbedArgs {
    #[command(flatten)]
    input: BertInput,
    /// Texts computed together
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = positive())]
    batch_size: usize,
    /// One JSON object a line, with the text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive embed --model all-MiniLM-L6-v2 \"A dog runs.\" \"A cat sleeps.\"
  attentive embed --model all-MiniLM-L6-v2 --input sentences.txt > vectors.tsv

Without --json a line has the numbers of a vector, separated by tabs. The product of two vectors is the cosine of the
angle between them.";

/// Embeds.
pub fn run(args: EmbedArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let model = args.input.open(terminal)?;
    let texts = args.input.texts(terminal)?;
    let mut output = Output::stdout();
    for texts in texts.chunks(args.batch_size) {
        let vectors = embed(&model, texts, terminal);
        for (text, vector) in texts.iter().zip(vectors) {
            if args.json {
                writeln!(output, "{}", json!({"text": text, "vector": vector}))?;
            } else {
                let numbers: Vec<String> = vector.iter().map(f32::to_string).collect();
                writeln!(output, "{}", numbers.join("\t"))?;
            }
        }
    }
    output.finish()
}

fn embed(model: &LoadedBert, texts: &[String], terminal: &Terminal) -> Vec<Vec<f32>> {
    let framed: Vec<Framed> = texts
        .iter()
        .map(|text| model.framed(text, None, terminal))
        .collect();
    model.network.embed(&Texts::collect(&framed))
}

//! `attentive embed`: a vector for each text, with a BERT: the mean of its tokens' vectors, of length 1.

use std::io::Write;

use clap::Args;
use serde_json::json;

use super::bert_input::{BatchedInput, Tabs};
use crate::terminal::Terminal;

/// Arguments of `embed`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct EmbedArgs {
    #[command(flatten)]
    input: BatchedInput,
}

const EXAMPLES: &str = "\
Examples:
  attentive embed --model all-MiniLM-L6-v2 \"A dog runs.\" \"A cat sleeps.\"
  attentive embed --model all-MiniLM-L6-v2 --input sentences.txt > vectors.tsv

Without --json a line has the numbers of a vector, separated by tabs. The product of two vectors is the cosine of the
angle between them.";

/// Embeds.
pub fn run(args: EmbedArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let json = args.input.json;
    args.input
        .run(Tabs::Text, terminal, |model, texts, framed, output| {
            let vectors = model.network.embed(framed);
            for (text, vector) in texts.iter().zip(vectors) {
                if json {
                    writeln!(output, "{}", json!({"text": text, "vector": vector}))?;
                } else {
                    let numbers: Vec<String> = vector.iter().map(f32::to_string).collect();
                    writeln!(output, "{}", numbers.join("\t"))?;
                }
            }
            Ok(())
        })
}

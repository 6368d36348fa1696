//! `attentive fill`: the words that a BERT would put in the place of `[MASK]`.

use std::io::Write;

use anyhow::{Context, bail};
use attentive_text::tokenizer::MASK;
use clap::Args;
use serde_json::json;

use super::bert_input::BertInput;
use crate::arguments::positive;
use crate::exit::Ending;
use crate::output::Output;
use crate::terminal::Terminal;

/// Arguments of `fill`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FillArgs {
    #[command(flatten)]
    input: BertInput,
    /// Words to show for each place
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = positive())]
    top: usize,
    /// One JSON object a line for each place
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive fill --model bert-base-uncased \"Paris is the [MASK] of France.\"
  echo \"The [MASK] barks at the [MASK].\" | attentive fill --model bert-base-uncased --json";

/// Fills.
pub fn run(args: FillArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let model = args.input.open(terminal)?;
    let mask = model.tokenizer.id(MASK);
    let mask =
        mask.context("the vocabulary of this model has no [MASK]: it predicts no hidden tokens")?;
    let mut output = Output::stdout();
    for text in args.input.texts(terminal)? {
        let framed = model.framed(&text, None, terminal);
        let Some(places) = model.network.fill(&framed, mask) else {
            bail!("this model predicts no hidden tokens: it has no masked-language-model head");
        };
        if places.is_empty() {
            let problem = format!("{text:?} has no {MASK}: write it where a word is to be found");
            return Err(Ending::Usage(problem).into());
        }
        for (number, probabilities) in places.iter().enumerate() {
            let best = best(probabilities, args.top);
            let words = best.iter().map(|(id, probability)| {
                (model.tokenizer.token(*id).unwrap_or_default(), *probability)
            });
            if args.json {
                let words = words.map(
                    |(token, probability)| json!({"token": token, "probability": probability}),
                );
                let words: Vec<_> = words.collect();
                writeln!(
                    output,
                    "{}",
                    json!({"text": text, "mask": number + 1, "tokens": words})
                )?;
            } else {
                let words: Vec<String> = words
                    .map(|(token, probability)| format!("{token} {:.1}%", 100.0 * probability))
                    .collect();
                writeln!(output, "{}", words.join(", "))?;
            }
        }
    }
    output.finish()
}

/// The most probable tokens, best first.
fn best(probabilities: &[f32], count: usize) -> Vec<(u32, f32)> {
    let mut all: Vec<(u32, f32)> = (0..).zip(probabilities.iter().copied()).collect();
    all.sort_by(|(a, left), (b, right)| right.total_cmp(left).then(a.cmp(b)));
    all.truncate(count);
    all
}

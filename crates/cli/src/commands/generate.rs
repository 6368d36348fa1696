//! `attentive generate`: a language model continues texts.
//!
//! The prompts are arguments, or the lines of a file or a pipe. `attentive-nn` computes, with a KV cache; the sampling is
//! that of `attentive translate --sample`.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::bail;
use attentive_nn::models::gpt::generation::{Generator, first_seen};
use attentive_runtime::search::{Sampling, SearchOptions};
use attentive_text::lines::read_lines;
use attentive_text::special::UNK;
use clap::Args;
use serde_json::json;

use crate::arguments::{DeviceArg, positive};
use crate::exit::Ending;
use crate::network::LoadedGpt;
use crate::output::Output;
use crate::terminal::Terminal;
use crate::wording::{count, plural};

/// Arguments of `generate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct GenerateArgs {
    /// Beginnings of texts to continue; - reads them from standard input, one a line [default: the lines of a
    /// pipe, else a line break]
    #[arg(value_name = "PROMPT")]
    prompts: Vec<String>,
    /// A directory of a language model, or a training run (its best model)
    #[arg(long, short, value_name = "MODEL")]
    model: PathBuf,
    /// A file of prompts, one a line
    #[arg(long, short, value_name = "FILE", conflicts_with = "prompts")]
    input: Option<PathBuf>,
    /// Most tokens to write for a prompt
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = positive())]
    max_tokens: usize,
    /// Texts for each prompt
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = positive())]
    samples: usize,
    /// Sampling temperature: below 1 sharpens the distribution, above 1 flattens it; 0 always takes the most
    /// probable token
    #[arg(long, value_name = "T", default_value_t = 0.8)]
    temperature: f64,
    /// Sample from the K most probable tokens only
    #[arg(long, value_name = "K", value_parser = positive())]
    top_k: Option<usize>,
    /// Nucleus sampling: only from the most probable tokens that together reach probability P
    #[arg(long, value_name = "P")]
    top_p: Option<f64>,
    /// Random seed: the same seed gives the same prompt the same text
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Print each piece of the text as it is written
    #[arg(long, conflicts_with = "json")]
    stream: bool,
    /// One JSON object a line for each text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceArg,
}

const EXAMPLES: &str = "\
Examples:
  attentive generate --model runs/gpt-shakespeare \"ROMEO:\" --stream
  attentive generate --model runs/gpt-shakespeare --temperature 0.9 --top-p 0.95 --seed 7 --max-tokens 500
  printf 'First Citizen:\\nJULIET:\\n' | attentive generate --model runs/gpt-shakespeare --json

A text ends with the token </s> or after --max-tokens. The model sees as many tokens at once as its context has; whenever
they are full, the older half is forgotten. Texts of several prompts are separated by a line with ---.";

/// Continues the prompts.
pub fn run(args: GenerateArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let sampling = args.sampling()?;
    let model = LoadedGpt::open(&args.model, &args.device.device)?;
    let mut output = Output::stdout();
    let mut first = true;
    let began = std::time::Instant::now();
    let mut tokens = 0;
    for prompt in args.prompts()? {
        let ids = read(&prompt, &model, terminal)?;
        for sample in 0..args.samples {
            if !first && !args.json {
                writeln!(output, "---")?;
            }
            first = false;
            let text = Generator::new(
                &model.network,
                ids.clone(),
                args.max_tokens,
                sampling.as_ref(),
                sample,
            );
            tokens += args.write(&prompt, &ids, text, &model, &mut output)?;
        }
    }
    output.finish()?;
    let rate = tokens as f64 / began.elapsed().as_secs_f64().max(1e-9);
    terminal.note(format_args!(
        "{}, {} a second",
        plural(tokens, "token", "tokens"),
        count(rate as usize)
    ));
    Ok(())
}

impl GenerateArgs {
    /// How to draw tokens; nothing for always the most probable one.
    fn sampling(&self) -> anyhow::Result<Option<Sampling>> {
        if self.temperature == 0.0 {
            return Ok(None);
        }
        let sampling = Sampling {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            seed: self.seed,
        };
        SearchOptions::sample(sampling.clone())
            .check()
            .map_err(|problems| Ending::Usage(problems.join("\n")))?;
        Ok(Some(sampling))
    }

    fn prompts(&self) -> anyhow::Result<Vec<String>> {
        let stdin = Path::new("-");
        if let Some(file) = &self.input {
            return Ok(read_lines(file)?);
        }
        if self.prompts.is_empty() {
            return if io::stdin().is_terminal() {
                Ok(vec!["\n".to_owned()])
            } else {
                Ok(read_lines(stdin)?)
            };
        }
        let mut prompts = Vec::new();
        for prompt in &self.prompts {
            if prompt == "-" {
                prompts.extend(read_lines(stdin)?);
            } else {
                prompts.push(prompt.clone());
            }
        }
        Ok(prompts)
    }

    /// Writes one text, its prompt first; gives how many tokens are new.
    fn write(
        &self,
        prompt: &str,
        ids: &[u32],
        tokens: Generator<'_>,
        model: &LoadedGpt,
        output: &mut Output,
    ) -> anyhow::Result<usize> {
        let mut all = ids.to_vec();
        if !self.stream {
            all.extend(tokens);
            let text = model.tokenizer.decode(&all);
            let written = all.len() - ids.len();
            if self.json {
                let record = json!({"prompt": prompt, "text": text, "tokens": written});
                writeln!(output, "{record}")?;
            } else {
                writeln!(output, "{text}")?;
            }
            return Ok(written);
        }
        let mut shown = 0;
        let mut show = |all: &[u32], output: &mut Output| -> anyhow::Result<()> {
            let text = model.tokenizer.decode(all);
            // The last character may not be complete yet.
            let complete = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
            if let Some(new) = complete.get(shown..) {
                output.write_all(new.as_bytes())?;
                output.flush()?;
                shown = complete.len();
            }
            Ok(())
        };
        show(&all, output)?;
        for token in tokens {
            all.push(token);
            show(&all, output)?;
        }
        writeln!(output)?;
        Ok(all.len() - ids.len())
    }
}

/// The tokens of a prompt; what the model will not see of it is said.
fn read(prompt: &str, model: &LoadedGpt, terminal: &Terminal) -> anyhow::Result<Vec<u32>> {
    let ids = model.tokenizer.encode(prompt);
    if ids.is_empty() {
        bail!(Ending::Usage(
            "the prompt is empty: give some text, or no prompt at all for a text that begins with a line break"
                .to_owned()
        ));
    }
    let context = model.network.context();
    let unseen = first_seen(ids.len(), context);
    if unseen > 0 {
        terminal.warn(format_args!(
            "the prompt has {} tokens, but the model sees {context} at once: it reads the last {}",
            count(ids.len()),
            ids.len() - unseen
        ));
    }
    let unknown = ids.iter().filter(|id| **id == UNK).count();
    if unknown > 0 {
        terminal.warn(format_args!(
            "the prompt has {} that the model does not know: it sees <unk>",
            plural(unknown, "token", "tokens")
        ));
    }
    Ok(ids)
}

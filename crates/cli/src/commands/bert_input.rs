//! What the commands of BERT have in common: the model, texts as arguments, lines of a file or of a pipe.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use attentive_model::config::{BertConfig, BertHead};
use attentive_model::directory::{AnyModelDir, ModelDir};
use attentive_nn::models::bert::{Bert, text::Framed};
use attentive_text::Tokenizer;
use attentive_text::lines::read_lines;
use clap::Args;

use crate::arguments::{DeviceArg, positive};
use crate::exit::Ending;
use crate::model;
use crate::output::Output;
use crate::terminal::Terminal;
use crate::wording::{count, plural};

/// A model and texts for it.
#[derive(Debug, Args)]
pub struct BertInput {
    /// Texts [default: the lines of standard input]
    #[arg(value_name = "TEXT")]
    texts: Vec<String>,
    /// A directory of a BERT, ours or Hugging Face's, or a training run (its best model)
    #[arg(long, short, value_name = "MODEL")]
    model: PathBuf,
    /// A file of texts, one a line; - is standard input
    #[arg(long, short, value_name = "FILE", conflicts_with = "texts")]
    input: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArg,
}

/// The same for commands that compute several texts together.
#[derive(Debug, Args)]
pub struct BatchedInput {
    #[command(flatten)]
    input: BertInput,
    /// Texts computed together
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = positive())]
    batch_size: usize,
    /// One JSON object a line, with all that is known
    #[arg(long)]
    pub json: bool,
}

/// What a tab in a line means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tabs {
    /// Nothing special.
    Text,
    /// It stands between the two texts of a pair.
    Pairs,
}

impl BatchedInput {
    /// Loads the model and hands it the texts, a batch at a time; `each` writes what it makes of them.
    pub fn run(
        &self,
        tabs: Tabs,
        terminal: &Terminal,
        mut each: impl FnMut(&LoadedBert, &[String], &[Framed], &mut Output) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let model = self.input.open(terminal)?;
        let mut output = Output::stdout();
        let all = self.input.texts(terminal)?;
        let began = Instant::now();
        for texts in all.chunks(self.batch_size) {
            let framed = |text: &String| match tabs {
                Tabs::Pairs => model.framed_line(text, terminal),
                Tabs::Text => model.framed(text, None, terminal),
            };
            let framed: Vec<Framed> = texts.iter().map(framed).collect();
            each(&model, texts, &framed, &mut output)?;
        }
        output.finish()?;
        let seconds = began.elapsed().as_secs_f64();
        let rate = (all.len() as f64 / seconds.max(1e-9)).round() as usize;
        let texts = plural(all.len(), "text", "texts");
        terminal.note(format_args!("{texts}, {} a second", count(rate)));
        Ok(())
    }
}

/// A BERT on a device.
pub struct LoadedBert {
    /// Cuts text.
    pub tokenizer: Tokenizer,
    /// The network.
    pub network: Bert,
    /// The names of its classes.
    pub labels: Vec<String>,
    /// What stands on the encoder.
    pub head: BertHead,
    /// Tokens of a text that it reads, special ones included.
    pub longest: usize,
    /// The model directory.
    pub path: PathBuf,
}

impl BertInput {
    /// Loads the model.
    pub fn open(&self, terminal: &Terminal) -> anyhow::Result<LoadedBert> {
        LoadedBert::open(&self.model, &self.device.device, terminal)
    }

    /// All texts, of which there is at least one.
    pub fn texts(&self, terminal: &Terminal) -> anyhow::Result<Vec<String>> {
        if !self.texts.is_empty() {
            return Ok(self.texts.clone());
        }
        let path = self.input.as_deref().unwrap_or(Path::new("-"));
        if path == Path::new("-") && std::io::IsTerminal::is_terminal(&std::io::stdin()) {
            terminal.note("type texts, one a line; Ctrl-D ends");
        }
        let lines = read_lines(path)?;
        if lines.is_empty() {
            return Err(Ending::Usage(
                "there is no text: give some, or a file with --input".to_owned(),
            )
            .into());
        }
        Ok(lines)
    }
}

impl LoadedBert {
    /// Loads a model directory, or the best model of a run; one of Hugging Face is imported into the cache the first time.
    pub fn open(given: &Path, device: &str, terminal: &Terminal) -> anyhow::Result<Self> {
        let device = attentive_nn::device::parse(device)?;
        let model = model::of_any(given, terminal)?.open_any()?;
        let config: &BertConfig = model.config_of()?;
        let network = Bert::load(config, &ModelDir::weights_path(&model.path), &device)
            .with_context(|| format!("cannot load the model {}", given.display()))?;
        Ok(Self {
            tokenizer: AnyModelDir::tokenizer(&model)?.clone(),
            network,
            labels: config.labels.clone(),
            head: config.head,
            longest: config.max_positions,
            path: model.path,
        })
    }

    /// A line, in which a tab separates the texts of a pair, as the model reads it.
    pub fn framed_line(&self, line: &str, terminal: &Terminal) -> Framed {
        match line.split_once('\t') {
            Some((first, second)) => self.framed(first, Some(second), terminal),
            None => self.framed(line, None, terminal),
        }
    }

    /// A text, or a pair, as the model reads it; what is cut off is said.
    pub fn framed(&self, first: &str, second: Option<&str>, terminal: &Terminal) -> Framed {
        let second = second.map(|text| self.tokenizer.encode(text));
        let framed = Framed::new(
            &self.tokenizer.encode(first),
            second.as_deref(),
            self.longest,
        );
        if framed.left_out > 0 {
            terminal.warn(format_args!(
                "the text {:?} is longer than the {} tokens that the model reads: {} left out",
                shortened(first),
                self.longest,
                plural(framed.left_out, "token is", "tokens are")
            ));
        }
        framed
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

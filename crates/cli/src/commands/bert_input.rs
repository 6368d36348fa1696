//! What the commands of BERT have in common: the model, texts as arguments, lines of a file or of a pipe.

use std::path::{Path, PathBuf};

use anyhow::Context;
use attentive_model::config::BertConfig;
use attentive_model::directory::{AnyModelDir, ModelDir};
use attentive_nn::models::bert::{Bert, text::Framed};
use attentive_text::Tokenizer;
use attentive_text::lines::read_lines;
use clap::Args;

use crate::arguments::DeviceArg;
use crate::exit::Ending;
use crate::model;
use crate::terminal::Terminal;
use crate::wording::plural;

/// A model and texts for it.
#[derive(Debug, Args)]
pub struct BertInput {
    /// Texts [default: the lines of standard input]
    #[arg(value_name = "TEXT")]
    pub texts: Vec<String>,
    /// A directory of a BERT, ours or Hugging Face's, or a training run (its best model)
    #[arg(long, short, value_name = "MODEL")]
    pub model: PathBuf,
    /// A file of texts, one a line; - is standard input
    #[arg(long, short, value_name = "FILE", conflicts_with = "texts")]
    input: Option<PathBuf>,
    #[command(flatten)]
    pub device: DeviceArg,
}

/// A BERT on a device.
pub struct LoadedBert {
    /// Cuts text.
    pub tokenizer: Tokenizer,
    /// The network.
    pub network: Bert,
    /// The names of its classes.
    pub labels: Vec<String>,
    longest: usize,
}

impl BertInput {
    /// Loads the model; one of Hugging Face is imported into the cache the first time.
    pub fn open(&self, terminal: &Terminal) -> anyhow::Result<LoadedBert> {
        let device = attentive_nn::device::parse(&self.device.device)?;
        let model = model::of_any(&self.model, terminal)?.open_any()?;
        let config: &BertConfig = model.config_of()?;
        let network = Bert::load(config, &ModelDir::weights_path(&model.path), &device)
            .with_context(|| format!("cannot load the model {}", self.model.display()))?;
        Ok(LoadedBert {
            tokenizer: AnyModelDir::tokenizer(&model)?.clone(),
            network,
            labels: config.labels.clone(),
            longest: config.max_positions,
        })
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

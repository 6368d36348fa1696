//! `attentive info`: what a model directory, a training run or a built-in model holds.
//!
//! [`Description::of`] gathers it; [`text`] is what people read, the rest here what programs read.
//! [`built_in`] lists the models that are part of the program, `training` knows what a training run holds.

mod built_in;
mod text;
#[cfg(feature = "training")]
mod training;

use std::io::Write;
use std::path::{Path, PathBuf};

use attentive_model::directory::{AnyModelDir, ModelDir};
use attentive_model::error::ModelError;
use attentive_text::Tokenizer;
use clap::Args;
use serde_json::{Value, json};

use crate::model::Choice;
use crate::output::Output;
use crate::terminal::Colors;

/// Arguments of `info`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct InfoArgs {
    /// A model directory, a checkpoint, a training run or a built-in model [default: lists the
    /// built-in models]
    #[arg(value_name = "MODEL")]
    model: Option<PathBuf>,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive info
  attentive info de-en
  attentive info runs/reverse
  attentive info runs/reverse/best --json";

/// Shows it.
pub fn run(args: InfoArgs) -> anyhow::Result<()> {
    let colors = Colors::of_stdout();
    let mut output = Output::stdout();
    match (&args.model, args.json) {
        (None, true) => writeln!(output, "{:#}", built_in::json()?)?,
        (None, false) => write!(output, "{}", built_in::text(colors)?)?,
        (Some(model), true) => writeln!(output, "{:#}", Description::of(model)?.json())?,
        (Some(model), false) => write!(output, "{}", Description::of(model)?.text(colors))?,
    }
    output.finish()
}

/// Everything that is known about a model.
struct Description {
    model: AnyModelDir,
    /// What its authors say about it, if it is a built-in one.
    card: Option<&'static str>,
    weights_bytes: u64,
    /// What is known about its training.
    #[cfg(feature = "training")]
    training: training::Training,
}

impl Description {
    fn of(given: &Path) -> anyhow::Result<Self> {
        let choice = Choice::of(given)?;
        let model = choice.open_any()?;
        let (card, weights_bytes) = match &choice {
            Choice::BuiltIn(built_in) => (Some(built_in.card()), built_in.open()?.weights_bytes()?),
            Choice::Directory(_) | Choice::Pulled(_) | Choice::Into(..) => {
                let weights = ModelDir::weights_path(&model.path);
                let metadata = weights.metadata();
                let metadata = metadata.map_err(ModelError::io("read", &weights))?;
                (None, metadata.len())
            }
        };
        Ok(Self {
            weights_bytes,
            #[cfg(feature = "training")]
            training: training::Training::of(&choice, &model.path)?,
            model,
            card,
        })
    }

    fn json(&self) -> Value {
        let AnyModelDir {
            path,
            config,
            tokenizers,
        } = &self.model;
        let tokenizer = |tokenizer: &Tokenizer| json!({"kind": tokenizer.kind().name(), "size": tokenizer.vocab_size()});
        let mut object = json!({
            "model": path,
            "family": config.family(),
            "parameters": config.parameter_count(),
            "weights_bytes": self.weights_bytes,
            "config": config,
        });
        if let Some(tokenizers) = tokenizers {
            object["tokenizers"] = json!({
                "shared": tokenizers.is_shared(),
                "src": tokenizer(&tokenizers.src),
                "tgt": tokenizer(&tokenizers.tgt),
            });
        }
        if let Some(card) = self.card {
            object["card"] = card.into();
        }
        #[cfg(feature = "training")]
        self.training.add_to(&mut object);
        object
    }
}

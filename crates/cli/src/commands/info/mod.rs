//! `attentive info`: what a model directory, a training run or a built-in model holds.
//!
//! [`Description::of`] gathers it; [`text`] is what people read, the rest here what programs read.
//! [`built_in`] lists the models that are part of the program.

mod built_in;
mod text;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use attentive_model::directory::ModelDir;
use attentive_text::Tokenizer;
use attentive_train::Recipe;
use attentive_train::recipe::BestBy;
use attentive_train::run::checkpoint::Position;
use attentive_train::run::state::TrainState;
use clap::Args;
use serde_json::{Value, json};

use crate::model::Choice;
use crate::output::Output;
use crate::terminal::Colours;

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
    let colours = Colours::of_stdout();
    let mut output = Output::stdout();
    match (&args.model, args.json) {
        (None, true) => writeln!(output, "{:#}", built_in::json()?)?,
        (None, false) => write!(output, "{}", built_in::text(colours)?)?,
        (Some(model), true) => writeln!(output, "{:#}", Description::of(model)?.json())?,
        (Some(model), false) => write!(output, "{}", Description::of(model)?.text(colours))?,
    }
    output.finish()
}

/// Everything that is known about a model.
struct Description {
    model: ModelDir,
    /// What its authors say about it, if it is a built-in one.
    card: Option<&'static str>,
    weights_bytes: u64,
    /// Where training stood when the model was saved, if it was trained here.
    state: Option<TrainState>,
    run: Option<Run>,
}

/// What only a training run has.
struct Run {
    recipe_path: PathBuf,
    recipe: Recipe,
    last: TrainState,
    checkpoints: Vec<String>,
}

impl Description {
    fn of(given: &Path) -> anyhow::Result<Self> {
        let choice = Choice::of(given);
        let model = choice.open()?;
        let (card, state, run) = match &choice {
            Choice::BuiltIn(built_in) => (Some(built_in.card()), None, None),
            Choice::Directory(directory) => {
                let has_state = model.path.join("state.json").is_file();
                let state = has_state.then(|| TrainState::load(&model.path));
                (None, state.transpose()?, Run::of(directory)?)
            }
        };
        Ok(Self {
            weights_bytes: model.weights_bytes()?,
            model,
            card,
            state,
            run,
        })
    }

    fn json(&self) -> Value {
        let ModelDir {
            path,
            config,
            tokenizers,
            ..
        } = &self.model;
        let tokenizer = |tokenizer: &Tokenizer| json!({"kind": tokenizer.kind().name(), "size": tokenizer.vocab_size()});
        let mut object = json!({
            "model": path,
            "parameters": config.parameter_count(),
            "weights_bytes": self.weights_bytes,
            "config": config,
            "tokenizers": {
                "shared": tokenizers.is_shared(),
                "src": tokenizer(&tokenizers.src),
                "tgt": tokenizer(&tokenizers.tgt),
            },
        });
        if let Some(card) = self.card {
            object["card"] = card.into();
        }
        if let Some(state) = &self.state {
            object["trained"] = scores_json(state);
        }
        if let Some(run) = &self.run {
            object["run"] = json!({
                "last": scores_json(&run.last),
                "best_by": run.recipe.validation.best_by,
                "best_score": run.best_score(),
                "best_step": run.last.best_step,
                "checkpoints": run.checkpoints,
                "recipe": run.recipe,
            });
        }
        object
    }
}

impl Run {
    /// The best BLEU or loss; the state keeps a loss with its sign turned, so that higher is better.
    fn best_score(&self) -> Option<f64> {
        let score = self.last.best_score?;
        Some(match self.recipe.validation.best_by {
            BestBy::Bleu => score,
            BestBy::Loss => -score,
        })
    }

    /// Nothing if the directory is not a training run.
    fn of(directory: &Path) -> anyhow::Result<Option<Self>> {
        let folder = directory.join("checkpoints");
        let recipe_path = directory.join("recipe.toml");
        if !folder.is_dir() || !recipe_path.is_file() {
            return Ok(None);
        }
        let entries =
            fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        let mut checkpoints: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| Position::from_folder_name(name).is_some())
            .collect();
        checkpoints.sort();
        Ok(Some(Self {
            recipe: Recipe::load_from_run(&recipe_path)?,
            recipe_path,
            last: TrainState::load(&directory.join("last"))?,
            checkpoints,
        }))
    }
}

fn scores_json(state: &TrainState) -> Value {
    json!({
        "step": state.step,
        "epoch": state.epoch,
        "target_tokens": state.tokens,
        "seconds": state.seconds,
        "train_loss": state.train_loss,
        "val_loss": state.val_loss,
        "val_bleu": state.val_metrics.get("bleu"),
    })
}

//! `attentive info`: what a model directory or a training run holds.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use attentive_runtime::model_dir::ModelDir;
use attentive_text::Tokenizer;
use attentive_train::Recipe;
use attentive_train::checkpoint::Position;
use attentive_train::recipe::BestBy;
use attentive_train::state::TrainState;
use clap::Args;
use serde_json::{Value, json};

use crate::output::Output;
use crate::terminal::{Colours, Look};
use crate::wording::{bytes, count, duration};

/// Arguments of `info`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct InfoArgs {
    /// A model directory, a checkpoint or a training run
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  attentive info runs/reverse
  attentive info runs/reverse/best --json";

/// Shows it.
pub fn run(args: InfoArgs) -> anyhow::Result<()> {
    let description = Description::of(&args.directory)?;
    let mut output = Output::stdout();
    match args.json {
        true => writeln!(output, "{:#}", description.json())?,
        false => write!(output, "{}", description.text(Colours::of_stdout()))?,
    }
    output.finish()
}

/// Everything that is known about a directory.
struct Description {
    model: ModelDir,
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
    fn of(directory: &Path) -> anyhow::Result<Self> {
        let model = ModelDir::open(directory)?;
        let weights = model.path.join("model.safetensors");
        let weights_bytes = fs::metadata(&weights)
            .with_context(|| format!("cannot read {}", weights.display()))?
            .len();
        let has_state = model.path.join("state.json").is_file();
        let state = has_state
            .then(|| TrainState::load(&model.path))
            .transpose()?;
        Ok(Self {
            model,
            weights_bytes,
            state,
            run: Run::of(directory)?,
        })
    }

    fn json(&self) -> Value {
        let ModelDir {
            path,
            config,
            tokenizers,
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
        if let Some(state) = &self.state {
            object["trained"] = scores_json(state);
        }
        if let Some(run) = &self.run {
            object["run"] = json!({
                "last": scores_json(&run.last),
                "best_by": run.recipe.validation.best_by,
                "best_score": run.last.best_score,
                "best_step": run.last.best_step,
                "checkpoints": run.checkpoints,
                "recipe": run.recipe,
            });
        }
        object
    }

    fn text(&self, colours: Colours) -> String {
        let mut table = Table::new(colours);
        self.model_rows(&mut table);
        if let Some(state) = &self.state {
            table.row("trained", progress(state));
            table.row("scores", scores(state));
        }
        if let Some(run) = &self.run {
            run.rows(&mut table);
        }
        table.text
    }

    fn model_rows(&self, table: &mut Table) {
        let ModelDir {
            path,
            config,
            tokenizers,
        } = &self.model;
        table.row("model", path.display().to_string());
        table.row(
            "parameters",
            format!(
                "{} ({})",
                count(config.parameter_count()),
                bytes(self.weights_bytes)
            ),
        );
        table.row(
            "layers",
            format!(
                "{} encoder, {} decoder",
                config.encoder_layers, config.decoder_layers
            ),
        );
        table.row(
            "sizes",
            format!(
                "d_model {}, d_ff {}, {} heads ({} for keys and values)",
                config.d_model, config.d_ff, config.heads, config.kv_heads
            ),
        );
        table.row(
            "variants",
            format!(
                "norm {}, positions {}, tying {}, dropout {}",
                word(&config.norm),
                word(&config.positions),
                word(&config.tying),
                config.dropout
            ),
        );
        let vocabulary =
            |of: &Tokenizer| format!("{} tokens ({})", count(of.vocab_size()), of.kind());
        match tokenizers.is_shared() {
            true => table.row(
                "vocabulary",
                format!("{}, shared", vocabulary(&tokenizers.src)),
            ),
            false => {
                table.row("source", vocabulary(&tokenizers.src));
                table.row("target", vocabulary(&tokenizers.tgt));
            }
        }
    }
}

impl Run {
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
            recipe: Recipe::load(&recipe_path, &[])?,
            recipe_path,
            last: TrainState::load(&directory.join("last"))?,
            checkpoints,
        }))
    }

    fn rows(&self, table: &mut Table) {
        let Recipe {
            training,
            schedule,
            optimizer,
            validation,
            ..
        } = &self.recipe;
        table.row(
            "last",
            format!("{}; {}", progress(&self.last), scores(&self.last)),
        );
        if let (Some(score), Some(step)) = (self.last.best_score, self.last.best_step) {
            let score = match validation.best_by {
                BestBy::Bleu => format!("validation BLEU {score:.2}"),
                // Higher is better for every score, so a loss is kept with its sign turned.
                BestBy::Loss => format!("validation loss {:.4}", -score),
            };
            table.row("best", format!("{score} at step {step}"));
        }
        table.row("checkpoints", self.checkpoints.join(" "));
        table.row("recipe", self.recipe_path.display().to_string());
        let batch = match training.batch_sentences {
            0 => format!("{} tokens", count(training.batch_tokens)),
            pairs => format!("{} pairs", count(pairs)),
        };
        table.row(
            "",
            format!(
                "{}, {} schedule, warm-up {}, batches of {batch}, {} to a step, seed {}",
                word(&optimizer.kind),
                word(&schedule.kind),
                schedule.warmup,
                training.accumulate,
                training.seed
            ),
        );
    }
}

/// Rows of a name and a value.
struct Table {
    text: String,
    colours: Colours,
}

impl Table {
    fn new(colours: Colours) -> Self {
        let text = String::new();
        Self { text, colours }
    }

    fn row(&mut self, name: &str, value: String) {
        let name = self.colours.paint(Look::Dim, format_args!("{name:<12}"));
        self.text.push_str(&format!("{name} {value}\n"));
    }
}

fn progress(state: &TrainState) -> String {
    format!(
        "step {}, epoch {}, {} target tokens, {}",
        state.step,
        state.epoch + 1,
        count(usize::try_from(state.tgt_tokens).unwrap_or(usize::MAX)),
        duration(state.seconds)
    )
}

fn scores(state: &TrainState) -> String {
    let named = [
        ("training loss", state.train_loss),
        ("validation loss", state.val_loss),
        ("validation BLEU", state.val_bleu),
    ];
    let known = named
        .iter()
        .filter_map(|(name, score)| Some(format!("{name} {:.4}", (*score)?)));
    let known: Vec<String> = known.collect();
    match known.is_empty() {
        true => "none yet".to_owned(),
        false => known.join(", "),
    }
}

fn scores_json(state: &TrainState) -> Value {
    json!({
        "step": state.step,
        "epoch": state.epoch,
        "target_tokens": state.tgt_tokens,
        "seconds": state.seconds,
        "train_loss": state.train_loss,
        "val_loss": state.val_loss,
        "val_bleu": state.val_bleu,
    })
}

/// The name of a variant, as recipes spell it.
fn word(variant: &impl serde::Serialize) -> String {
    match serde_json::to_value(variant) {
        Ok(Value::String(word)) => word,
        _ => "?".to_owned(),
    }
}

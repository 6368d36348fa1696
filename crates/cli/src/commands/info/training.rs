//! What is known about a model's training: where it stood, and the run that it belongs to.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use attentive_train::Recipe;
use attentive_train::data::batches::Budget;
use attentive_train::recipe::{BestBy, Written};
use attentive_train::run::checkpoint::Position;
use attentive_train::run::state::TrainState;
use serde_json::{Value, json};

use super::text::{Table, word};
use crate::model::Choice;
use crate::wording::{count, duration};

/// What is known about a model's training; nothing if it was not trained here.
pub struct Training {
    /// Where training stood when the model was saved.
    state: Option<TrainState>,
    run: Option<Run>,
}

impl Training {
    /// What the directory holds beside the model.
    pub fn of(choice: &Choice, model: &Path) -> anyhow::Result<Self> {
        let Choice::Directory(directory) = choice else {
            return Ok(Self {
                state: None,
                run: None,
            });
        };
        let has_state = model.join("state.json").is_file();
        let state = has_state.then(|| TrainState::load(model));
        Ok(Self {
            state: state.transpose()?,
            run: Run::of(directory)?,
        })
    }

    /// Adds it to the JSON object of the model.
    pub fn add_to(&self, object: &mut Value) {
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
                "recipe": Written::of(&run.recipe),
            });
        }
    }

    /// Adds its rows to those of the model.
    pub fn rows(&self, table: &mut Table) {
        // In a run whose newest model is its best, both stand at the same place.
        let last = self.run.as_ref().map(|run| &run.last);
        if let Some(state) = self.state.as_ref().filter(|state| last != Some(*state)) {
            let recipe = self.run.as_ref().map(|run| &run.recipe);
            table.row("trained", standing(state, recipe));
        }
        if let Some(run) = &self.run {
            run.rows(table);
        }
    }
}

/// What only a training run has.
struct Run {
    recipe_path: PathBuf,
    recipe: Recipe,
    last: TrainState,
    checkpoints: Vec<String>,
}

impl Run {
    /// The best BLEU or loss; the state keeps a loss with its sign turned, so that higher is better.
    fn best_score(&self) -> Option<f64> {
        let score = self.last.best_score?;
        Some(match self.recipe.validation.best_by {
            BestBy::Bleu | BestBy::Accuracy | BestBy::PrunedAccuracy => score,
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

    fn rows(&self, table: &mut Table) {
        let Recipe {
            training,
            schedule,
            optimizer,
            validation,
            ..
        } = &self.recipe;
        table.row("last", standing(&self.last, Some(&self.recipe)));
        if let (Some(score), Some(step)) = (self.best_score(), self.last.best_step) {
            let score = match validation.best_by {
                BestBy::Bleu => format!("validation BLEU {score:.2}"),
                BestBy::Accuracy => format!("validation accuracy {:.2}%", 100.0 * score),
                BestBy::PrunedAccuracy => {
                    format!(
                        "validation accuracy minus regularizer {:.2}%",
                        100.0 * score
                    )
                }
                BestBy::Loss => format!("validation loss {score:.4}"),
            };
            let average = if self.last.best_is_average {
                ", the average of checkpoints"
            } else {
                ""
            };
            table.row("best", format!("{score} at step {step}{average}"));
        }
        table.row("checkpoints", self.checkpoints.join(" "));
        table.row("recipe", self.recipe_path.display().to_string());
        let batch = match Budget::of(training) {
            Budget::Tokens(tokens) => format!("{} tokens", count(tokens)),
            Budget::Sentences(pairs) => format!("{} pairs", count(pairs)),
            Budget::Random(pairs) => format!("{} pairs at random", count(pairs)),
        };
        table.row(
            "",
            format!(
                "{}, {} schedule, warm-up {}, batches of {batch}, gradient accumulation {}, seed {}",
                word(&optimizer.kind),
                word(&schedule.kind),
                schedule.warmup,
                training.accumulate,
                training.seed
            ),
        );
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

/// How far training had come, and how good the model was.
fn standing(state: &TrainState, recipe: Option<&Recipe>) -> String {
    let targets = recipe.map_or("targets", Recipe::targets);
    let epoch = match state.batch {
        0 => format!("after epoch {}", state.epoch),
        _ => format!("in epoch {}", state.epoch + 1),
    };
    format!(
        "step {}, {epoch}, {} {targets}, {}; {}",
        state.step,
        count(usize::try_from(state.tokens).unwrap_or(usize::MAX)),
        duration(state.seconds),
        scores(state)
    )
}

fn scores(state: &TrainState) -> String {
    let named = [
        ("training loss", state.train_loss),
        ("validation loss", state.val_loss),
        ("validation BLEU", state.val_metrics.get("bleu").copied()),
        (
            "validation accuracy",
            state.val_metrics.get("accuracy").copied(),
        ),
    ];
    let known = named
        .iter()
        .filter_map(|(name, score)| Some(format!("{name} {:.4}", (*score)?)));
    let known: Vec<String> = known.collect();
    if known.is_empty() {
        "no scores yet".to_owned()
    } else {
        known.join(", ")
    }
}

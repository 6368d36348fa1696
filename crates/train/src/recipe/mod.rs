//! A recipe: the TOML file that says everything about a training run.
//!
//! text -> `parse` (keys and types, with line numbers) -> `sections` and `model` (plain values) -> `check` (do
//! they make sense together?) -> [`Recipe`]. Every problem is reported, and at once, before any
//! tensor exists. `written` is the way back. `compare` names what changed between a run and a recipe that is to continue it.

mod check;
mod compare;
mod defaults;
mod distributed;
mod error;
mod keys;
mod model;
mod parse;
mod pruning;
mod sections;
mod written;

use std::path::Path;

use attentive_model::config::{AnyConfig, BertHead, Family, TokenPruning};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

pub use compare::FREE_ON_RESUME;
pub use distributed::{Distributed, Reduction, Sharding, Wire};
pub use error::{Place, Problem, RecipeError};
pub use model::Model;
pub use pruning::PruningSection;
pub use sections::{
    Augmentation, BestBy, Checkpoints, Data, LossKind, Optimizer, OptimizerKind, PrecisionChoice,
    ScheduleKind, ScheduleSection, ScheduleUnit, StartVocabulary, Synthetic, SyntheticTask,
    TokenizerSection, Training, Validation,
};
pub use written::Written;

/// The recipe's name in the folder of a run and of a checkpoint.
pub const RECIPE_FILE: &str = "recipe.toml";

/// A complete, checked training configuration; every value that a file left out is filled in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recipe {
    /// The sentence pairs.
    pub data: Data,
    /// How text becomes tokens.
    pub tokenizer: TokenizerSection,
    /// How often training sees a line in another form.
    pub augmentation: Augmentation,
    /// The sizes of the network.
    pub model: Model,
    /// How long, in what portions, towards which loss.
    pub training: Training,
    /// How the thresholds of learned token pruning are learned.
    pub pruning: PruningSection,
    /// Which optimizer, and its numbers.
    pub optimizer: Optimizer,
    /// The learning rate as a function of the step.
    pub schedule: ScheduleSection,
    /// How the model is evaluated while it trains.
    pub validation: Validation,
    /// What is kept of the run.
    pub checkpoints: Checkpoints,
    /// How several processes share the work.
    pub distributed: Distributed,
}

impl Recipe {
    /// Reads a recipe file; `overrides` are `section.key=value`, as in `--set training.seed=2`.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Recipe, RecipeError> {
        Recipe::from_toml_str(&path.display().to_string(), &read(path)?, overrides)
    }

    /// Reads the recipe that a run keeps, also one that an earlier version wrote: where keys had other names.
    pub fn load_from_run(path: &Path) -> Result<Recipe, RecipeError> {
        let mut text = read(path)?;
        for (old, new) in keys::RENAMED {
            let name = |key: &'static str| key.rsplit('.').next().unwrap_or(key);
            text = text.replace(&format!("\n{} =", name(old)), &format!("\n{} =", name(new)));
        }
        Recipe::from_toml_str(&path.display().to_string(), &text, &[])
    }

    /// Reads a recipe from text; `name` is what the messages call it.
    pub fn from_toml_str(
        name: &str,
        text: &str,
        overrides: &[String],
    ) -> Result<Recipe, RecipeError> {
        let document = parse::read(text, overrides);
        let mut problems = document.problems;
        // A section with a misspelled key says nothing reliable about what the section means.
        let unsure: Vec<String> = problems.iter().flat_map(Problem::sections).collect();
        for message in check::problems(&document.recipe) {
            let keys = error::keys_in(&message);
            let known = keys
                .iter()
                .all(|key| !unsure.contains(&error::section_of(key)));
            if known && !document.unreadable {
                // What was changed on the command line is the likelier culprit.
                let places = keys.iter().filter_map(|key| document.places.get(key));
                let place = places
                    .min_by_key(|place| !matches!(place, Place::Override(_)))
                    .cloned();
                problems.push(Problem {
                    place: place.unwrap_or(Place::Recipe),
                    message,
                });
            }
        }
        if problems.is_empty() {
            return Ok(document.recipe);
        }
        problems.sort_by_key(|problem| problem.place.order());
        Err(RecipeError::Invalid {
            name: name.to_owned(),
            problems,
        })
    }

    /// The recipe as TOML with every value spelled out; reading it gives the same recipe back.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(&written::Written::of(self))
            .expect("a recipe has only strings, numbers and tables of them")
    }

    /// Every key that means something for the recipe's family.
    fn table(&self) -> Table {
        let mut table =
            Table::try_from(self).expect("a recipe has only strings, numbers and tables of them");
        let family = self.model.family();
        table.retain(|section, _| keys::applies(section, family));
        for (section, value) in &mut table {
            if let Value::Table(keys) = value {
                keys.retain(|key, _| keys::applies(&format!("{section}.{key}"), family));
            }
        }
        table
    }

    /// What the loss is a mean over, and what the speed of training counts.
    pub fn targets(&self) -> &'static str {
        match self.model.family() {
            Family::Transformer | Family::Recurrent => "target tokens",
            Family::Bert if classifies(self) => "texts",
            Family::Gpt | Family::Bert => "tokens",
            Family::Vit | Family::Diffusion => "images",
        }
    }

    /// The recipe with the only values that make sense where its family has no such key.
    fn of_its_family(mut self) -> Recipe {
        if !keys::TRANSLATION.contains(&self.model.family()) {
            self.validation.bleu = false;
            self.validation.best_by = if prunes(&self) {
                BestBy::PrunedAccuracy
            } else if classifies(&self) || self.model.family() == Family::Vit {
                BestBy::Accuracy
            } else {
                BestBy::Loss
            };
        }
        self
    }
}

/// Whether a recipe is for a BERT with a classifier.
pub(crate) fn classifies(recipe: &Recipe) -> bool {
    matches!(&recipe.model.config, AnyConfig::Bert(model) if model.head == BertHead::Classification)
}

/// Whether its tokens leave on the way up.
pub(crate) fn prunes(recipe: &Recipe) -> bool {
    matches!(&recipe.model.config, AnyConfig::Bert(model) if model.pruning != TokenPruning::None)
}

fn read(path: &Path) -> Result<String, RecipeError> {
    std::fs::read_to_string(path).map_err(|source| RecipeError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests;

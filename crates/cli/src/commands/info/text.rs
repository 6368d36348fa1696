//! A description as rows of a name and a value, for people.

use attentive_model::directory::ModelDir;
use attentive_text::Tokenizer;
use attentive_train::Recipe;
use attentive_train::data::batches::Budget;
use attentive_train::recipe::BestBy;
use attentive_train::run::state::TrainState;
use serde_json::Value;

use super::{Description, Run};
use crate::terminal::{Colours, Look};
use crate::wording::{bytes, count, duration};

impl Description {
    /// The rows, one a line.
    pub fn text(&self, colours: Colours) -> String {
        let mut table = Table::new(colours);
        self.model_rows(&mut table);
        // In a run whose newest model is its best, both stand at the same place.
        let last = self.run.as_ref().map(|run| &run.last);
        if let Some(state) = self.state.as_ref().filter(|state| last != Some(*state)) {
            table.row("trained", standing(state));
        }
        if let Some(run) = &self.run {
            run.rows(&mut table);
        }
        if let Some(card) = self.card {
            table.text.push_str(&format!("\n{}\n", card.trim()));
        }
        table.text
    }

    fn model_rows(&self, table: &mut Table) {
        let ModelDir {
            path,
            config,
            tokenizers,
            ..
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
        if tokenizers.is_shared() {
            let shared = vocabulary(&tokenizers.src);
            table.row("vocabulary", format!("{shared}, shared"));
        } else {
            table.row("source", vocabulary(&tokenizers.src));
            table.row("target", vocabulary(&tokenizers.tgt));
        }
    }
}

impl Run {
    fn rows(&self, table: &mut Table) {
        let Recipe {
            training,
            schedule,
            optimizer,
            validation,
            ..
        } = &self.recipe;
        table.row("last", standing(&self.last));
        if let (Some(score), Some(step)) = (self.best_score(), self.last.best_step) {
            let score = match validation.best_by {
                BestBy::Bleu => format!("validation BLEU {score:.2}"),
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

/// How far training had come, and how good the model was.
fn standing(state: &TrainState) -> String {
    let epoch = match state.batch {
        0 => format!("after epoch {}", state.epoch),
        _ => format!("in epoch {}", state.epoch + 1),
    };
    format!(
        "step {}, {epoch}, {} target tokens, {}; {}",
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

/// The name of a variant, as recipes spell it.
fn word(variant: &impl serde::Serialize) -> String {
    match serde_json::to_value(variant) {
        Ok(Value::String(word)) => word,
        _ => "?".to_owned(),
    }
}

//! A description as rows of a name and a value, for people.

use attentive_model::directory::ModelDir;
use attentive_text::Tokenizer;
use serde_json::Value;

use super::Description;
use crate::terminal::{Colours, Look};
use crate::wording::{bytes, count};

impl Description {
    /// The rows, one a line.
    pub fn text(&self, colours: Colours) -> String {
        let mut table = Table::new(colours);
        self.model_rows(&mut table);
        #[cfg(feature = "training")]
        self.training.rows(&mut table);
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

/// Rows of a name and a value.
pub struct Table {
    text: String,
    colours: Colours,
}

impl Table {
    fn new(colours: Colours) -> Self {
        let text = String::new();
        Self { text, colours }
    }

    pub fn row(&mut self, name: &str, value: String) {
        let name = self.colours.paint(Look::Dim, format_args!("{name:<12}"));
        self.text.push_str(&format!("{name} {value}\n"));
    }
}

/// The name of a variant, as recipes spell it.
pub fn word(variant: &impl serde::Serialize) -> String {
    match serde_json::to_value(variant) {
        Ok(Value::String(word)) => word,
        _ => "?".to_owned(),
    }
}

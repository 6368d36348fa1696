//! A description as rows of a name and a value, for people.

use attentive_model::config::{AnyConfig, TransformerConfig};
use attentive_model::directory::AnyModelDir;
use attentive_text::Tokenizer;
use serde_json::Value;

use super::Description;
use crate::terminal::{Colors, Look};
use crate::wording::{bytes, count};

impl Description {
    /// The rows, one a line.
    pub fn text(&self, colors: Colors) -> String {
        let mut table = Table::new(colors);
        self.model_rows(&mut table);
        #[cfg(feature = "training")]
        self.training.rows(&mut table);
        if let Some(card) = self.card {
            table.text.push_str(&format!("\n{}\n", card.trim()));
        }
        table.text
    }

    fn model_rows(&self, table: &mut Table) {
        let AnyModelDir {
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
        match config {
            AnyConfig::Transformer(config) => transformer_rows(config, table),
            config => config_rows(config, table),
        }
        let Some(tokenizers) = tokenizers else {
            return;
        };
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

/// The sizes of an encoder-decoder.
fn transformer_rows(config: &TransformerConfig, table: &mut Table) {
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
}

/// The family, and its numbers and variants as `config.json` calls them.
fn config_rows(config: &AnyConfig, table: &mut Table) {
    table.row("family", config.family().name().to_owned());
    let keys = serde_json::to_value(config).unwrap_or_default();
    let keys = keys.as_object().into_iter().flatten();
    let (sizes, variants): (Vec<_>, Vec<_>) = keys
        .filter(|(key, _)| !config.vocabulary_keys().contains(&key.as_str()))
        .partition(|(_, value)| value.is_u64());
    for (name, keys) in [("sizes", sizes), ("variants", variants)] {
        let words = keys.iter().map(|(key, value)| match value {
            Value::String(value) => format!("{key} {value}"),
            value => format!("{key} {value}"),
        });
        table.row(name, words.collect::<Vec<_>>().join(", "));
    }
}

/// Rows of a name and a value.
pub struct Table {
    text: String,
    colors: Colors,
}

impl Table {
    fn new(colors: Colors) -> Self {
        let text = String::new();
        Self { text, colors }
    }

    pub fn row(&mut self, name: &str, value: String) {
        let name = self.colors.paint(Look::Dim, format_args!("{name:<12}"));
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

//! The models that are part of the program, as a list: for people, and for programs.

use std::fmt::Write as _;

use attentive_models::ALL;
use serde_json::{Value, json};

use crate::terminal::{Colors, Look};
use crate::wording::{bytes, count};

/// A row for each model, and what to do with it.
pub fn text(colors: Colors) -> anyhow::Result<String> {
    let mut text = String::new();
    for model in &ALL {
        let name = colors.paint(Look::Green, model.name);
        let languages = format!("{} to {}", model.from.name(), model.to.name());
        let parameters = count(model.open()?.config.parameter_count());
        let size = bytes(model.bytes() as u64);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{name}  {languages:<18}  {parameters} parameters  {size}"
        );
    }
    let first = ALL[0].name;
    let hint = format!("`attentive info {first}` says more; `--model {first}` translates with it.");
    let _ = writeln!(text, "\n{}", colors.paint(Look::Dim, hint));
    Ok(text)
}

/// An object for each model.
pub fn json() -> anyhow::Result<Value> {
    let objects = ALL.iter().map(|model| {
        Ok(json!({
            "name": model.name,
            "from": model.from.code(),
            "to": model.to.code(),
            "parameters": model.open()?.config.parameter_count(),
            "bytes": model.bytes(),
        }))
    });
    objects
        .collect::<anyhow::Result<Vec<Value>>>()
        .map(Value::from)
}

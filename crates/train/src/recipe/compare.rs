//! What changed between the recipe of a run and the recipe that is to continue it.
//!
//! A continued run must be equal to an uninterrupted one, so whatever shapes the weights may not
//! change. What only decides when to stop, what to print and what to keep may.

use toml::{Table, Value};

use super::Recipe;

/// The keys that may differ when a run is continued; one that ends in a dot stands for its section.
pub const FREE_ON_RESUME: [&str; 13] = [
    // When to stop.
    "training.epochs",
    "training.max_steps",
    "training.max_minutes",
    "validation.patience",
    // What to print and what to keep.
    "training.log_every",
    "validation.samples",
    "checkpoints.",
    // The files may move: the corpus fingerprint says whether they are still the same.
    "data.dir",
    "data.prepared",
    // What it comes to on this machine is compared.
    "training.precision",
    // Where the state is kept, and when gradients travel, changes nothing in them.
    "distributed.shard_optimizer",
    "distributed.overlap",
    // Only a name for values that are compared one by one.
    "model.preset",
];

impl Recipe {
    /// What differs from the recipe of the run (`self`) in the `other` recipe, and may not.
    pub fn differences(&self, other: &Recipe) -> Vec<String> {
        let (run, recipe) = (self.fixed(), other.fixed());
        let mut keys: Vec<&String> = run.iter().chain(&recipe).map(|(key, _)| key).collect();
        keys.sort_unstable();
        keys.dedup();
        let find = |side: &[(String, Value)], key: &str| {
            side.iter()
                .find(|(name, _)| name == key)
                .map(|(_, value)| value.to_string())
        };
        let shown = |value: Option<String>| value.unwrap_or_else(|| "nothing".to_owned());
        keys.into_iter()
            .map(|key| (key, find(&run, key), find(&recipe, key)))
            .filter(|(_, ours, theirs)| ours != theirs)
            .map(|(key, ours, theirs)| {
                format!(
                    "`{key}`: {} in the run, {} in the recipe",
                    shown(ours),
                    shown(theirs)
                )
            })
            .collect()
    }

    /// Every key that may not change with its value, in alphabetical order.
    fn fixed(&self) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        flatten(self.table(), "", &mut all);
        all.retain(|(key, _)| {
            !FREE_ON_RESUME
                .iter()
                .any(|free| key == free || (free.ends_with('.') && key.starts_with(free)))
        });
        all
    }
}

fn flatten(table: Table, prefix: &str, all: &mut Vec<(String, Value)>) {
    for (name, value) in table {
        let key = format!("{prefix}{name}");
        match value {
            Value::Table(inner) => flatten(inner, &format!("{key}."), all),
            value => all.push((key, value)),
        }
    }
}

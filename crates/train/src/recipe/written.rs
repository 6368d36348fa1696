//! A recipe as it is written out: the keys that mean something for its family, in the order of the sections.
//!
//! Neighbor: [`super::keys`] says which keys these are.

use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use toml::Value;

use super::Recipe;

/// Serializes as a recipe without the keys of other families.
#[derive(Debug, Clone)]
pub struct Written {
    values: Value,
    /// An object with the same keys in their order, which a TOML table does not keep.
    order: Json,
}

impl Written {
    /// The recipe's.
    pub fn of(recipe: &Recipe) -> Self {
        Self {
            values: Value::Table(recipe.table()),
            order: serde_json::to_value(recipe).unwrap_or_default(),
        }
    }
}

impl Serialize for Written {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Part {
            values: &self.values,
            order: &self.order,
        }
        .serialize(serializer)
    }
}

struct Part<'a> {
    values: &'a Value,
    order: &'a Json,
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (Value::Table(table), Json::Object(order)) = (self.values, self.order) else {
            return self.values.serialize(serializer);
        };
        let parts = order.iter().filter_map(|(key, order)| {
            let values = table.get(key)?;
            Some((key, Part { values, order }))
        });
        serializer.collect_map(parts)
    }
}

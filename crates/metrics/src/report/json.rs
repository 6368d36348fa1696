//! JSON with sacreBLEU's indentation and order of keys.

use super::python_format::{Escapes, float_repr, json_string};
use super::table::{Cell, Column};

/// An object with one key per line, indented by one space, in the order of writing.
#[derive(Default)]
pub(super) struct Object {
    entries: Vec<(String, String)>,
}

impl Object {
    /// Adds a string; a key that is there already keeps its place.
    pub(super) fn text(&mut self, key: &str, value: &str) {
        self.raw(key, &json_string(value, Escapes::Needed));
    }

    /// Adds a value that is already JSON.
    pub(super) fn raw(&mut self, key: &str, value: &str) {
        match self.entries.iter_mut().find(|(name, _)| name == key) {
            Some(entry) => entry.1 = value.to_owned(),
            None => self.entries.push((key.to_owned(), value.to_owned())),
        }
    }

    pub(super) fn finish(self) -> String {
        let line = |(key, value): &(String, String)| format!(" \"{key}\": {value}");
        let lines: Vec<String> = self.entries.iter().map(line).collect();
        format!("{{\n{}\n}}", lines.join(",\n"))
    }
}

/// A list with one object per system, indented by four spaces.
pub(super) fn systems(names: &[String], columns: &[Column], width: usize) -> String {
    let text = |value: &str| json_string(value, Escapes::NonAscii);
    let mut systems = Vec::with_capacity(names.len());
    for (index, name) in names.iter().enumerate() {
        let mut lines = vec![format!("        \"system\": {}", text(name))];
        for column in columns {
            let value = match &column.cells[index] {
                Cell::Score(score) => text(&format!("{score:.width$}")),
                Cell::Test(result) => {
                    let number = |value: Option<f64>| value.map_or("null".to_owned(), float_repr);
                    format!(
                        "{{\n            \"score\": {},\n            \"p_value\": {},\n            \
                         \"mean\": {},\n            \"ci\": {}\n        }}",
                        float_repr(result.score),
                        number(result.p_value),
                        number(result.confidence.map(|confidence| confidence.mean)),
                        number(result.confidence.map(|confidence| confidence.half_width)),
                    )
                }
            };
            lines.push(format!("        {}: {value}", text(&column.name)));
        }
        systems.push(format!("    {{\n{}\n    }}", lines.join(",\n")));
    }
    format!("[\n{}\n]", systems.join(",\n"))
}

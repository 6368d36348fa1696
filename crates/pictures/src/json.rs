//! A selection as JSON for other programs: tokens and weights as they are, nothing rounded.
//!
//! ```text
//! {"format": 1, "model": ..., "source": {"text", "tokens": [{"id", "text", "word"}], "words"},
//!  "read": ..., "written": ..., "steps": [{"probability", "rank", "next": [...]}],
//!  "attention": [{"kind", "queries", "keys", "layers": [{"layer", "maps": [{"title", "weights"}]}]}]}
//! ```
//! `weights` is a list of rows: one for each query, with a number for each key.

use serde::Serialize;

use crate::map::Map;
use crate::record::{Kind, Record, Side, Step, Token};
use crate::selection::{Row, Section};

/// The record's tokens and steps, and the weights of these sections, on one line.
pub fn write(record: &Record, sections: &[Section], model: &str) -> String {
    let document = Document {
        format: 1,
        model,
        source: Tokens::of(&record.source, Some(&record.source_text)),
        read: Tokens::of(&record.read, None),
        written: Tokens::of(&record.written, Some(&record.target_text)),
        steps: &record.steps,
        attention: sections.iter().map(Attention::of).collect(),
    };
    let mut text = serde_json::to_string(&document).expect("numbers and text have a JSON form");
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    model: &'a str,
    source: Tokens<'a>,
    read: Tokens<'a>,
    written: Tokens<'a>,
    steps: &'a [Step],
    attention: Vec<Attention<'a>>,
}

#[derive(Serialize)]
struct Tokens<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    tokens: &'a [Token],
    words: &'a [String],
}

#[derive(Serialize)]
struct Attention<'a> {
    kind: Kind,
    queries: &'a [String],
    keys: &'a [String],
    layers: Vec<Layer<'a>>,
}

#[derive(Serialize)]
struct Layer<'a> {
    layer: usize,
    title: &'a str,
    maps: Vec<Weights<'a>>,
}

#[derive(Serialize)]
struct Weights<'a> {
    title: &'a str,
    weights: Vec<&'a [f32]>,
}

impl<'a> Tokens<'a> {
    fn of(side: &'a Side, text: Option<&'a str>) -> Self {
        Self {
            text,
            tokens: &side.tokens,
            words: &side.words,
        }
    }
}

impl<'a> Attention<'a> {
    fn of(section: &'a Section) -> Self {
        Self {
            kind: section.kind,
            queries: &section.queries,
            keys: &section.keys,
            layers: section.layers.iter().map(Layer::of).collect(),
        }
    }
}

impl<'a> Layer<'a> {
    fn of(row: &'a Row) -> Self {
        let map = |(title, map): &'a (String, Map)| Weights {
            title,
            weights: (0..map.rows()).map(|row| map.row(row)).collect(),
        };
        Self {
            layer: row.layer,
            title: &row.title,
            maps: row.maps.iter().map(map).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::sample;
    use crate::selection::{Heads, Selection, Unit};

    #[test]
    fn weights_come_back_bit_by_bit() {
        let record = sample::record(6, 5, 2, 3);
        let selection = Selection {
            kinds: Kind::ALL.to_vec(),
            layer: None,
            heads: Heads::All,
            unit: Unit::Tokens,
        };
        let text = write(&record, &selection.of(&record).unwrap(), "m");
        let value: Value = serde_json::from_str(&text).unwrap();
        for (k, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(value["attention"][k]["kind"], kind.name());
            for (l, heads) in record.layers(kind).iter().enumerate() {
                for (h, map) in heads.iter().enumerate() {
                    let rows = &value["attention"][k]["layers"][l]["maps"][h]["weights"];
                    let weights: Vec<f32> = rows
                        .as_array()
                        .unwrap()
                        .iter()
                        .flat_map(|row| row.as_array().unwrap())
                        .map(|weight| weight.as_f64().unwrap() as f32)
                        .collect();
                    assert_eq!(weights, map.weights());
                }
            }
        }
        assert_eq!(value["source"]["tokens"][2]["word"], 1);
    }
}

//! A page: a record as one interactive HTML file that needs no network.
//!
//! What the page does is in `assets/page.js`, how it looks in `assets/page.css`. The numbers come as JSON
//! in a script block in which no markup can begin; the script shows text as text only.

use serde_json::{Value, json};

use crate::color::{ColorMap, Theme};
use crate::label;
use crate::map::Map;
use crate::record::{Kind, Record, Side};
use crate::selection::{Heads, Selection, Unit};
use crate::sheet::Heading;
use crate::svg::escaped;

/// The page shows hundredths of a percent at most, so weights are whole numbers of this part.
const WHOLE: f32 = 10_000.0;

/// A page with the kinds of a selection; its layer, heads and unit are what is shown first.
pub fn write(record: &Record, heading: &Heading, selection: &Selection) -> crate::Result<String> {
    // Refuses layers and heads that are not there.
    selection.of(record)?;
    let kinds = selection.kinds(record)?;
    let data = data(record, heading, selection, &kinds).to_string();
    // Inside a script element, only `<` could begin anything.
    let data = data.replace('<', "\\u003c");
    let title = format!("Attention: {} → {}", heading.source, heading.target);
    let title = escaped(&label::shortened(&title, 200));
    let mut page = String::new();
    let mut rest = include_str!("../assets/page.html");
    // One pass from the left, so that what is filled in is not searched again.
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").expect("the page closes its places");
        page.push_str(before);
        page.push_str(match name {
            "title" => &title,
            "css" => include_str!("../assets/page.css"),
            "js" => include_str!("../assets/page.js"),
            "data" => &data,
            other => unreachable!("the page has no place named {other}"),
        });
        rest = after;
    }
    page.push_str(rest);
    Ok(page)
}

fn data(record: &Record, heading: &Heading, selection: &Selection, kinds: &[Kind]) -> Value {
    let first = kinds.last().copied().unwrap_or(Kind::Cross);
    let kinds: Vec<Value> = kinds.iter().map(|kind| one_kind(record, *kind)).collect();
    let layers = record.layers(first).len();
    let head: Value = match selection.heads {
        Heads::All | Heads::Mean => "mean".into(),
        Heads::Rollout => "rollout".into(),
        Heads::One(number) => (number - 1).into(),
    };
    let ramp = |theme| -> Vec<String> {
        let map = ColorMap::sequential(theme);
        (0..=100)
            .map(|percent| map.at(percent as f32 / 100.0).to_string())
            .collect()
    };
    json!({
        "source": label::visible(&heading.source),
        "target": label::visible(&heading.target),
        "model": label::visible(&heading.model),
        "whole": WHOLE,
        "sides": {
            "source": side(&record.source),
            "read": side(&record.read),
            "written": side(&record.written),
        },
        "kinds": kinds,
        "steps": steps(record),
        "start": {
            "kind": first.name(),
            "layer": selection.layer.unwrap_or(layers) - 1,
            "head": head,
            "words": selection.unit == Unit::Words,
        },
        "light": ramp(Theme::Light),
        "dark": ramp(Theme::Dark),
    })
}

fn side(side: &Side) -> Value {
    let token = |token: &crate::record::Token| json!([label::visible(&token.text), token.word]);
    let word = |word: &String| label::visible(word);
    json!({
        "tokens": side.tokens.iter().map(token).collect::<Vec<Value>>(),
        "words": side.words.iter().map(word).collect::<Vec<String>>(),
    })
}

fn one_kind(record: &Record, kind: Kind) -> Value {
    let numbers = |map: &Map| -> Vec<u32> {
        let part = |weight: &f32| (weight * WHOLE).round() as u32;
        map.weights().iter().map(part).collect()
    };
    let layer = |layer: usize| {
        let heads = record.layers(kind)[layer].iter().map(numbers);
        json!({
            "heads": heads.collect::<Vec<_>>(),
            "mean": numbers(&record.mean(kind, layer)),
            "rollout": numbers(&record.rollout(kind, layer)),
        })
    };
    let (queries, keys) = match kind {
        Kind::Encoder => ("source", "source"),
        Kind::Decoder => ("read", "read"),
        Kind::Cross => ("written", "source"),
    };
    json!({
        "name": kind.name(),
        "title": kind.title(),
        "axes": kind.axes(),
        "queries": queries,
        "keys": keys,
        "layers": (0..record.layers(kind).len()).map(layer).collect::<Vec<Value>>(),
    })
}

fn steps(record: &Record) -> Vec<Value> {
    let candidate =
        |one: &crate::record::Candidate| json!([label::visible(&one.text), one.probability]);
    let step = |step: &crate::record::Step| {
        json!({
            "probability": step.probability,
            "rank": step.rank,
            "next": step.next.iter().map(candidate).collect::<Vec<Value>>(),
        })
    };
    record.steps.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn page(tokens: &[&str]) -> String {
        let record = sample::with_tokens(tokens, tokens, 2, 3);
        let heading = Heading {
            source: tokens.join(" "),
            target: "</script><script>alert(1)</script>{{js}}".into(),
            model: "m".into(),
        };
        let selection = Selection {
            kinds: Kind::ALL.to_vec(),
            layer: None,
            heads: Heads::All,
            unit: Unit::Tokens,
        };
        write(&record, &heading, &selection).unwrap()
    }

    #[test]
    fn no_token_can_end_the_script_or_fill_a_place() {
        let page = page(&[
            "</script>",
            "<!--",
            "<script>",
            "{{data}}",
            "\u{2028}",
            "</s>",
        ]);
        assert_eq!(page.matches("<script").count(), 2, "only our own scripts");
        assert_eq!(page.matches("</script>").count(), 2);
        assert!(!page.contains("<!--"));
        assert_eq!(
            page.matches("\"use strict\"").count(),
            1,
            "a place was filled twice"
        );
    }

    #[test]
    fn the_page_asks_for_nothing_from_outside() {
        let page = page(&["a", "</s>"]);
        assert!(page.contains("default-src 'none'"));
        for outside in ["src=", "href=", "@import", "url(", "fetch("] {
            assert!(!page.contains(outside), "{outside}");
        }
        let namespaces = page.matches("http://www.w3.org/").count();
        assert_eq!(
            page.matches("://").count(),
            namespaces,
            "an address that is no namespace"
        );
    }

    #[test]
    fn the_numbers_are_those_of_the_record() {
        let record = sample::record(5, 4, 2, 3);
        let page = {
            let heading = Heading {
                source: "s".into(),
                target: "t".into(),
                model: "m".into(),
            };
            let selection = Selection {
                kinds: vec![Kind::Cross],
                layer: Some(1),
                heads: Heads::One(2),
                unit: Unit::Words,
            };
            data(&record, &heading, &selection, &[Kind::Cross])
        };
        assert_eq!(page["start"]["layer"], 0);
        assert_eq!(page["start"]["head"], 1);
        assert_eq!(page["start"]["words"], true);
        let numbers = page["kinds"][0]["layers"][1]["heads"][2]
            .as_array()
            .unwrap();
        for (number, weight) in numbers.iter().zip(record.cross[1][2].weights()) {
            let number = number.as_u64().unwrap() as f32 / WHOLE;
            assert!((number - weight).abs() <= 0.5 / WHOLE + 1e-6);
        }
    }
}

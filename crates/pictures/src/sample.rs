//! A made-up record, for tests and for trying out a layout: no model needed.
//!
//! The weights are arbitrary but of the right kind: rows sum to 1, and the decoder's are causal.

use crate::map::Map;
use crate::record::{Candidate, Record, Side, Step, Token};

/// A record with these numbers of source and target tokens (`<s>` and `</s>` count), layers and heads.
pub fn record(source: usize, target: usize, layers: usize, heads: usize) -> Record {
    let words = [
        "Ein", "klein", "er", "Hund", "rennt", "über", "die", "Wiese",
    ];
    let source: Vec<String> = labels(&words, source - 1).chain(["</s>".into()]).collect();
    let words = ["A", "small", "dog", "is", "runn", "ing", "over", "grass"];
    let written: Vec<String> = labels(&words, target - 1).chain(["</s>".into()]).collect();
    with_tokens(&source, &written, layers, heads)
}

/// The same with these tokens; the last of each should be `</s>`.
pub fn with_tokens(
    source: &[impl AsRef<str>],
    written: &[impl AsRef<str>],
    layers: usize,
    heads: usize,
) -> Record {
    let read: Vec<&str> = std::iter::once("<s>")
        .chain(written.iter().map(AsRef::as_ref))
        .take(written.len())
        .collect();
    let (source, read, written) = (side(source), side(&read), side(written));
    let (src_len, tgt_len) = (source.len(), written.len());
    let stack = |rows: usize, cols: usize, causal: bool, salt: usize| -> Vec<Vec<Map>> {
        let head =
            |layer: usize, head: usize| map(rows, cols, causal, salt + 31 * layer + 7 * head);
        (0..layers)
            .map(|layer| (0..heads).map(|number| head(layer, number)).collect())
            .collect()
    };
    let text = |side: &Side| side.words[..side.words.len() - 1].join(" ");
    Record {
        source_text: text(&source),
        target_text: text(&written),
        encoder: stack(src_len, src_len, false, 1),
        decoder: stack(tgt_len, tgt_len, true, 2),
        cross: stack(tgt_len, src_len, false, 3),
        steps: written.tokens.iter().map(step).collect(),
        source,
        read,
        written,
    }
    .check()
    .expect("made to fit")
}

fn labels<'a>(words: &'a [&str], count: usize) -> impl Iterator<Item = String> + 'a {
    (0..count).map(|i| words[i % words.len()].to_owned())
}

/// `er` and `ing` are the ends of words, all else are words.
fn side(texts: &[impl AsRef<str>]) -> Side {
    let mut side = Side {
        tokens: Vec::new(),
        words: Vec::new(),
    };
    for (id, text) in texts.iter().enumerate() {
        let text = text.as_ref().to_owned();
        match side.words.last_mut() {
            Some(word) if text == "er" || text == "ing" => word.push_str(&text),
            _ => side.words.push(text.clone()),
        }
        side.tokens.push(Token {
            id: id as u32,
            text,
            word: side.words.len() - 1,
        });
    }
    side
}

fn map(rows: usize, cols: usize, causal: bool, salt: usize) -> Map {
    let weight = |i: usize| {
        let (row, col) = (i / cols, i % cols);
        if causal && col > row {
            return 0.0;
        }
        // Near a diagonal that each head has somewhere else, and sharper in some heads.
        let there = row as f32 * cols as f32 / rows as f32 + (salt % 5) as f32 - 2.0;
        let sharpness = 0.2 + 0.3 * (salt % 4) as f32;
        (-sharpness * (col as f32 - there).abs()).exp() + 0.01
    };
    let weights = (0..rows * cols).map(weight).collect();
    Map::new(rows, cols, weights)
        .expect("as many as needed")
        .normalized()
}

fn step(token: &Token) -> Step {
    let next = [
        (token.text.as_str(), 0.72),
        ("the", 0.13),
        ("<script>", 0.05),
    ];
    Step {
        probability: 0.72,
        rank: 1,
        next: next
            .iter()
            .zip(token.id..)
            .map(|((text, probability), id)| Candidate {
                id,
                text: (*text).to_owned(),
                probability: *probability,
            })
            .collect(),
    }
}

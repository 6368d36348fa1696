//! Heat maps in the terminal: a block for each weight, in color where the terminal has colors.
//!
//! Heat maps stand side by side as far as the terminal is wide; one that is wider than the terminal is
//! continued below. What a token holds cannot reach the terminal as a command: see [`crate::label`].

use std::fmt::Write;

use anstyle::{Ansi256Color, RgbColor, Style};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::color::{Color, ColorMap, Theme};
use crate::label;
use crate::map::Map;
use crate::selection::{Row, Section};

/// What the terminal can show.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// How many characters fit into a line.
    pub columns: usize,
    /// How many colors it has.
    pub depth: Depth,
    /// Whether it is light or dark.
    pub theme: Theme,
}

/// The color depth of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// No colors, or a file: blocks of different density.
    Plain,
    /// 256 colors.
    Indexed,
    /// 24-bit color.
    True,
}

/// Prints the sections one below the other.
pub fn print(sections: &[Section], screen: Screen) -> String {
    let mut text = String::new();
    for section in sections {
        text.push_str(&format!(
            "{} ({})\n",
            section.kind.title(),
            section.kind.axes()
        ));
        let mut line: Vec<Block> = Vec::new();
        for row in &section.layers {
            for block in blocks(section, row, screen) {
                let used: usize = line.iter().map(|block| block.width + GAP).sum();
                if used + block.width > screen.columns {
                    flush(&mut line, &mut text);
                }
                line.push(block);
            }
        }
        flush(&mut line, &mut text);
    }
    text.push_str(&scale(screen));
    text
}

/// Between maps that stand side by side.
const GAP: usize = 3;
const LABEL: usize = 14;
/// Tokens above a map are written downwards, so they cost height.
const KEY_HEIGHT: usize = 10;

/// A heat map as lines, each of this width.
struct Block {
    width: usize,
    lines: Vec<String>,
}

/// The heat maps of a layer; one that is too wide comes in several parts.
fn blocks(section: &Section, row: &Row, screen: Screen) -> Vec<Block> {
    let labels: Vec<String> = section
        .queries
        .iter()
        .map(|text| label::shortened(text, LABEL))
        .collect();
    let margin = labels.iter().map(|label| label.width()).max().unwrap_or(0) + 1;
    let room = screen.columns.saturating_sub(margin).max(2);
    let cell = if section.keys.len() * 2 <= room { 2 } else { 1 };
    let mut blocks = Vec::new();
    for (title, map) in &row.maps {
        let keys: Vec<usize> = (0..map.cols()).collect();
        let parts: Vec<&[usize]> = keys.chunks(room / cell).collect();
        for (number, part) in parts.iter().enumerate() {
            let mut title = format!("{}, {title}", row.title);
            if parts.len() > 1 {
                title.push_str(&format!(" (part {} of {})", number + 1, parts.len()));
            }
            let frame = Frame {
                title,
                margin,
                cell,
                keys: part,
            };
            blocks.push(block(&frame, &labels, &section.keys, map, screen));
        }
    }
    blocks
}

/// What a block looks like, apart from its weights.
struct Frame<'a> {
    title: String,
    margin: usize,
    cell: usize,
    /// Which columns of the map.
    keys: &'a [usize],
}

fn block(
    frame: &Frame<'_>,
    queries: &[String],
    keys: &[String],
    map: &Map,
    screen: Screen,
) -> Block {
    let width = (frame.margin + frame.keys.len() * frame.cell).max(frame.title.width());
    let indent = " ".repeat(frame.margin);
    let mut lines = vec![frame.title.clone()];
    // From the top: those that are shorter begin lower, so that all end at the map.
    let shown: Vec<Vec<String>> = frame
        .keys
        .iter()
        .map(|key| downwards(&keys[*key]))
        .collect();
    let height = shown.iter().map(Vec::len).max().unwrap_or(0);
    for at in 0..height {
        let mut line = indent.clone();
        for letters in &shown {
            let letter = (at + letters.len())
                .checked_sub(height)
                .map_or(" ", |i| &letters[i]);
            let letter = if letter.width() > frame.cell {
                "▪"
            } else {
                letter
            };
            line.push_str(letter);
            line.push_str(&" ".repeat(frame.cell - letter.width()));
        }
        lines.push(line);
    }
    for (row, label) in queries.iter().enumerate() {
        let fill = " ".repeat(frame.margin - 1 - label.width());
        let weights = frame.keys.iter().map(|key| map.row(row)[*key]);
        let cells = cells(weights, frame.cell, screen);
        lines.push(format!("{fill}{label} {cells}"));
    }
    // Escape sequences have no width, so lines with cells are filled by what is known.
    let bare = frame.margin + frame.keys.len() * frame.cell;
    for (number, line) in lines.iter_mut().enumerate() {
        let used = if number > height { bare } else { line.width() };
        line.push_str(&" ".repeat(width - used));
    }
    Block { width, lines }
}

/// A token letter by letter, not too many.
fn downwards(token: &str) -> Vec<String> {
    let shown = label::visible(token);
    let mut letters: Vec<String> = shown.graphemes(true).map(str::to_owned).collect();
    if letters.len() > KEY_HEIGHT {
        letters.truncate(KEY_HEIGHT - 1);
        letters.push("…".to_owned());
    }
    letters
}

fn cells(weights: impl Iterator<Item = f32>, width: usize, screen: Screen) -> String {
    let mut cells = String::new();
    for weight in weights {
        match screen.color(ColorMap::sequential(screen.theme).at(weight)) {
            None => cells.push_str(&shade(weight).repeat(width)),
            color => {
                let style = Style::new().bg_color(color);
                let _ = write!(cells, "{style}{:width$}{style:#}", "");
            }
        }
    }
    cells
}

impl Screen {
    /// The nearest color that the terminal has; nothing where it has none.
    pub(crate) fn color(self, Color(r, g, b): Color) -> Option<anstyle::Color> {
        match self.depth {
            Depth::Plain => None,
            Depth::True => Some(RgbColor(r, g, b).into()),
            Depth::Indexed => {
                // The cube of 6 x 6 x 6 colors begins at 16; its steps are 0, 95, 135, 175, 215, 255.
                let step = |byte: u8| match byte {
                    ..48 => 0u8,
                    48..115 => 1,
                    _ => (byte - 35) / 40,
                };
                let index = 16 + 36 * step(r) + 6 * step(g) + step(b);
                Some(Ansi256Color(index).into())
            }
        }
    }
}

fn shade(weight: f32) -> &'static str {
    match weight {
        0.7.. => "█",
        0.4.. => "▓",
        0.15.. => "▒",
        0.05.. => "░",
        _ => " ",
    }
}

/// What the blocks mean.
fn scale(screen: Screen) -> String {
    match screen.depth {
        Depth::Plain => "weight: ░ from 5 %, ▒ from 15 %, ▓ from 40 %, █ from 70 %\n".to_owned(),
        _ => {
            let steps = (0..=20).map(|step| step as f32 / 20.0);
            format!("weight: 0 % {} 100 %\n", cells(steps, 1, screen))
        }
    }
}

/// Writes blocks side by side.
fn flush(line: &mut Vec<Block>, text: &mut String) {
    let height = line
        .iter()
        .map(|block| block.lines.len())
        .max()
        .unwrap_or(0);
    for at in 0..height {
        let parts = line.iter().map(|block| match block.lines.get(at) {
            Some(part) => part.clone(),
            None => " ".repeat(block.width),
        });
        let joined = parts.collect::<Vec<_>>().join(&" ".repeat(GAP));
        text.push_str(joined.trim_end());
        text.push('\n');
    }
    if height > 0 {
        text.push('\n');
    }
    line.clear();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Kind;
    use crate::sample;
    use crate::selection::{Heads, Selection, Unit};

    fn printed(tokens: &[&str], columns: usize, depth: Depth) -> String {
        let record = sample::with_tokens(tokens, tokens, 2, 3);
        let selection = Selection {
            kinds: vec![Kind::Decoder],
            layer: None,
            heads: Heads::All,
            unit: Unit::Tokens,
        };
        let screen = Screen {
            columns,
            depth,
            theme: Theme::Dark,
        };
        print(&selection.of(&record).unwrap(), screen)
    }

    #[test]
    fn maps_stand_side_by_side_as_far_as_they_fit() {
        let tokens = ["ein", "Hund", "rennt", "</s>"];
        let wide = printed(&tokens, 200, Depth::Plain);
        assert_eq!(
            wide.lines().filter(|line| line.contains("head 1")).count(),
            1
        );
        let narrow = printed(&tokens, 30, Depth::Plain);
        assert_eq!(
            narrow.lines().filter(|line| line.contains("head ")).count(),
            6
        );
        assert!(
            narrow.lines().skip(1).all(|line| line.width() <= 80),
            "{narrow}"
        );
    }

    #[test]
    fn a_map_wider_than_the_terminal_is_continued_below() {
        let tokens: Vec<&str> = (0..59).map(|_| "wort").chain(["</s>"]).collect();
        let text = printed(&tokens, 40, Depth::Plain);
        assert!(
            text.contains("head 1 (part 1 of 2)") && text.contains("(part 2 of 2)"),
            "{text}"
        );
        for line in text.lines().skip(1) {
            assert!(line.width() <= 60, "{line}");
        }
    }

    #[test]
    fn tokens_cannot_command_the_terminal() {
        let nasty = ["\x1b[2J", "a\rb", "שלום", "\u{202E}", "👩‍👧", "日本", "</s>"];
        let plain = printed(&nasty, 100, Depth::Plain);
        assert!(
            plain.chars().all(|c| c == '\n' || !c.is_control()),
            "{plain:?}"
        );
        assert!(!plain.contains('\u{202E}'));
        let colored = printed(&nasty, 100, Depth::True);
        let stripped: String = colored
            .split("\x1b[")
            .map(|part| part.split_once('m').map_or(part, |(_, rest)| rest))
            .collect();
        assert!(
            stripped.chars().all(|c| c == '\n' || !c.is_control()),
            "{stripped:?}"
        );
    }

    #[test]
    fn the_future_is_empty_and_the_strongest_weight_is_the_densest() {
        let record = sample::record(4, 4, 1, 1);
        let row = record.decoder[0][0].row(1);
        let screen = Screen {
            columns: 80,
            depth: Depth::Plain,
            theme: Theme::Dark,
        };
        let cells = cells(row.iter().copied(), 2, screen);
        assert!(cells.ends_with("    "), "{cells:?}");
        assert_eq!(
            ["█", "▓", "▒", "░", " "].map(|s| s),
            [0.7, 0.4, 0.15, 0.05, 0.0].map(shade)
        );
        let indexed = Screen {
            depth: Depth::Indexed,
            ..screen
        };
        assert_eq!(
            indexed.color(Color(255, 0, 95)),
            Some(Ansi256Color(197).into())
        );
    }
}

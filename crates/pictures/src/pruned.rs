//! Which tokens leave in which layer of a BERT with learned token pruning: a row for each layer, a column for each token.
//!
//! `attentive attention --pruned` draws it. Neighbors: [`crate::svg`] writes shapes, [`crate::sheet`] draws attention itself.

use crate::color::{Palette, Theme};
use crate::fonts;
use crate::label;
use crate::svg::{Anchor, Style, Svg};

/// A text, and the places of the tokens that are left behind each layer.
#[derive(Debug, Clone)]
pub struct Pruned {
    /// The tokens, as the tokenizer shows them.
    pub tokens: Vec<String>,
    /// Behind each layer, from the first, ascending.
    pub layers: Vec<Vec<usize>>,
    /// What the model is called, and what it says about the text.
    pub caption: String,
}

const MARGIN: f64 = 24.0;
const ROW: f64 = 34.0;
const TEXT: f64 = 13.0;
const PADDING: f64 = 8.0;
/// Of the names of the layers.
const LEFT: f64 = 70.0;

impl Pruned {
    /// As SVG.
    pub fn draw(&self, theme: Theme) -> String {
        let palette = Palette::of(theme);
        let mut svg = Svg::default();
        let style = Style::new(15.0, palette.foreground).bold();
        let title = "Tokens that are left behind each layer";
        svg.text(MARGIN, MARGIN + 10.0, style, title, None);
        let caption = label::visible(&self.caption);
        let small = Style::new(TEXT, palette.muted);
        svg.text(MARGIN, MARGIN + 30.0, small, &caption, None);
        let shown: Vec<String> = self.tokens.iter().map(|it| label::visible(it)).collect();
        let widths: Vec<f64> = shown
            .iter()
            .map(|token| fonts::width(token) * TEXT + 2.0 * PADDING)
            .collect();
        let top = MARGIN + 48.0;
        for (row, places) in self.rows().iter().enumerate() {
            let y = top + row as f64 * ROW;
            let middle = y + ROW / 2.0 + 4.0;
            svg.text(MARGIN, middle, small, &name_of(row), None);
            let mut x = MARGIN + LEFT;
            for (place, (token, width)) in shown.iter().zip(&widths).enumerate() {
                if places.contains(&place) {
                    svg.rect(x + 1.0, y + 3.0, width - 2.0, ROW - 6.0, palette.line);
                    let style = Style::new(TEXT, palette.foreground).anchored(Anchor::Middle);
                    svg.text(x + width / 2.0, middle, style, token, None);
                } else {
                    svg.dot(x + width / 2.0, y + ROW / 2.0, 1.5, palette.muted);
                }
                x += width;
            }
            let share = format!("{} of {}", places.len(), self.tokens.len());
            svg.text(x + PADDING, middle, small, &share, None);
        }
        let tokens: f64 = widths.iter().sum();
        let wide =
            (2.0 * MARGIN + LEFT + tokens + 90.0).max(2.0 * MARGIN + fonts::width(&caption) * TEXT);
        let height = top + (self.layers.len() + 1) as f64 * ROW + MARGIN;
        svg.finish(wide, height, palette.background, title)
    }

    /// As lines of text, in which a dot stands for a token that has left.
    pub fn print(&self) -> String {
        let shown: Vec<String> = self.tokens.iter().map(|it| label::visible(it)).collect();
        let line = |(row, places): (usize, &Vec<usize>)| {
            let cells = shown.iter().enumerate().map(|(place, token)| {
                let width = token.chars().count();
                if places.contains(&place) {
                    token.clone()
                } else {
                    format!("{:<width$}", "·")
                }
            });
            let cells: Vec<String> = cells.collect();
            format!("{:<8}  {}\n", name_of(row), cells.join(" ").trim_end())
        };
        let lines: String = self.rows().iter().enumerate().map(line).collect();
        format!("{}\n\n{lines}", label::visible(&self.caption))
    }

    /// The places of the input, then those behind each layer.
    fn rows(&self) -> Vec<Vec<usize>> {
        let all = (0..self.tokens.len()).collect();
        std::iter::once(all).chain(self.layers.clone()).collect()
    }
}

fn name_of(row: usize) -> String {
    match row {
        0 => "input".to_owned(),
        layer => format!("layer {layer}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pruned() -> Pruned {
        Pruned {
            tokens: ["<s>", "a", "fine", "<film>", "</s>"]
                .map(str::to_owned)
                .into(),
            layers: vec![vec![0, 2, 3], vec![0, 2]],
            caption: "positive 99%".to_owned(),
        }
    }

    #[test]
    fn tokens_that_left_are_dots_in_the_terminal() {
        let lines = pruned().print();
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines[2], "input     <s> a fine <film> </s>");
        assert_eq!(lines[3], "layer 1   <s> · fine <film> ·");
        assert_eq!(lines[4], "layer 2   <s> · fine ·      ·");
    }

    #[test]
    fn each_token_is_drawn_as_often_as_it_is_there_and_escaped() {
        let svg = pruned().draw(Theme::Light);
        assert_eq!(svg.matches(">fine<").count(), 3);
        assert_eq!(svg.matches("&lt;film&gt;").count(), 2);
        assert_eq!(svg.matches("<circle").count(), 5);
        assert!(svg.contains("2 of 5"));
    }
}

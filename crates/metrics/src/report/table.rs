//! Tables of systems and metrics: boxed for a terminal, or LaTeX with booktabs.

use super::{Colors, ReportOptions};
use crate::signature::Signature;
use crate::significance::TestResult;

/// One metric's column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The metric's name.
    pub name: String,
    /// How its numbers were made.
    pub signature: Signature,
    /// One cell per system.
    pub(super) cells: Vec<Cell>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Score(f64),
    Test(TestResult),
}

/// How a table is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    FancyGrid,
    LatexBooktabs,
}

/// Codes of ANSI colors.
pub(super) const RED: u8 = 31;
pub(super) const GREEN: u8 = 32;
pub(super) const YELLOW: u8 = 33;
pub(super) const CYAN: u8 = 36;

/// A line of a cell as it is printed and how wide it is without colors.
#[derive(Clone)]
struct Line {
    text: String,
    width: usize,
}

/// Draws the table: names flush right, numbers centered.
pub(super) fn render(
    systems: &[String],
    columns: &[Column],
    style: Style,
    options: &ReportOptions,
) -> String {
    let has_baseline = systems
        .first()
        .is_some_and(|name| name.starts_with("Baseline:"));
    let colors = options.colors;
    let highlight = |row: usize, line: Line| match (row, has_baseline) {
        (0, true) => line.painted(colors, YELLOW),
        _ => line,
    };
    let mut grid: Vec<(Line, Vec<Vec<Line>>)> = Vec::new();
    let names = systems.iter().enumerate();
    let names = names.map(|(row, name)| vec![highlight(row, Line::new(name))]);
    grid.push((Line::new("System"), names.collect()));
    let mut with_confidence = false;
    for column in columns {
        let confidence =
            |cell: &Cell| matches!(cell, Cell::Test(result) if result.confidence.is_some());
        with_confidence |= column.cells.iter().any(confidence);
        let title = if with_confidence {
            format!("{} (μ ± 95% CI)", column.name)
        } else {
            column.name.clone()
        };
        let cells = column.cells.iter().enumerate().map(|(row, cell)| {
            let lines = cell.lines(style, options);
            lines.into_iter().map(|line| highlight(row, line)).collect()
        });
        grid.push((Line::new(&title), cells.collect()));
    }
    let widths: Vec<usize> = grid
        .iter()
        .map(|(title, cells)| {
            let widest = cells.iter().flatten().map(|line| line.width).max();
            widest.unwrap_or(0).max(title.width + 2)
        })
        .collect();
    let header: Vec<Vec<Line>> = grid
        .iter()
        .map(|(title, _)| vec![title.clone().painted(colors, CYAN)])
        .collect();
    let rows = (0..systems.len()).map(|row| {
        let cell = |(_, cells): &(Line, Vec<Vec<Line>>)| cells[row].clone();
        grid.iter().map(cell).collect::<Vec<_>>()
    });
    match style {
        Style::FancyGrid => fancy_grid(&header, rows, &widths),
        Style::LatexBooktabs => latex_booktabs(&header, rows, &widths),
    }
}

fn fancy_grid(
    header: &[Vec<Line>],
    rows: impl Iterator<Item = Vec<Vec<Line>>>,
    widths: &[usize],
) -> String {
    let rule = |left: &str, fill: &str, joint: &str, right: &str| {
        let cells: Vec<String> = widths.iter().map(|width| fill.repeat(width + 2)).collect();
        format!("{left}{}{right}", cells.join(joint))
    };
    let row = |cells: &[Vec<Line>]| {
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |index: usize| {
            let padded = cells
                .iter()
                .zip(widths)
                .enumerate()
                .map(|(column, (cell, &width))| {
                    let text = cell
                        .get(index)
                        .map_or(" ".repeat(width), |line| line.padded(column, width));
                    format!(" {text} ")
                });
            format!("│{}│", padded.collect::<Vec<_>>().join("│"))
        };
        (0..height).map(line).collect::<Vec<_>>().join("\n")
    };
    let body: Vec<String> = rows.map(|cells| row(&cells)).collect();
    let between = format!("\n{}\n", rule("├", "─", "┼", "┤"));
    [
        rule("╒", "═", "╤", "╕"),
        row(header),
        rule("╞", "═", "╪", "╡"),
        body.join(&between),
        rule("╘", "═", "╧", "╛"),
    ]
    .join("\n")
}

fn latex_booktabs(
    header: &[Vec<Line>],
    rows: impl Iterator<Item = Vec<Vec<Line>>>,
    widths: &[usize],
) -> String {
    let row = |cells: &[Vec<Line>]| {
        let padded = cells
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(column, (cell, &width))| {
                let text = cell
                    .first()
                    .map_or(String::new(), |line| line.padded(column, width));
                escape_latex(&format!(" {text} "))
            });
        format!("{}\\\\", padded.collect::<Vec<_>>().join("&"))
    };
    let alignment = format!("r{}", "c".repeat(widths.len() - 1));
    let mut lines = vec![
        format!("\\begin{{tabular}}{{{alignment}}}\n\\toprule"),
        row(header),
        "\\midrule".to_owned(),
    ];
    lines.extend(rows.map(|cells| row(&cells)));
    lines.push("\\bottomrule\n\\end{tabular}".to_owned());
    lines.join("\n")
}

impl Cell {
    /// The score, with its interval, and the p-value: below it in a box, beside it in LaTeX.
    fn lines(&self, style: Style, options: &ReportOptions) -> Vec<Line> {
        let width = options.width;
        let result = match self {
            Self::Score(score) => return vec![Line::new(&format!("{score:.width$}"))],
            Self::Test(result) => result,
        };
        let mut score = format!("{:.width$}", result.score);
        if let Some(confidence) = result.confidence {
            let (mean, half) = (confidence.mean, confidence.half_width);
            score += &format!(" ({mean:.width$} ± {half:.width$})");
        }
        let mut lines = vec![Line::new(&score)];
        if let Some(p) = result.p_value {
            let text = format!("(p = {p:.4})");
            // What may be chance is red, what is significant has a star.
            let value = if p > 0.05 {
                Line::new(&text).painted(options.colors, RED)
            } else {
                Line::new(&format!("{text}*"))
            };
            match style {
                Style::FancyGrid => lines.push(value),
                Style::LatexBooktabs => {
                    lines[0].width += 1 + value.width;
                    lines[0].text += &format!(" {}", value.text);
                }
            }
        }
        lines
    }
}

impl Line {
    fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            width: text.chars().count(),
        }
    }

    fn painted(self, colors: Colors, code: u8) -> Self {
        Self {
            text: colors.paint(&self.text, code),
            width: self.width,
        }
    }

    /// The first column is flush right, the others are centered.
    fn padded(&self, column: usize, width: usize) -> String {
        let missing = width - self.width;
        let left = if column == 0 { missing } else { missing / 2 };
        format!(
            "{}{}{}",
            " ".repeat(left),
            self.text,
            " ".repeat(missing - left)
        )
    }
}

fn escape_latex(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => out.extend(['\\', c]),
            '^' => out.push_str("\\^{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '\\' => out.push_str("\\textbackslash{}"),
            '<' => out.push_str("\\ensuremath{<}"),
            '>' => out.push_str("\\ensuremath{>}"),
            c => out.push(c),
        }
    }
    out
}

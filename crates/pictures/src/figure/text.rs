//! A figure in the terminal: curves as braille dots in color, or as letters where there are no colors.

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use super::axis::Axis;
use super::{Content, Curve, Figure, HeatMap, Panel, Span};
use crate::color::{Color, ColorMap, Palette};
use crate::label;
use crate::terminal::{Depth, Screen};

/// Lines of a panel without its title and its axis.
const HEIGHT: usize = 16;
const MARGIN: usize = 9;

pub(super) fn print(figure: &Figure, screen: Screen) -> String {
    let mut text = format!("{}\n\n", label::visible(&figure.title));
    for panel in &figure.panels {
        text.push_str(&format!(
            "{} (across: {}; up: {})\n",
            panel.title, panel.x_label, panel.y_label
        ));
        let lines = match &panel.content {
            Content::Curves(curves) => curve_lines(curves, screen),
            Content::HeatMap(heat) => heat_lines(heat, panel, screen),
        };
        for line in lines {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text.push('\n');
    }
    text.pop();
    text
}

/// A grid of characters, each drawn by one curve.
struct Canvas {
    width: usize,
    /// Braille dots set in each character, and the curve that drew last.
    cells: Vec<(u8, Option<usize>)>,
}

impl Canvas {
    /// Sets the dot at a place between 0 and 1, counted from the lower left.
    fn dot(&mut self, x: f64, y: f64, curve: usize) {
        let dots = |count: usize, place: f64| {
            let last = (count - 1) as f64;
            (place.clamp(0.0, 1.0) * last).round() as usize
        };
        let (x, y) = (
            dots(self.width * 2, x),
            HEIGHT * 4 - 1 - dots(HEIGHT * 4, y),
        );
        let cell = &mut self.cells[y / 4 * self.width + x / 2];
        // Braille numbers its dots in columns, and the lowest row was added later.
        cell.0 |= [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]][y % 4][x % 2];
        cell.1 = Some(curve);
    }
}

/// Where there are no colors, curves are told apart by letters.
const LETTERS: [char; 6] = ['*', 'o', '+', 'x', '#', '@'];

fn curve_lines(curves: &[Curve], screen: Screen) -> Vec<String> {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let x = Axis::around(points().map(|(x, _)| *x), 5);
    let y = Axis::around(points().map(|(_, y)| *y), 4);
    let width = screen.columns.saturating_sub(MARGIN + 3).clamp(20, 160);
    let mut canvas = Canvas {
        width,
        cells: vec![(0, None); width * HEIGHT],
    };
    for (number, curve) in curves.iter().enumerate() {
        let place = |point: &(f64, f64)| (x.place(point.0), y.place(point.1));
        let placed: Vec<(f64, f64)> = curve.points.iter().map(place).collect();
        if let [(x, y)] = placed[..] {
            canvas.dot(x, y, number);
        }
        for pair in placed.windows(2) {
            // Close enough that no dot is left out.
            let steps = ((pair[1].0 - pair[0].0).abs() * width as f64 * 2.0)
                .max((pair[1].1 - pair[0].1).abs() * HEIGHT as f64 * 4.0);
            let steps = steps.ceil().max(1.0) as usize;
            for step in 0..=steps {
                let share = step as f64 / steps as f64;
                let between = |from: f64, to: f64| from + share * (to - from);
                canvas.dot(
                    between(pair[0].0, pair[1].0),
                    between(pair[0].1, pair[1].1),
                    number,
                );
            }
        }
    }
    let mut lines = legend(curves, screen);
    lines.extend(canvas_lines(&canvas, curves, &y, screen));
    lines.push(axis_line(&x, width));
    lines
}

fn canvas_lines(canvas: &Canvas, curves: &[Curve], y: &Axis, screen: Screen) -> Vec<String> {
    let row_of = |number: f64| ((1.0 - y.place(number)) * (HEIGHT - 1) as f64).round() as usize;
    let lines = canvas.cells.chunks(canvas.width).enumerate();
    lines
        .map(|(row, cells)| {
            let tick = y.ticks.iter().find(|(number, _)| row_of(*number) == row);
            let tick = tick.map_or("", |(_, text)| text.as_str());
            let mut line = format!("{tick:>MARGIN$} │");
            for (dots, curve) in cells {
                match (curve, screen.depth) {
                    (None, _) => line.push(' '),
                    (Some(curve), Depth::Plain) => line.push(LETTERS[curve % LETTERS.len()]),
                    (Some(curve), _) => {
                        let glyph = char::from_u32(0x2800 + u32::from(*dots)).unwrap_or(' ');
                        line.push_str(&colored(glyph, color(&curves[*curve], screen), screen));
                    }
                }
            }
            line
        })
        .collect()
}

fn legend(curves: &[Curve], screen: Screen) -> Vec<String> {
    let named = curves
        .iter()
        .enumerate()
        .filter(|(_, curve)| !curve.name.is_empty());
    named
        .map(|(number, curve)| {
            let mark = match screen.depth {
                Depth::Plain => LETTERS[number % LETTERS.len()].to_string(),
                _ => colored('━', color(curve, screen), screen),
            };
            let room = screen.columns.saturating_sub(MARGIN + 5).max(20);
            format!(
                "{:>MARGIN$}   {mark} {}",
                "",
                label::shortened(&curve.name, room)
            )
        })
        .collect()
}

fn color(curve: &Curve, screen: Screen) -> Color {
    let curves = Palette::of(screen.theme).curves;
    curves[curve.color % curves.len()]
}

/// The numbers below a panel, as many as fit.
fn axis_line(x: &Axis, width: usize) -> String {
    let mut line = " ".repeat(MARGIN + 2);
    for (number, text) in &x.ticks {
        let at = MARGIN + 2 + (x.place(*number) * (width - 1) as f64).round() as usize;
        let at = at.saturating_sub(text.len() / 2);
        if at > line.width() || line.trim().is_empty() {
            line.push_str(&" ".repeat(at.saturating_sub(line.width())));
            line.push_str(text);
        }
    }
    line
}

fn heat_lines(heat: &HeatMap, panel: &Panel, screen: Screen) -> Vec<String> {
    let map = match heat.span {
        Span::Shares => ColorMap::sequential(screen.theme),
        Span::Signed => ColorMap::diverging(screen.theme),
    };
    let room = screen.columns.saturating_sub(MARGIN + 3).clamp(20, 160);
    let wide = (room / heat.cols).clamp(1, 4);
    let width = (heat.cols * wide).min(room);
    let rows = heat.rows();
    // Two cells share a character, one above the other, where there are colors.
    let height = rows.min(2 * HEIGHT);
    let value = |row: usize, at: usize| {
        let row = row * rows / height;
        heat.values[row * heat.cols + at * heat.cols / width]
    };
    let mut lines = Vec::new();
    let step = if screen.depth == Depth::Plain { 1 } else { 2 };
    for row in (0..height).step_by(step) {
        let place = |row: usize| row * rows / height;
        let name = match &heat.names {
            Some((_, names)) if screen.depth == Depth::Plain => names[place(row)].clone(),
            Some((_, names)) => {
                let below = names.get(place(row + 1)).map_or("", |name| name);
                format!("{}/{below}", names[place(row)])
            }
            None => place(row).to_string(),
        };
        let mut line = format!("{:>MARGIN$} │", label::shortened(&name, MARGIN));
        for at in 0..width {
            let upper = map.at(heat.share(value(row, at)));
            match screen.depth {
                Depth::Plain => line.push(shade(value(row, at), heat.span)),
                _ if row + 1 < height => {
                    let lower = map.at(heat.share(value(row + 1, at)));
                    let style = Style::new().fg_color(screen.color(upper));
                    let style = style.bg_color(screen.color(lower));
                    line.push_str(&format!("{style}▀{style:#}"));
                }
                _ => line.push_str(&colored('▀', upper, screen)),
            }
        }
        lines.push(line);
    }
    let last = heat.cols.saturating_sub(1).to_string();
    let gap = width.saturating_sub(1 + last.len());
    lines.push(format!(
        "{:>MARGIN$}  0{}{last}  {}",
        "",
        " ".repeat(gap),
        panel.x_label
    ));
    lines
}

fn shade(value: f32, span: Span) -> char {
    let share = match span {
        Span::Shares => value,
        Span::Signed => (value + 1.0) / 2.0,
    };
    [' ', '░', '▒', '▓', '█'][(share.clamp(0.0, 1.0) * 4.0).round() as usize]
}

fn colored(glyph: char, color: Color, screen: Screen) -> String {
    let style = Style::new().fg_color(screen.color(color));
    format!("{style}{glyph}{style:#}")
}

#[cfg(test)]
mod tests {
    use super::super::Line;
    use super::*;
    use crate::color::Theme;

    const SCREEN: Screen = Screen {
        columns: 60,
        depth: Depth::Plain,
        theme: Theme::Dark,
    };

    #[test]
    fn a_rising_line_rises() {
        let points = (0..=10).map(|i| (f64::from(i), f64::from(i))).collect();
        let lines = curve_lines(&[Curve::new("", points, Line::Plain, 0)], SCREEN);
        let column = |line: &String| line.chars().position(|c| c == '*').unwrap();
        assert_eq!(lines.len(), HEIGHT + 1);
        for pair in lines[..HEIGHT].windows(2) {
            assert!(column(&pair[0]) > column(&pair[1]), "{}", lines.join("\n"));
        }
        assert!(lines[0].trim_start().starts_with("10 │"), "{}", lines[0]);
        assert!(lines.iter().all(|line| line.width() <= 60));
    }

    #[test]
    fn colors_come_only_where_they_are_shown() {
        let curve = Curve::new("loss", vec![(0.0, 1.0), (1.0, 0.5)], Line::Plain, 0);
        assert!(
            !curve_lines(std::slice::from_ref(&curve), SCREEN)
                .concat()
                .contains('\x1b')
        );
        let colored = Screen {
            depth: Depth::True,
            ..SCREEN
        };
        assert!(
            curve_lines(&[curve], colored)
                .concat()
                .contains("\x1b[38;2;")
        );
    }
}

//! A figure as SVG: two panels in a row, each with its axes, its grid and its legend.

use super::axis::Axis;
use super::{Content, Curve, Figure, HeatMap, Line, Panel, Span};
use crate::color::{ColorMap, Palette, Theme};
use crate::fonts;
use crate::label;
use crate::svg::{Anchor, Style, Svg};

const MARGIN: f64 = 28.0;
const TITLE: f64 = 34.0;
const TEXT: f64 = 12.0;
/// One panel, everything around it included.
const PANEL: (f64, f64) = (560.0, 400.0);
/// Around the axes of a panel: left, top, right, bottom.
const AROUND: (f64, f64, f64, f64) = (72.0, 40.0, 24.0, 56.0);
const LEGEND_LINE: f64 = 20.0;

pub(super) fn draw(figure: &Figure, theme: Theme) -> String {
    let palette = Palette::of(theme);
    let mut svg = Svg::default();
    let columns = figure.panels.len().clamp(1, 2);
    let rows = figure.panels.len().div_ceil(columns);
    let style = Style::new(17.0, palette.foreground).bold();
    svg.text(MARGIN, MARGIN + 12.0, style, &figure.title, None);
    for (number, panel) in figure.panels.iter().enumerate() {
        let x = MARGIN + (number % columns) as f64 * PANEL.0;
        let y = MARGIN + TITLE + (number / columns) as f64 * PANEL.1;
        let mut area = Area {
            svg: &mut svg,
            theme,
            palette,
            x: x + AROUND.0,
            y: y + AROUND.1,
            width: PANEL.0 - AROUND.0 - AROUND.2,
            height: PANEL.1 - AROUND.1 - AROUND.3,
        };
        area.panel(panel);
    }
    let width = 2.0 * MARGIN + columns as f64 * PANEL.0;
    let height = 2.0 * MARGIN + TITLE + rows as f64 * PANEL.1;
    svg.finish(width, height, palette.background, &figure.title)
}

/// The space between the axes of a panel.
struct Area<'a> {
    svg: &'a mut Svg,
    theme: Theme,
    palette: &'static Palette,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Area<'_> {
    fn panel(&mut self, panel: &Panel) {
        let title = Style::new(14.0, self.palette.foreground).bold();
        self.svg
            .text(self.x, self.y - 20.0, title, &panel.title, None);
        match &panel.content {
            Content::Curves(curves) => self.curves(curves),
            Content::HeatMap(heat) => self.heat(heat),
        }
        let style = Style::new(TEXT, self.palette.muted).anchored(Anchor::Middle);
        let (middle, bottom) = (self.x + self.width / 2.0, self.y + self.height);
        self.svg
            .text(middle, bottom + 40.0, style, &panel.x_label, None);
        let (left, middle) = (self.x - 56.0, self.y + self.height / 2.0);
        self.svg
            .text(left, middle, style.turned(-90.0), &panel.y_label, None);
    }

    fn curves(&mut self, curves: &[Curve]) {
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let x = Axis::around(points().map(|(x, _)| *x), 6);
        let y = Axis::around(points().map(|(_, y)| *y), 5);
        // Curves may end before a round number does; the axis need not go on.
        let (low, high) = (x.from, points().map(|(x, _)| *x).fold(x.from, f64::max));
        let x = if high > low {
            Axis::exactly(low, high, 6)
        } else {
            x
        };
        let legend = self.legend(curves);
        self.y += legend;
        self.height -= legend;
        self.grid(&x, &y);
        for curve in curves {
            let place = |(px, py): &(f64, f64)| {
                let at = self.x + x.place(*px) * self.width;
                (at, self.y + (1.0 - y.place(*py)) * self.height)
            };
            let placed: Vec<(f64, f64)> = curve.points.iter().map(place).collect();
            let color = self.color(curve);
            let dashes = if curve.line == Line::Dashed {
                " stroke-dasharray=\"6 4\""
            } else {
                ""
            };
            self.svg.curve(&placed, color, 1.8, dashes);
            if curve.line == Line::Dotted || placed.len() == 1 {
                for (px, py) in placed {
                    self.svg.dot(px, py, 3.2, color);
                }
            }
        }
    }

    fn color(&self, curve: &Curve) -> crate::color::Color {
        self.palette.curves[curve.color % self.palette.curves.len()]
    }

    /// Names of the curves above them; returns the height that they take.
    fn legend(&mut self, curves: &[Curve]) -> f64 {
        if let [one] = curves
            && one.name.is_empty()
        {
            return 0.0;
        }
        let (mut x, mut y) = (self.x, self.y);
        for curve in curves {
            let name = label::shortened(&curve.name, 48);
            let width = fonts::width(&name) * TEXT + 44.0;
            if x > self.x && x + width > self.x + self.width {
                (x, y) = (self.x, y + LEGEND_LINE);
            }
            let color = self.color(curve);
            let dashes = if curve.line == Line::Dashed {
                " stroke-dasharray=\"6 4\""
            } else {
                ""
            };
            self.svg
                .curve(&[(x, y - 4.0), (x + 22.0, y - 4.0)], color, 2.2, dashes);
            if curve.line == Line::Dotted {
                self.svg.dot(x + 11.0, y - 4.0, 3.2, color);
            }
            self.svg.text(
                x + 28.0,
                y,
                Style::new(TEXT, self.palette.foreground),
                &name,
                Some(&curve.name),
            );
            x += width;
        }
        y - self.y + LEGEND_LINE
    }

    fn grid(&mut self, x: &Axis, y: &Axis) {
        let Palette { line, muted, .. } = self.palette;
        let (left, top, bottom) = (self.x, self.y, self.y + self.height);
        for (number, text) in &y.ticks {
            let at = self.y + (1.0 - y.place(*number)) * self.height;
            self.svg
                .line((left, at), (left + self.width, at), *line, 0.7);
            let style = Style::new(TEXT - 1.0, *muted).anchored(Anchor::End);
            self.svg.text(left - 8.0, at + 4.0, style, text, None);
        }
        for (number, text) in &x.ticks {
            let at = self.x + x.place(*number) * self.width;
            self.svg.line((at, top), (at, bottom), *line, 0.7);
            let style = Style::new(TEXT - 1.0, *muted).anchored(Anchor::Middle);
            self.svg.text(at, bottom + 18.0, style, text, None);
        }
        self.svg
            .line((left, bottom), (left + self.width, bottom), *muted, 1.0);
    }

    fn heat(&mut self, heat: &HeatMap) {
        // Room for the scale on the right.
        self.width -= 46.0;
        let (cols, rows) = (heat.cols, heat.rows());
        let (cell_x, cell_y) = (self.width / cols as f64, self.height / rows as f64);
        self.svg.open(&format!(
            "transform=\"translate({:.2} {:.2}) scale({cell_x:.5} {cell_y:.5})\" shape-rendering=\"crispEdges\"",
            self.x, self.y
        ));
        let map = self.map(heat);
        for (row, values) in heat.values.chunks(cols).enumerate() {
            let mut col = 0;
            for run in values.chunk_by(|a, b| map.at(heat.share(*a)) == map.at(heat.share(*b))) {
                let path = format!("M{col} {row}h{0}v1h-{0}z", run.len());
                self.svg.path(&path, map.at(heat.share(run[0])));
                col += run.len();
            }
        }
        self.svg.close();
        self.svg
            .frame(self.x, self.y, self.width, self.height, self.palette.line);
        match &heat.names {
            Some((columns, rows)) => self.names(heat, columns, rows),
            None => self.numbers(cols, rows),
        }
        self.scale(heat);
    }

    fn map(&self, heat: &HeatMap) -> &'static ColorMap {
        match heat.span {
            Span::Shares => ColorMap::sequential(self.theme),
            Span::Signed => ColorMap::diverging(self.theme),
        }
    }

    fn numbers(&mut self, cols: usize, rows: usize) {
        let style = Style::new(TEXT - 1.0, self.palette.muted);
        for (number, text) in Axis::exactly(0.0, cols as f64, 6).ticks {
            let x = self.x + number / cols as f64 * self.width;
            let style = style.anchored(Anchor::Middle);
            self.svg
                .text(x, self.y + self.height + 18.0, style, &text, None);
        }
        for (number, text) in Axis::exactly(0.0, rows as f64, 5).ticks {
            let y = self.y + number / rows as f64 * self.height;
            self.svg.text(
                self.x - 8.0,
                y + 4.0,
                style.anchored(Anchor::End),
                &text,
                None,
            );
        }
    }

    /// Names at the cells, and in each cell its number.
    fn names(&mut self, heat: &HeatMap, columns: &[String], rows: &[String]) {
        let style = Style::new(TEXT - 1.0, self.palette.muted);
        let (cell_x, cell_y) = (
            self.width / columns.len() as f64,
            self.height / rows.len() as f64,
        );
        for (i, name) in columns.iter().enumerate() {
            let x = self.x + (i as f64 + 0.5) * cell_x;
            let style = style.anchored(Anchor::Middle);
            self.svg
                .text(x, self.y + self.height + 18.0, style, name, None);
        }
        for (i, name) in rows.iter().enumerate() {
            let y = self.y + (i as f64 + 0.5) * cell_y;
            self.svg.text(
                self.x - 8.0,
                y + 4.0,
                style.anchored(Anchor::End),
                name,
                None,
            );
        }
        for (i, value) in heat
            .values
            .iter()
            .enumerate()
            .filter(|(_, value)| **value != 0.0)
        {
            let (x, y) = ((i % heat.cols) as f64 + 0.5, (i / heat.cols) as f64 + 0.5);
            let text = format!("{value:.3}");
            let text = text.trim_end_matches('0').trim_start_matches('0');
            let strong = heat.share(*value) > 0.45;
            let foreground = if strong {
                self.palette.background
            } else {
                self.palette.foreground
            };
            let style = Style::new((cell_x * 0.3).min(TEXT), foreground).anchored(Anchor::Middle);
            self.svg.text(
                self.x + x * cell_x,
                self.y + y * cell_y + 4.0,
                style,
                text,
                None,
            );
        }
    }

    fn scale(&mut self, heat: &HeatMap) {
        let map = self.map(heat);
        let (x, steps) = (self.x + self.width + 14.0, 64);
        let step = self.height / f64::from(steps);
        self.svg.open("shape-rendering=\"crispEdges\"");
        for i in 0..steps {
            let color = map.at(1.0 - i as f32 / (steps - 1) as f32);
            self.svg
                .rect(x, self.y + f64::from(i) * step, 12.0, step + 0.3, color);
        }
        self.svg.close();
        self.svg
            .frame(x, self.y, 12.0, self.height, self.palette.line);
        let ends = match heat.span {
            Span::Shares => ["1", "0.5", "0"],
            Span::Signed => ["1", "0", "-1"],
        };
        for (i, text) in ends.iter().enumerate() {
            let y = self.y + self.height * i as f64 / 2.0;
            let style = Style::new(TEXT - 1.0, self.palette.muted);
            self.svg.text(x + 17.0, y + 4.0, style, text, None);
        }
    }
}

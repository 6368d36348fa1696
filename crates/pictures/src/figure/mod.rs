//! Figures: panels with axes and curves or a heat map in them, as SVG and in the terminal.
//!
//! [`crate::plots`] says what is in them; [`axis`] finds round numbers for the axes.

pub mod axis;
mod drawing;
mod text;

use crate::color::Theme;
use crate::terminal::Screen;

/// A picture of one or more panels.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Above all panels.
    pub title: String,
    /// From left to right, two in a row.
    pub panels: Vec<Panel>,
}

/// A pair of axes and what is between them.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// Below it.
    pub x_label: String,
    /// Beside it.
    pub y_label: String,
    /// Between the axes.
    pub content: Content,
}

/// What is between the axes.
#[derive(Debug, Clone)]
pub enum Content {
    /// Curves.
    Curves(Vec<Curve>),
    /// A heat map.
    HeatMap(HeatMap),
}

/// A curve.
#[derive(Debug, Clone)]
pub struct Curve {
    /// In the legend.
    pub name: String,
    /// From left to right; those that are not finite are left out.
    pub points: Vec<(f64, f64)>,
    /// How it looks.
    pub line: Line,
    /// Curves of one number have one color.
    pub color: usize,
}

/// How a curve looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// Many points.
    Plain,
    /// Few points, each marked.
    Dotted,
    /// The same thing under another condition.
    Dashed,
}

/// A heat map.
#[derive(Debug, Clone)]
pub struct HeatMap {
    /// Cells from the left to the right.
    pub cols: usize,
    /// Values row by row, the first row at the top.
    pub values: Vec<f32>,
    /// Which number has which color.
    pub span: Span,
    /// Names of the columns and of the rows, where numbers would say nothing.
    pub names: Option<(Vec<String>, Vec<String>)>,
}

/// Which numbers the colors stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// From 0 to 1; 0 has the color of the background.
    Shares,
    /// From -1 to 1; 0 has the color of the background.
    Signed,
}

impl Figure {
    /// As an SVG file.
    pub fn svg(&self, theme: Theme) -> String {
        drawing::draw(self, theme)
    }

    /// As lines for the terminal.
    pub fn text(&self, screen: Screen) -> String {
        text::print(self, screen)
    }
}

impl Curve {
    /// A curve; points that are not finite are left out.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>, line: Line, color: usize) -> Self {
        let finite = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
        Self {
            name: name.into(),
            points: points.into_iter().filter(finite).collect(),
            line,
            color,
        }
    }
}

impl HeatMap {
    /// Cells from top to bottom.
    pub fn rows(&self) -> usize {
        self.values.len() / self.cols.max(1)
    }

    /// A value as a number from 0 to 1, for a color map.
    fn share(&self, value: f32) -> f32 {
        match self.span {
            Span::Shares => value,
            Span::Signed => (value + 1.0) / 2.0,
        }
    }
}

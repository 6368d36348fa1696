//! Where an example's picture goes: to the SVG file that was named on the command line, else to the terminal.

use attentive_pictures::color::Theme;
use attentive_pictures::figure::{Content, Curve, Figure, HeatMap, Line, Panel, Span};
use attentive_pictures::terminal::{Depth, Screen};

/// Shows a figure.
pub fn show(title: &str, panels: Vec<Panel>) -> std::io::Result<()> {
    let figure = Figure {
        title: title.to_owned(),
        panels,
    };
    match std::env::args().nth(1) {
        Some(path) => {
            std::fs::write(&path, figure.svg(Theme::Light))?;
            println!("picture: {path}");
        }
        None => {
            let screen = Screen {
                columns: 100,
                depth: Depth::Plain,
                theme: Theme::Light,
            };
            println!("{}", figure.text(screen));
        }
    }
    Ok(())
}

/// A panel of curves, each with its name and points.
#[allow(dead_code)]
pub fn curves(title: &str, labels: [&str; 2], curves: Vec<(String, Vec<(f64, f64)>)>) -> Panel {
    let curve = |(color, (name, points)): (usize, (String, Vec<_>))| {
        let line = if points.len() > 16 {
            Line::Plain
        } else {
            Line::Dotted
        };
        Curve::new(name, points, line, color)
    };
    panel(
        title,
        labels,
        Content::Curves(curves.into_iter().enumerate().map(curve).collect()),
    )
}

/// A panel with a map of numbers from 0 to 1, row by row.
#[allow(dead_code)]
pub fn map(title: &str, labels: [&str; 2], cols: usize, values: Vec<f32>) -> Panel {
    let map = HeatMap {
        cols,
        values,
        span: Span::Shares,
        names: None,
    };
    panel(title, labels, Content::HeatMap(map))
}

/// A map as [`map`] draws, of things that have names, each compared with each.
#[allow(dead_code)]
pub fn named_map(title: &str, labels: [&str; 2], names: Vec<String>, values: Vec<f32>) -> Panel {
    let map = HeatMap {
        cols: names.len(),
        values,
        span: Span::Shares,
        names: Some((names.clone(), names)),
    };
    panel(title, labels, Content::HeatMap(map))
}

fn panel(title: &str, [x_label, y_label]: [&str; 2], content: Content) -> Panel {
    Panel {
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        y_label: y_label.to_owned(),
        content,
    }
}

//! Positional encodings: the whole table as a heat map, and a few of its dimensions as curves (§3.5).

use crate::error::{PictureError, Result};
use crate::figure::{Content, Curve, Figure, HeatMap, Line, Panel, Span};

/// `table` holds the vectors of `length` positions, one after the other; `dims` become curves.
pub fn figure(table: &[f32], length: usize, dims: &[usize]) -> Result<Figure> {
    let width = table.len() / length.max(1);
    if table.is_empty() || width * length != table.len() {
        return Err(PictureError::Shape {
            what: "position vectors".to_owned(),
            expected: format!("as many numbers for each of {length} positions, at least one"),
            found: table.len().to_string(),
        });
    }
    if let Some(dim) = dims.iter().find(|dim| **dim >= width) {
        return Err(PictureError::Shape {
            what: "a dimension to draw".to_owned(),
            expected: format!("0 to {}", width - 1),
            found: dim.to_string(),
        });
    }
    let curve = |(number, dim): (usize, &usize)| {
        let points = (0..length).map(|at| (at as f64, f64::from(table[at * width + dim])));
        Curve::new(
            format!("dimension {dim}"),
            points.collect(),
            Line::Plain,
            number,
        )
    };
    Ok(Figure {
        title: format!("Positions as sines and cosines, {width} dimensions"),
        panels: vec![
            Panel {
                title: "Every dimension".to_owned(),
                x_label: "dimension".to_owned(),
                y_label: "position".to_owned(),
                content: Content::HeatMap(HeatMap {
                    cols: width,
                    values: table.to_vec(),
                    span: Span::Signed,
                    names: None,
                }),
            },
            Panel {
                title: "A few dimensions".to_owned(),
                x_label: "position".to_owned(),
                y_label: "value".to_owned(),
                content: Content::Curves(dims.iter().enumerate().map(curve).collect()),
            },
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_columns_of_the_table() {
        let table: Vec<f32> = (0..12).map(|i| i as f32 / 12.0).collect();
        let figure = figure(&table, 3, &[1]).unwrap();
        let Content::Curves(curves) = &figure.panels[1].content else {
            panic!()
        };
        let values: Vec<f64> = curves[0].points.iter().map(|(_, y)| *y).collect();
        assert_eq!(values, [1, 5, 9].map(|i| f64::from(i as f32 / 12.0)));
    }

    #[test]
    fn a_dimension_that_is_not_there_is_refused() {
        let message = figure(&[0.0; 8], 2, &[4]).unwrap_err().to_string();
        assert!(
            message.contains("0 to 3") && message.contains("found 4"),
            "{message}"
        );
    }
}

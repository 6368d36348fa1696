//! Training curves: loss, validation scores, learning rate and speed of one or several runs.

use crate::figure::{Content, Curve, Figure, Line, Panel};
use crate::history::{History, Logged, Validated};

/// What the horizontal axis shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Across {
    /// Optimizer steps.
    Steps,
    /// Minutes of training.
    Minutes,
}

impl Across {
    fn label(self) -> &'static str {
        match self {
            Across::Steps => "step",
            Across::Minutes => "minutes",
        }
    }

    fn of(self, step: u64, seconds: f64) -> f64 {
        match self {
            Across::Steps => step as f64,
            Across::Minutes => seconds / 60.0,
        }
    }
}

/// One color for each run; panels without data are left out.
pub fn figure(runs: &[History], across: Across) -> Figure {
    let losses = runs.iter().enumerate().flat_map(|(number, run)| {
        let train = logged(run, across, |line| line.loss);
        let val = validated(run, across, |line| line.loss);
        [
            Curve::new(
                format!("{}, training", run.name),
                train,
                Line::Plain,
                2 * number,
            ),
            Curve::new(
                format!("{}, validation", run.name),
                val,
                Line::Dotted,
                2 * number + 1,
            ),
        ]
    });
    let scores = |score: fn(&Validated) -> Option<f64>| -> Vec<Curve> {
        let curve = |(number, run): (usize, &History)| {
            let points = validated(run, across, score);
            Curve::new(run.name.clone(), points, Line::Dotted, 2 * number + 1)
        };
        runs.iter().enumerate().map(curve).collect()
    };
    let lines = |value: fn(&Logged) -> Option<f64>| -> Vec<Curve> {
        let curve = |(number, run): (usize, &History)| {
            let points = logged(run, across, value);
            Curve::new(run.name.clone(), points, Line::Plain, 2 * number)
        };
        runs.iter().enumerate().map(curve).collect()
    };
    let panels = [
        ("Loss", "loss per target", losses.collect::<Vec<_>>()),
        ("Validation BLEU", "BLEU", scores(|line| line.bleu)),
        (
            "Learning rate",
            "learning rate",
            lines(|line| line.learning_rate),
        ),
        (
            "Speed",
            "targets per second",
            lines(|line| line.tokens_per_second),
        ),
    ];
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    Figure {
        title: format!("Training: {}", names.join(", ")),
        panels: panels
            .into_iter()
            .filter_map(|(title, y_label, curves)| panel(title, y_label, curves, across))
            .collect(),
    }
}

fn panel(title: &str, y_label: &str, mut curves: Vec<Curve>, across: Across) -> Option<Panel> {
    curves.retain(|curve| !curve.points.is_empty());
    (!curves.is_empty()).then(|| Panel {
        title: title.to_owned(),
        x_label: across.label().to_owned(),
        y_label: y_label.to_owned(),
        content: Content::Curves(curves),
    })
}

fn logged(run: &History, across: Across, value: fn(&Logged) -> Option<f64>) -> Vec<(f64, f64)> {
    let point = |line: &Logged| Some((across.of(line.step, line.seconds), value(line)?));
    run.steps.iter().filter_map(point).collect()
}

fn validated(
    run: &History,
    across: Across,
    value: fn(&Validated) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let point = |line: &Validated| Some((across.of(line.step, line.seconds), value(line)?));
    run.validations.iter().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, bleu: Option<f64>) -> History {
        let logged = |step: u64| Logged {
            step,
            seconds: step as f64 * 6.0,
            loss: Some(5.0 / step as f64),
            learning_rate: Some(1e-3),
            tokens_per_second: None,
        };
        History {
            name: name.to_owned(),
            steps: (1..=5).map(logged).collect(),
            validations: vec![Validated {
                step: 5,
                seconds: 30.0,
                loss: Some(1.5),
                perplexity: None,
                bleu,
            }],
        }
    }

    #[test]
    fn panels_without_data_are_left_out() {
        let titles = |bleu| -> Vec<String> {
            let figure = figure(&[run("a", bleu)], Across::Steps);
            figure.panels.into_iter().map(|panel| panel.title).collect()
        };
        assert_eq!(titles(None), ["Loss", "Learning rate"]);
        assert_eq!(
            titles(Some(30.0)),
            ["Loss", "Validation BLEU", "Learning rate"]
        );
    }

    #[test]
    fn several_runs_share_the_axes() {
        let figure = figure(&[run("a", None), run("b", None)], Across::Minutes);
        let Content::Curves(curves) = &figure.panels[0].content else {
            panic!()
        };
        let names: Vec<&str> = curves.iter().map(|curve| curve.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "a, training",
                "a, validation",
                "b, training",
                "b, validation"
            ]
        );
        assert_eq!(curves[2].points[4], (0.5, 1.0));
    }
}

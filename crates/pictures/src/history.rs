//! The history of a training run, as `metrics.jsonl` tells it.
//!
//! Written by `attentive-train` (its `run/log.rs`), also while it is read here: a last line without
//! an end is one that is being written. Neighbor: [`crate::plots::training`] draws it.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::error::{PictureError, Result};

/// What happened in a run.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The run's folder.
    pub name: String,
    /// Training steps that were logged.
    pub steps: Vec<Logged>,
    /// Evaluations on the validation data.
    pub validations: Vec<Validated>,
}

/// A logged training step.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Logged {
    /// Optimizer steps done.
    pub step: u64,
    /// Seconds of training.
    pub seconds: f64,
    /// Loss per token since the line before; nothing if it was no number.
    pub loss: Option<f64>,
    /// The learning rate of this step.
    pub learning_rate: Option<f64>,
    /// Since the line before.
    pub tokens_per_second: Option<f64>,
}

/// An evaluation on the validation data.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Validated {
    /// Optimizer steps done.
    pub step: u64,
    /// Seconds of training.
    pub seconds: f64,
    /// Loss per token; nothing if it was no number.
    pub loss: Option<f64>,
    /// `exp` of the cross-entropy per token.
    pub perplexity: Option<f64>,
    /// If it was asked for.
    pub bleu: Option<f64>,
}

#[derive(Deserialize)]
struct Entry {
    event: String,
}

impl History {
    /// Reads the history of a run, given as its folder or as the file itself.
    pub fn read(path: &Path) -> Result<Self> {
        let file = if path.is_dir() {
            path.join("metrics.jsonl")
        } else {
            path.to_owned()
        };
        let text = fs::read(&file).map_err(|source| PictureError::Unreadable {
            path: file.clone(),
            source,
            remedy: "Give the folder of a training run, the one that `attentive train --out` made.",
        })?;
        let history = Self::parse(&file, &String::from_utf8_lossy(&text))?;
        if history.steps.is_empty() && history.validations.is_empty() {
            return Err(PictureError::EmptyHistory { path: file });
        }
        Ok(history)
    }

    fn parse(file: &Path, text: &str) -> Result<Self> {
        let mut history = History {
            name: name_of(file),
            steps: Vec::new(),
            validations: Vec::new(),
        };
        let complete = text.rsplit_once('\n').map_or("", |(complete, _)| complete);
        for (number, line) in complete.lines().enumerate() {
            let wrong = |error: serde_json::Error| PictureError::NotAHistory {
                path: file.to_owned(),
                line: number + 1,
                problem: error.to_string(),
            };
            let entry: Entry = serde_json::from_str(line).map_err(wrong)?;
            match entry.event.as_str() {
                "step" => history
                    .steps
                    .push(serde_json::from_str(line).map_err(wrong)?),
                "validation" => {
                    let validated = serde_json::from_str(line).map_err(wrong)?;
                    history.validations.push(validated);
                }
                // Ends of epochs, averages and rejected batches are not drawn.
                _ => {}
            }
        }
        Ok(history)
    }
}

/// The folder that the file lies in, by the name that it was given.
fn name_of(file: &Path) -> String {
    let named = |file: &Path| Some(file.parent()?.file_name()?.to_string_lossy().into_owned());
    // The folder itself may have been given as `.`.
    let whole = || named(&fs::canonicalize(file).ok()?);
    named(file)
        .or_else(whole)
        .unwrap_or_else(|| "run".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: &str = r#"{"event":"step","step":50,"epoch":0,"loss":7.1,"learning_rate":0.001,"gradient_norm":1.9,"tokens_per_second":2270.0,"seconds":41.6}"#;
    const VALIDATION: &str = r#"{"event":"validation","step":60,"epoch":1,"loss":4.0,"perplexity":101.0,"bleu":null,"seconds":50.0,"improved":true,"samples":[]}"#;

    #[test]
    fn a_run_is_read_while_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("de-en");
        fs::create_dir(&run).unwrap();
        let text =
            format!("{STEP}\n{{\"event\":\"epoch\",\"step\":55}}\n{VALIDATION}\n{{\"event\":\"st");
        fs::write(run.join("metrics.jsonl"), text).unwrap();
        let history = History::read(&run).unwrap();
        assert_eq!(history.name, "de-en");
        assert_eq!((history.steps.len(), history.steps[0].loss), (1, Some(7.1)));
        assert_eq!(
            (history.validations[0].step, history.validations[0].bleu),
            (60, None)
        );
        assert_eq!(History::read(&run.join("metrics.jsonl")).unwrap(), history);
    }

    #[test]
    fn what_is_no_history_is_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let message = |content: &str| {
            let path = folder.path().join("metrics.jsonl");
            fs::write(&path, content).unwrap();
            History::read(&path).unwrap_err().to_string()
        };
        let broken = message(&format!("{STEP}\nnot json\n"));
        assert!(broken.contains("metrics.jsonl, line 2"), "{broken}");
        let other = message("{\"name\": \"package\"}\n");
        assert!(
            other.contains("line 1") && other.contains("event"),
            "{other}"
        );
        assert!(message("").contains("holds nothing to draw yet"));
        let missing = History::read(&folder.path().join("no"))
            .unwrap_err()
            .to_string();
        assert!(missing.contains("attentive train --out"), "{missing}");
    }
}

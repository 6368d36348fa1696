//! `metrics.jsonl`: one JSON object per line for everything that happens in a run.
//!
//! `{"event": "step", "step": 50, ...}`, likewise `epoch`, `validation`, `average` and `rejected`. A run that
//! is continued from an older checkpoint comes past the same steps again, so the lines after that
//! checkpoint are cut off first: every step stands there once. Written by the trainer.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};

use attentive_model::durable;

use crate::error::StorageError;

/// The log of a run, open at its end.
#[derive(Debug)]
pub struct MetricsLog {
    path: PathBuf,
    file: File,
    lines: u64,
    /// Bytes of complete lines, to which the file shrinks if a line cannot be written whole.
    bytes: u64,
}

impl MetricsLog {
    /// Opens an empty log for a new run.
    pub fn create(path: &Path) -> Result<Self, StorageError> {
        Self::resume(path, 0, 0)
    }

    /// Opens the log of a run that continues from `step`, where the log had so many `lines`.
    ///
    /// Later lines, a torn last line and lines of later steps are cut off.
    pub fn resume(path: &Path, step: u64, lines: u64) -> Result<Self, StorageError> {
        let text = match std::fs::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(source) => return Err(StorageError::io("read", path)(source)),
        };
        let limit = usize::try_from(lines).unwrap_or(usize::MAX);
        let kept: Vec<&str> = text
            .lines()
            .take(limit)
            .take_while(|line| is_up_to(line, step))
            .collect();
        let mut kept_text = kept.join("\n");
        if !kept.is_empty() {
            kept_text.push('\n');
        }
        if kept_text != text || !path.exists() {
            durable::write(path, kept_text.as_bytes()).map_err(StorageError::io("write", path))?;
        }
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .map_err(StorageError::io("write", path))?;
        let (lines, bytes) = (kept.len() as u64, kept_text.len() as u64);
        Ok(MetricsLog {
            path: path.to_owned(),
            file,
            lines,
            bytes,
        })
    }

    /// Adds a line with `event`, `step` and the given fields, an object or a struct.
    pub fn append(
        &mut self,
        event: &str,
        step: u64,
        fields: &impl Serialize,
    ) -> Result<(), StorageError> {
        let mut object = Map::new();
        object.insert("event".to_owned(), event.into());
        object.insert("step".to_owned(), step.into());
        let fields = serde_json::to_value(fields)
            .map_err(|error| StorageError::io("write", &self.path)(error.into()))?;
        match fields {
            Value::Object(fields) => object.extend(fields),
            Value::Null => {}
            other => {
                object.insert("value".to_owned(), other);
            }
        }
        let line = format!("{}\n", Value::Object(object));
        if let Err(source) = self.file.write_all(line.as_bytes()) {
            // Half a line would spoil the next one too.
            let _ = self.file.set_len(self.bytes);
            return Err(StorageError::io("write", &self.path)(source));
        }
        self.lines += 1;
        self.bytes += line.len() as u64;
        Ok(())
    }

    /// Lines so far; a checkpoint keeps this number for [`MetricsLog::resume`].
    pub fn lines(&self) -> u64 {
        self.lines
    }
}

/// Whether a line is whole and belongs to this step or an earlier one.
fn is_up_to(line: &str, step: u64) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(line) else {
        return false;
    };
    value
        .get("step")
        .and_then(Value::as_u64)
        .is_none_or(|own| own <= step)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn steps(path: &Path) -> Vec<u64> {
        let text = std::fs::read_to_string(path).unwrap();
        let step = |line: &str| {
            serde_json::from_str::<Value>(line).unwrap()["step"]
                .as_u64()
                .unwrap()
        };
        text.lines().map(step).collect()
    }

    fn log_of(path: &Path, steps: std::ops::RangeInclusive<u64>) -> MetricsLog {
        let mut log = MetricsLog::create(path).unwrap();
        for step in steps {
            log.append("step", step, &json!({"loss": 1.5})).unwrap();
        }
        log
    }

    #[test]
    fn an_event_is_one_line_with_its_name_and_step_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.jsonl");
        let mut log = MetricsLog::create(&path).unwrap();
        log.append("validation", 7, &json!({"loss": 2.5, "bleu": 30.0}))
            .unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            "{\"event\":\"validation\",\"step\":7,\"loss\":2.5,\"bleu\":30.0}\n"
        );
        assert_eq!(log.lines(), 1);
    }

    #[test]
    fn a_continued_run_has_every_step_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.jsonl");
        log_of(&path, 1..=5);
        let mut log = MetricsLog::resume(&path, 3, 3).unwrap();
        log.append("step", 4, &json!({})).unwrap();
        assert_eq!(steps(&path), [1, 2, 3, 4]);
        assert_eq!(log.lines(), 4);
    }

    #[test]
    fn lines_of_the_same_step_that_came_after_the_checkpoint_are_cut_too() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.jsonl");
        let mut log = log_of(&path, 1..=3);
        log.append("checkpoint", 3, &json!({})).unwrap();
        MetricsLog::resume(&path, 3, 3).unwrap();
        assert_eq!(steps(&path), [1, 2, 3]);
    }

    #[test]
    fn a_torn_last_line_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.jsonl");
        log_of(&path, 1..=2);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"event\":\"step\",\"st").unwrap();
        let mut log = MetricsLog::resume(&path, 9, 9).unwrap();
        log.append("step", 3, &json!({})).unwrap();
        assert_eq!(steps(&path), [1, 2, 3]);
    }

    #[test]
    fn a_missing_log_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.jsonl");
        let mut log = MetricsLog::resume(&path, 10, 20).unwrap();
        log.append("step", 11, &json!({})).unwrap();
        assert_eq!(steps(&path), [11]);
    }

    #[test]
    fn a_line_that_does_not_fit_on_the_disk_leaves_no_half_of_it() {
        // `/dev/full` refuses every write as a full disk does.
        let Ok(file) = OpenOptions::new().write(true).open("/dev/full") else {
            return;
        };
        let mut log = MetricsLog {
            path: "metrics.jsonl".into(),
            file,
            lines: 4,
            bytes: 100,
        };
        let error = log.append("step", 1, &json!({})).unwrap_err();
        assert!(matches!(error, StorageError::DiskFull { .. }), "{error}");
        assert_eq!((log.lines(), log.bytes), (4, 100));
    }
}

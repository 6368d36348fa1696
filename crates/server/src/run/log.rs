//! `metrics.jsonl` as it grows: complete lines, each a JSON object, and none of them read twice.
//!
//! A run that is continued from an older checkpoint begins the file anew without the steps after it; then everything is
//! read again, and the version says so to pages that have the old lines.

use std::fs::{self, File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use serde::Deserialize;

/// The lines of a log so far.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    /// Bytes of complete lines that were read.
    offset: u64,
    file: Option<u64>,
    lines: Vec<String>,
    samples: Vec<Sample>,
    version: u64,
}

/// A validation sentence and its reference.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Sample {
    pub source: String,
    pub reference: String,
}

#[derive(Deserialize)]
struct Entry {
    event: String,
    #[serde(default)]
    samples: Vec<Sample>,
}

impl Log {
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            offset: 0,
            file: None,
            lines: Vec::new(),
            samples: Vec::new(),
            version: 0,
        }
    }

    /// Reads the lines that have been completed since.
    pub fn read_on(&mut self) {
        let Ok(found) = fs::metadata(&self.path) else {
            return;
        };
        if found.len() < self.offset || self.file.is_some_and(|file| file != identity(&found)) {
            *self = Self {
                version: self.version + 1,
                ..Self::new(std::mem::take(&mut self.path))
            };
        }
        self.file = Some(identity(&found));
        let Ok(new) = self.new_bytes() else {
            return;
        };
        // What comes after the last line break is still being written.
        let complete = new.iter().rposition(|byte| *byte == b'\n');
        let Some(complete) = complete.map(|last| &new[..=last]) else {
            return;
        };
        self.offset += complete.len() as u64;
        for line in String::from_utf8_lossy(complete).lines() {
            // Whatever else is in the file is not ours.
            if let Ok(entry) = serde_json::from_str::<Entry>(line) {
                if entry.event == "validation" && self.samples.is_empty() {
                    self.samples = entry.samples;
                }
                self.lines.push(line.to_owned());
            }
        }
    }

    fn new_bytes(&self) -> std::io::Result<Vec<u8>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut new = Vec::new();
        file.read_to_end(&mut new)?;
        Ok(new)
    }

    /// All lines, each a JSON object with its `event`.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The sentences of the first validation.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Another number means that lines which were read before are not true any more.
    pub fn version(&self) -> u64 {
        self.version
    }
}

/// Tells a file from another one that took its place.
#[cfg(unix)]
fn identity(file: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(file)
}

/// Where files have no numbers, one that took another's place is told by being shorter.
#[cfg(not(unix))]
fn identity(_: &Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lines_are_read_once_when_they_are_complete_and_again_when_a_run_goes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut log = Log::new(path.clone());
        log.read_on();
        assert_eq!((log.lines().len(), log.version()), (0, 0));
        let mut file = File::create(&path).unwrap();
        let step = |number: u32| format!("{{\"event\":\"step\",\"step\":{number}}}\n");
        file.write_all(step(1).as_bytes()).unwrap();
        file.write_all(b"no JSON at all\n{\"event\":\"val").unwrap();
        log.read_on();
        assert_eq!(log.lines(), [step(1).trim_end()]);
        assert!(log.samples().is_empty());
        file.write_all(
            b"idation\",\"samples\":[{\"source\":\"a\",\"reference\":\"b\",\"output\":\"c\"}]}\n",
        )
        .unwrap();
        log.read_on();
        log.read_on();
        assert_eq!(log.lines().len(), 2);
        let sample = Sample {
            source: "a".into(),
            reference: "b".into(),
        };
        assert_eq!(log.samples(), [sample]);
        // A continued run writes a new file with the lines that stay, which may be as long as the old one.
        let other = folder.path().join("other");
        let text: String = (1..20).map(step).collect();
        fs::write(&other, text).unwrap();
        fs::rename(&other, &path).unwrap();
        log.read_on();
        assert_eq!((log.lines().len(), log.version()), (19, 1));
    }
}

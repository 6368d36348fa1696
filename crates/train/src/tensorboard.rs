//! TensorBoard event files: the numbers of `metrics.jsonl`, for those who watch runs with TensorBoard.
//!
//! A file is a sequence of records (length, checksum, bytes, checksum), each a protobuf `Event`. Of that
//! format a few fields are needed, so they are written by hand and no protobuf compiler is; the tests
//! compare with what TensorBoard's own writer makes. Listens as an [`Observer`] beside another one, so
//! the trainer knows nothing of it: a file that cannot be written is a warning, never the end of a run.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::events::{Event, Observer, Started, StepReport, ValidationReport};

/// The folder of event files in a run's folder.
pub const FOLDER: &str = "tensorboard";

/// Passes every event on to another observer, and writes numbers into an event file.
pub struct TensorBoard<'a> {
    inner: &'a mut dyn Observer,
    /// Begun with the run.
    file: Option<EventFile<File>>,
    path: PathBuf,
    step: u64,
}

impl<'a> TensorBoard<'a> {
    /// Writes into `RUN/tensorboard` once training begins.
    pub fn new(run: &Path, inner: &'a mut dyn Observer) -> Self {
        let seconds = now() as u64;
        // The name must be new for each process, and hold `tfevents` to be found.
        let name = format!(
            "events.out.tfevents.{seconds:010}.attentive.{}",
            std::process::id()
        );
        Self {
            inner,
            file: None,
            path: run.join(FOLDER).join(name),
            step: 0,
        }
    }

    fn begin(&mut self, started: &Started) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = EventFile::begin(File::create(&self.path)?, now())?;
        self.step = started.first_step;
        // Steps after the checkpoint that a run continues from are about to come again.
        file.restart(now(), started.first_step + 1)?;
        self.file = Some(file);
        Ok(())
    }

    fn numbers(&mut self, numbers: &[(impl AsRef<str>, Option<f64>)]) -> io::Result<()> {
        let step = self.step;
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        for (tag, value) in numbers {
            if let Some(value) = value {
                file.scalar(now(), step, tag.as_ref(), *value as f32)?;
            }
        }
        file.flush()
    }

    fn logged(&mut self, report: &StepReport) -> io::Result<()> {
        self.numbers(&[
            ("loss/training", Some(report.loss)),
            ("learning_rate", Some(report.learning_rate)),
            ("gradient_norm", report.gradient_norm),
            ("tokens_per_second", Some(report.tokens_per_second)),
        ])
    }

    fn validated(&mut self, report: &ValidationReport) -> io::Result<()> {
        let metrics = report.metrics.iter().copied();
        let numbers: Vec<(String, Option<f64>)> = std::iter::once(("loss", report.loss))
            .chain(metrics)
            .map(|(name, value)| (format!("{name}/validation"), Some(value)))
            .collect();
        self.numbers(&numbers)
    }
}

impl Observer for TensorBoard<'_> {
    fn event(&mut self, event: &Event) {
        let written = match event {
            Event::Started(started) => self.begin(started),
            Event::Step(report) => {
                self.step = report.step;
                Ok(())
            }
            Event::Logged(report) => self.logged(report),
            Event::Validated(report) => self.validated(report),
            _ => Ok(()),
        };
        if let Err(error) = written {
            self.file = None;
            let path = self.path.display();
            let message = format!(
                "{path} cannot be written, so TensorBoard will see no more of this run: {error}"
            );
            self.inner.event(&Event::Warning(message));
        }
        self.inner.event(event);
    }
}

/// An event file that grows.
#[derive(Debug)]
pub struct EventFile<W> {
    out: W,
}

impl<W: Write> EventFile<W> {
    /// Begins a file with the version that every event file begins with.
    pub fn begin(out: W, time: f64) -> io::Result<Self> {
        let mut file = Self { out };
        let mut event = event(time, 0);
        bytes_field(&mut event, 3, b"brain.Event:2");
        file.record(&event)?;
        Ok(file)
    }

    /// Says that the run begins, or begins again, at this step: later ones seen before do not count.
    pub fn restart(&mut self, time: f64, step: u64) -> io::Result<()> {
        const START: u64 = 1;
        let mut log = Vec::new();
        number_field(&mut log, 1, START);
        let mut event = event(time, step);
        bytes_field(&mut event, 7, &log);
        self.record(&event)
    }

    /// One number of one step.
    pub fn scalar(&mut self, time: f64, step: u64, tag: &str, value: f32) -> io::Result<()> {
        let mut one = Vec::new();
        bytes_field(&mut one, 1, tag.as_bytes());
        key(&mut one, 2, 5);
        one.extend(value.to_le_bytes());
        let mut summary = Vec::new();
        bytes_field(&mut summary, 1, &one);
        let mut event = event(time, step);
        bytes_field(&mut event, 5, &summary);
        self.record(&event)
    }

    /// Hands everything to the system.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn record(&mut self, data: &[u8]) -> io::Result<()> {
        let length = (data.len() as u64).to_le_bytes();
        let mut record = Vec::with_capacity(data.len() + 16);
        record.extend(length);
        record.extend(checksum(&length).to_le_bytes());
        record.extend(data);
        record.extend(checksum(data).to_le_bytes());
        // At once, so that a reader never sees half a record for long.
        self.out.write_all(&record)
    }
}

fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

/// An `Event` with its time (field 1) and its step (field 2, left out if it is 0, as protobuf does).
fn event(time: f64, step: u64) -> Vec<u8> {
    let mut event = Vec::new();
    key(&mut event, 1, 1);
    event.extend(time.to_le_bytes());
    if step > 0 {
        number_field(&mut event, 2, step);
    }
    event
}

fn key(out: &mut Vec<u8>, field: u64, wire_type: u64) {
    varint(out, field << 3 | wire_type);
}

fn number_field(out: &mut Vec<u8>, field: u64, value: u64) {
    key(out, field, 0);
    varint(out, value);
}

fn bytes_field(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    key(out, field, 2);
    varint(out, bytes.len() as u64);
    out.extend(bytes);
}

/// Seven bits in a byte, the lowest first; the eighth says that more follow.
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// CRC-32C, turned and shifted so that a checksum of data that holds checksums is of use.
fn checksum(data: &[u8]) -> u32 {
    crc32c::crc32c(data)
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times and values that a float holds exactly, as `make_tensorboard.py` has them.
    #[test]
    fn records_are_those_of_tensorboards_own_writer() {
        let expected = include_bytes!("../tests/fixtures/tensorboard/events.out.tfevents.fixture");
        let mut file = EventFile::begin(Vec::new(), 1_700_000_000.5).unwrap();
        file.restart(1_700_000_000.75, 1).unwrap();
        file.scalar(1_700_000_001.0, 50, "loss/training", 7.125)
            .unwrap();
        file.scalar(1_700_000_002.25, 300, "learning_rate", 0.001_953_125)
            .unwrap();
        file.scalar(1_700_000_003.0, 4_000_000_000, "bleu/validation", -0.5)
            .unwrap();
        assert_eq!(file.out, expected);
    }

    struct Heard(Vec<String>);

    impl Observer for Heard {
        fn event(&mut self, event: &Event) {
            self.0.push(match event {
                Event::Warning(message) => message.clone(),
                _ => "event".to_owned(),
            });
        }
    }

    fn started() -> Event {
        Event::Started(Started {
            run: PathBuf::new(),
            continued_from: None,
            description: Vec::new(),
            parameters: 0,
            precision: Default::default(),
            batches: 0,
            padding: 0.0,
            total_steps: 0,
            first_step: 0,
        })
    }

    fn logged(step: u64) -> StepReport {
        StepReport {
            step,
            epoch: 0,
            examples: 0,
            tokens: 0,
            loss: 2.5,
            learning_rate: 1e-3,
            gradient_norm: None,
            tokens_per_second: 10.0,
            seconds: 1.0,
        }
    }

    #[test]
    fn what_is_logged_reaches_the_file_and_the_other_observer() {
        let folder = tempfile::tempdir().unwrap();
        let mut heard = Heard(Vec::new());
        let mut board = TensorBoard::new(folder.path(), &mut heard);
        let validated = Event::Validated(ValidationReport {
            epoch: 1,
            loss: 1.5,
            metrics: vec![("bleu", 30.0)],
            seconds: 1.0,
            improved: true,
            samples: Vec::new(),
        });
        for event in [
            started(),
            Event::Step(logged(7)),
            Event::Logged(logged(7)),
            validated,
        ] {
            board.event(&event);
        }
        let path = board.path.clone();
        assert_eq!(heard.0, ["event"; 4]);
        let bytes = fs::read(path).unwrap();
        let find = |text: &str| {
            bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        };
        assert!(find("loss/training") && find("learning_rate") && !find("gradient_norm"));
        assert!(find("loss/validation") && find("bleu/validation"));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_a_warning_and_training_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FOLDER), "in the way").unwrap();
        let mut heard = Heard(Vec::new());
        let mut board = TensorBoard::new(folder.path(), &mut heard);
        for event in [started(), Event::Logged(logged(7))] {
            board.event(&event);
        }
        assert_eq!(heard.0.len(), 3, "{:?}", heard.0);
        assert!(
            heard.0[0].contains("TensorBoard will see no more"),
            "{:?}",
            heard.0
        );
    }
}

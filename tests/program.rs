//! The real binary, run as a user runs it, for the tests beside this file.

#![allow(dead_code)] // Each of them uses a part of this.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// The binary with these arguments, standard input empty.
pub fn attentive<S: AsRef<str>>(arguments: &[S]) -> Ran {
    attentive_reading(arguments, b"")
}

/// The binary with these arguments and this on standard input.
pub fn attentive_reading<S: AsRef<str>>(arguments: &[S], input: &[u8]) -> Ran {
    let mut child = command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    // From a thread, because the program may answer before it has read everything.
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("the binary ends");
    writer.join().expect("the writer ends");
    let ran = Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
    assert!(!ran.stderr.contains('\x1b'), "colors in a pipe: {ran:?}");
    ran
}

/// The binary, not yet started.
pub fn command<S: AsRef<str>>(arguments: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_attentive"));
    command.args(arguments.iter().map(AsRef::as_ref));
    // Many tests run side by side, and models this small gain nothing from more threads.
    command.env("RAYON_NUM_THREADS", "1");
    // No models that whoever runs the tests has pulled.
    let no_models = concat!(env!("CARGO_TARGET_TMPDIR"), "/no-models");
    command.env("ATTENTIVE_MODELS_DIR", no_models);
    command
}

impl Ran {
    /// The output, of a command that must have succeeded.
    #[track_caller]
    pub fn good(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.stdout
    }

    /// Fails with this exit code and a message that has all these parts.
    #[track_caller]
    pub fn bad(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.stderr.contains("error: "), "{self:?}");
        for part in parts {
            assert!(
                self.stderr.contains(part),
                "{part:?} is not in: {}",
                self.stderr
            );
        }
    }
}

/// A folder that is removed when the test ends.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    /// The path of a name in the folder.
    pub fn path(&self, name: &str) -> String {
        let path = self.0.path().join(name);
        path.to_str()
            .expect("temporary folders have plain names")
            .to_owned()
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, content).expect("the folder can be written to");
        path
    }

    /// Writes a copy task of a few short lines as `NAME.src` and `NAME.tgt`.
    pub fn copy_task(&self, name: &str, lines: usize, seed: usize) {
        let (lines, seed, out) = (lines.to_string(), seed.to_string(), self.path(name));
        let arguments = [
            "data",
            "synthetic",
            "copy",
            "--lines",
            &lines,
            "--seed",
            &seed,
            "--out",
            &out,
            "--symbols",
            "8",
            "--min-length",
            "2",
            "--max-length",
            "5",
        ];
        attentive(&arguments).good();
    }

    /// Writes `recipe.toml`, a tiny model for `train.src` and `train.tgt` of this folder.
    pub fn recipe(&self) -> String {
        self.file("recipe.toml", TINY_RECIPE.replace("FOLDER", &self.path("")))
    }
}

/// Trains a run that has learnt to copy, for a whole file of tests, and returns its folder.
pub fn copying_run(name: &str) -> String {
    let data = Folder::new();
    data.copy_task("train", 2000, 1);
    let run = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&run);
    let run = run.to_str().expect("a plain name").to_owned();
    attentive(&["train", &data.recipe(), "--out", &run]).good();
    run
}

/// The newest checkpoint of a run.
pub fn newest_checkpoint(run: &Path) -> PathBuf {
    let entries = fs::read_dir(run.join("checkpoints")).expect("a run has checkpoints");
    let paths = entries.map(|entry| entry.expect("readable").path());
    paths.max().expect("at least one checkpoint")
}

/// Learns to copy two to five letters in some seconds.
const TINY_RECIPE: &str = r#"
[data]
dir = "FOLDER"
src = "train.src"
tgt = "train.tgt"
max_length = 100

[tokenizer]
kind = "word"
vocab_size = 0
min_frequency = 1

[model]
d_model = 32
d_ff = 64
heads = 2
encoder_layers = 1
decoder_layers = 1
dropout = 0.0

[training]
epochs = 1000
max_steps = 200
batch_tokens = 256
log_every = 10

[schedule]
kind = "constant"
learning_rate = 5e-3
warmup = 20

[validation]
bleu = false
samples = 2
best_by = "loss"
"#;

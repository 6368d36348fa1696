//! Ctrl-C in the middle of training loses nothing: the same command goes on, and ends with the same
//! model, bit for bit, as if nobody had interrupted it.
#![cfg(unix)]

mod program;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use program::{Folder, attentive, command};

/// Dropout, accumulation and an average of the weights: their states have to survive too.
const SETTINGS: [&str; 5] = [
    "training.max_steps=100",
    "training.log_every=2",
    "model.dropout=0.1",
    "training.accumulate=2",
    "training.ema_decay=0.9",
];

/// Starts training, sends the signal after the first line of the log, returns the code and the rest.
fn train_and_send(signal: &str, arguments: &[String]) -> (i32, String) {
    let mut child = command(arguments)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("tok/s") {
        line.clear();
        let length = stderr.read_line(&mut line).expect("readable");
        assert!(
            length > 0,
            "training ended before the first line of its log"
        );
    }
    let sent = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("readable");
    (child.wait().expect("it ends").code().unwrap_or(-1), rest)
}

#[test]
fn an_interrupted_run_continues_and_ends_as_if_nothing_had_happened() {
    let folder = Folder::new();
    folder.copy_task("train", 4000, 1);
    let recipe = folder.recipe();
    let train = |run: &str| {
        let mut arguments = vec!["train".to_owned(), recipe.clone()];
        arguments.extend(["--out".to_owned(), run.to_owned()]);
        for setting in SETTINGS {
            arguments.extend(["--set".to_owned(), setting.to_owned()]);
        }
        arguments
    };
    let whole = folder.path("whole");
    attentive(&train(&whole)).good();
    let weights = |run: &str| fs::read(format!("{run}/last/model.safetensors")).expect("saved");

    for (signal, name) in [("-INT", "int"), ("-TERM", "term")] {
        let run = folder.path(name);
        let (code, stderr) = train_and_send(signal, &train(&run));
        assert_eq!(code, 130, "{stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        for part in ["saving a checkpoint", "same command", "--out"] {
            assert!(stderr.contains(part), "{part:?} is not in: {stderr}");
        }
        // What was saved can be used at once ...
        assert_eq!(
            attentive(&["translate", "--model", &run, "a b"])
                .good()
                .lines()
                .count(),
            1
        );
        // ... and goes on to the end.
        let again = attentive(&train(&run));
        assert_eq!(again.code, 0, "{again:?}");
        assert!(again.stderr.contains("continuing from step"), "{again:?}");
        assert!(
            weights(&run) == weights(&whole),
            "the continued run ended elsewhere"
        );
    }
}

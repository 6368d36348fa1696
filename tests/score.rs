//! `attentive score` beside sacreBLEU 2.6.0's own command: the same arguments print the same text.
//!
//! `fixtures/score/make.py` ran sacreBLEU and kept what it printed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

#[test]
fn every_command_line_prints_what_sacrebleu_prints() {
    let expected = fs::read_to_string(folder().join("expected.json")).unwrap();
    let expected: Value = serde_json::from_str(&expected).unwrap();
    let own = format!(
        ",\n \"program\": \"attentive {}\"",
        env!("CARGO_PKG_VERSION")
    );
    for case in expected.as_array().unwrap() {
        let arguments = case["arguments"].as_str().unwrap();
        let output = score(arguments, case["stdin"].as_str());
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {message}");
        let found = String::from_utf8(output.stdout).unwrap().replace(&own, "");
        assert_eq!(found, case["stdout"].as_str().unwrap(), "{arguments}");
    }
}

#[test]
fn json_names_this_program_beside_the_signature() {
    let output = score("ref.txt -i a.txt", None);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        json["program"],
        concat!("attentive ", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(json["version"], "2.6.0");
}

#[test]
fn a_byte_order_mark_counts_as_text_with_a_warning() {
    for (arguments, stdin, name) in [
        ("ref.txt -i mark.txt", None, "\"mark.txt\""),
        ("mark.txt -i b.txt", None, "\"mark.txt\""),
        ("ref.txt", Some("mark.txt"), "standard input"),
    ] {
        let message = String::from_utf8(score(arguments, stdin).stderr).unwrap();
        let warning = format!("warning: {name} begins with a byte-order mark");
        assert!(message.contains(&warning), "{arguments}: {message}");
    }
    assert!(score("ref.txt -i a.txt", None).stderr.is_empty());
}

#[test]
fn a_sentencepiece_model_cuts_the_text_for_bleu() {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../text/tests/fixtures/sentencepiece/unigram.model.gz");
    let mut model = tempfile::NamedTempFile::new().unwrap();
    let mut bytes = flate2::read::GzDecoder::new(File::open(packed).unwrap());
    std::io::copy(&mut bytes, &mut model).unwrap();
    let file = model.path().display();
    let output = score(
        &format!("ref.txt -i a.txt -tok spm --spm-model {file}"),
        None,
    );
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["tok"], "spm");
    assert!(json["score"].as_f64().unwrap() > 0.0);
    for arguments in [
        "ref.txt -i a.txt -tok spm".to_string(),
        format!("ref.txt -i a.txt --spm-model {file}"),
    ] {
        let output = score(&arguments, None);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("--spm-model"),
            "{arguments}"
        );
    }
    let output = score("ref.txt -i a.txt -tok spm --spm-model ref.txt", None);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("ref.txt"));
}

#[test]
fn wrong_input_is_refused_with_a_reason() {
    let short = tempfile::NamedTempFile::new().unwrap();
    fs::write(short.path(), "one line\n").unwrap();
    let short = short.path().display();
    for (arguments, code, reason) in [
        (
            format!("ref.txt -i {short}"),
            1,
            "has 1 lines but 40 were expected",
        ),
        (
            format!("ref.txt {short} -i a.txt"),
            1,
            "has 1 lines but 40 were expected",
        ),
        ("ref.txt -i missing.txt".to_owned(), 1, "missing.txt"),
        ("missing.txt -i a.txt".to_owned(), 1, "missing.txt"),
        ("-i a.txt".to_owned(), 2, "REF"),
        (
            "ref.txt -i a.txt -tok moses".to_owned(),
            2,
            "expected one of: 13a, intl, zh, char, none",
        ),
        ("ref.txt -i a.txt -tok ja-mecab".to_owned(), 2, "MeCab"),
        ("ref.txt -i a.txt -m meteor".to_owned(), 2, "meteor"),
        ("ref.txt -i a.txt -pbs".to_owned(), 2, "two files or more"),
        ("ref.txt -i a.txt a.txt".to_owned(), 2, "given twice"),
        ("ref.txt -i a.txt b.txt -ci".to_owned(), 2, "--paired-bs"),
        ("ref.txt -i a.txt b.txt -sl".to_owned(), 2, "one system"),
        (
            "ref.txt -nr 2 -i a.txt".to_owned(),
            1,
            "tab-separated fields",
        ),
        ("ref.txt -i a.txt --seed x -ci".to_owned(), 1, "`seed` is x"),
    ] {
        let output = score(&arguments, None);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments}: {message}");
        assert!(message.contains(reason), "{arguments}: {message}");
        assert!(output.stdout.is_empty(), "{arguments}");
    }
}

#[test]
fn another_seed_draws_other_samples_and_says_so() {
    let usual = score("ref.txt -i a.txt -ci -cin 50 -f text", None);
    let other = score("ref.txt -i a.txt -ci -cin 50 -f text --seed 7", None);
    let other = String::from_utf8(other.stdout).unwrap();
    assert!(other.contains("|seed:7|"), "{other}");
    assert_ne!(String::from_utf8(usual.stdout).unwrap(), other);
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/score")
}

fn score(arguments: &str, stdin: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_attentive"));
    command.arg("-q").arg("score").args(arguments.split(' '));
    command
        .current_dir(folder())
        .env_remove("SACREBLEU_SEED")
        .env_remove("SACREBLEU_FORMAT");
    match stdin {
        Some(name) => command.stdin(File::open(folder().join(name)).unwrap()),
        None => command.stdin(Stdio::null()),
    };
    command.output().unwrap()
}

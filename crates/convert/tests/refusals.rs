//! What cannot be imported is refused by its name, and nothing is half-written.

use std::fs;
use std::path::{Path, PathBuf};

use attentive_convert::{ImportOptions, import};
use serde_json::{Value, json};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// A copy of a fixture whose `config.json` was changed.
fn changed(name: &str, key: &str, value: Value) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for entry in fs::read_dir(fixture(name)).expect("a fixture") {
        let path = entry.expect("a file").path();
        fs::copy(&path, folder.path().join(path.file_name().expect("a name"))).expect("copied");
    }
    let path = folder.path().join("config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&path).expect("read")).expect("JSON");
    config[key] = value;
    fs::write(path, config.to_string()).expect("written");
    folder
}

fn refusal(source: &Path) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("model");
    let error = import(source, &out, &ImportOptions::default()).expect_err("a refusal");
    let left: Vec<_> = fs::read_dir(folder.path()).expect("a folder").collect();
    assert!(left.is_empty(), "nothing is left behind: {left:?}");
    error.to_string()
}

#[test]
fn what_our_model_does_not_have_is_refused_by_its_name() {
    for (key, value, expected) in [
        (
            "activation_function",
            json!("tanh"),
            "`activation_function` \"tanh\"",
        ),
        ("model_type", json!("t5"), "`model_type` \"t5\""),
        (
            "decoder_ffn_dim",
            json!(32),
            "16 `encoder_ffn_dim` and 32 `decoder_ffn_dim`",
        ),
        ("d_model", json!("wide"), "no number `d_model`"),
        ("encoder_layers", json!(3), "model.encoder.layers.2."),
        ("eos_token_id", json!(100_000), "token 100000"),
    ] {
        let folder = changed("huggingface/marian-relu-separate", key, value);
        // The same key in the other file would win.
        let _ = fs::remove_file(folder.path().join("generation_config.json"));
        let message = refusal(folder.path());
        assert!(message.contains(expected), "{key}: {message}");
    }
}

#[test]
fn a_folder_of_something_else_says_what_is_known() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("notes.txt"), "nothing").expect("written");
    let message = refusal(folder.path());
    assert!(
        message.contains("it holds notes.txt") && message.contains("Marian"),
        "{message}"
    );
}

#[test]
fn a_place_that_is_taken_stays_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let mine = folder.path().join("mine.txt");
    fs::write(&mine, "keep me").expect("written");
    let error = import(
        &fixture("huggingface/marian"),
        folder.path(),
        &ImportOptions::default(),
    );
    assert!(
        error
            .expect_err("taken")
            .to_string()
            .contains("exists already")
    );
    assert_eq!(fs::read_to_string(mine).expect("still there"), "keep me");
}

#[test]
fn a_mapping_with_a_wrong_key_is_refused_with_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let mapping = folder.path().join("names.toml");
    fs::write(&mapping, "names = \"fairseq\"\nmodle = 1\n").expect("written");
    let options = ImportOptions {
        mapping: Some(mapping),
        ..ImportOptions::default()
    };
    let out = folder.path().join("model");
    let error = import(&fixture("huggingface/marian"), &out, &options).expect_err("a wrong key");
    let message = error.to_string();
    assert!(
        message.contains("names.toml") && message.contains("modle"),
        "{message}"
    );
    assert!(!out.exists());
}

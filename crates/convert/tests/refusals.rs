//! What cannot be imported is refused by its name, and nothing is half-written.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use attentive_convert::{ImportOptions, import};
use flate2::Compression;
use flate2::write::GzEncoder;
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

#[test]
fn more_layers_than_tensors_are_refused_before_their_names_are_made() {
    for (layers, expected) in [
        (2_000_000, "2000001 layers with 60 tensors"),
        (u64::MAX, "`model.encoder_layers` (18446744073709551615)"),
    ] {
        let folder = changed("huggingface/marian", "encoder_layers", json!(layers));
        let message = refusal(folder.path());
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn settings_of_an_absurd_size_are_refused_by_their_name() {
    for name in ["config.json", "generation_config.json"] {
        let folder = changed("huggingface/marian", "d_model", json!(8));
        let path = folder.path().join(name);
        let text = fs::read_to_string(&path).expect("read");
        // Spaces before the end change nothing but the size.
        let spaces = " ".repeat(17 << 20);
        fs::write(
            &path,
            text.trim_end().trim_end_matches('}').to_owned() + &spaces + "}",
        )
        .expect("written");
        let message = refusal(folder.path());
        assert!(message.contains(name), "{message}");
        assert!(message.contains("more than 16 MiB"), "{message}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mapping = folder.path().join("names.toml");
    fs::write(&mapping, "\n".repeat(17 << 20)).expect("written");
    let options = ImportOptions {
        mapping: Some(mapping),
        ..ImportOptions::default()
    };
    let out = folder.path().join("model");
    let error = import(&fixture("huggingface/marian"), &out, &options).expect_err("too large");
    let message = error.to_string();
    assert!(
        message.contains("names.toml") && message.contains("more than 16 MiB"),
        "{message}"
    );
}

#[test]
fn a_packed_vocabulary_that_unpacks_to_much_more_is_refused_and_never_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    for entry in fs::read_dir(fixture("marian/bergamot")).expect("a fixture") {
        let path = entry.expect("a file").path();
        fs::copy(&path, folder.path().join(path.file_name().expect("a name"))).expect("copied");
    }
    let plain = folder.path().join("vocab.enpt.spm");
    let mut bytes = fs::read(&plain).expect("read");
    fs::remove_file(&plain).expect("removed");
    // A field that no reader knows, of zeros: the file would be read without it, and without its end.
    let zeros = 300 << 20;
    bytes.extend([0x9a, 0x06]); // Field 99, of bytes.
    let mut length: usize = zeros;
    while length >= 128 {
        bytes.push(length as u8 | 128);
        length >>= 7;
    }
    bytes.push(length as u8);
    let file = fs::File::create(folder.path().join("vocab.enpt.spm.gz")).expect("created");
    let mut encoder = GzEncoder::new(file, Compression::fast());
    encoder.write_all(&bytes).expect("packed");
    let block = vec![0; 1 << 20];
    (0..zeros >> 20).for_each(|_| encoder.write_all(&block).expect("packed"));
    encoder.finish().expect("packed");
    let message = refusal(folder.path());
    assert!(message.contains("vocab.enpt.spm.gz"), "{message}");
    assert!(
        message.contains("what is packed in it would need"),
        "{message}"
    );
}

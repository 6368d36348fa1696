//! Model directories and training runs, whole and damaged.

use std::fs;
use std::path::Path;

use attentive_model::config::{Preset, TransformerConfig};
use attentive_model::directory::{EmbeddedModel, ModelDir, Tokenizers};
use attentive_model::fake_dir;
use attentive_runtime::cpu::Compute;
use attentive_runtime::{Translator, TranslatorOptions};
use attentive_text::{Tokenizer, TokenizerKind, TokenizerOptions};

fn tokenizer(words: &str) -> Tokenizer {
    let options = TokenizerOptions {
        kind: TokenizerKind::Word,
        vocab_size: 0,
        min_frequency: 1,
        lowercase: false,
    };
    Tokenizer::train(&options, &mut [words].into_iter()).expect("some words")
}

fn config(tokenizers: &Tokenizers) -> TransformerConfig {
    Preset::Tiny.config(tokenizers.src.vocab_size(), tokenizers.tgt.vocab_size())
}

fn save(dir: &Path, tokenizers: &Tokenizers) {
    let tensors = [("w", &[2][..], &[0.5, 1.5][..])];
    ModelDir::save(dir, &config(tokenizers), tokenizers, tensors).expect("a writable directory");
}

fn separate() -> Tokenizers {
    Tokenizers {
        src: tokenizer("ein Haus"),
        tgt: tokenizer("a house on a hill"),
    }
}

fn error(dir: &Path) -> String {
    ModelDir::open(dir).expect_err("not a model").to_string()
}

#[test]
fn what_was_saved_is_opened_again() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("new/model");
    let tokenizers = separate();
    save(&path, &tokenizers);
    let model = ModelDir::open(&path).expect("a model just saved");
    assert_eq!(model.path, path);
    assert_eq!(model.config, config(&tokenizers));
    assert_eq!(
        model.tokenizers.src.fingerprint(),
        tokenizers.src.fingerprint()
    );
    assert_eq!(
        model.tokenizers.tgt.fingerprint(),
        tokenizers.tgt.fingerprint()
    );
    assert!(!model.tokenizers.is_shared());
    let weights = model.weights().expect("weights just saved");
    assert_eq!(
        weights.tensor("w").expect("present"),
        (vec![2], vec![0.5, 1.5])
    );
}

#[test]
fn a_shared_tokenizer_is_one_file_and_saving_over_the_other_layout_leaves_no_doubt() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let shared = Tokenizers::shared(tokenizer("a b c"));
    for (tokenizers, files) in [(&separate(), 4), (&shared, 3), (&separate(), 4)] {
        save(dir.path(), tokenizers);
        assert_eq!(
            fs::read_dir(dir.path()).expect("a directory").count(),
            files
        );
        let opened = ModelDir::open(dir.path()).expect("a model just saved");
        assert_eq!(opened.tokenizers.is_shared(), tokenizers.is_shared());
    }
}

#[test]
fn a_sentencepiece_file_stays_one_in_a_model_directory() {
    let file = b"\x0a\x09\x0a\x05<unk>\x18\x02\x0a\x06\x0a\x04\xe2\x96\x81a";
    let sentence_piece = Tokenizer::from_bytes(file, "vocab.spm").expect("a small model");
    let dir = tempfile::tempdir().expect("a temporary directory");
    save(dir.path(), &Tokenizers::shared(tokenizer("a b c")));
    save(dir.path(), &Tokenizers::shared(sentence_piece.clone()));
    let saved = fs::read(dir.path().join("tokenizer.spm")).expect("just saved");
    assert_eq!(saved, file);
    assert!(!dir.path().join("tokenizer.json").exists());
    let opened = ModelDir::open(dir.path())
        .expect("a model just saved")
        .tokenizers;
    assert_eq!(opened.src.fingerprint(), sentence_piece.fingerprint());
    assert_eq!(opened.src.encode("a a b"), [4, 4, 3]);
    let mixed = Tokenizers {
        src: sentence_piece,
        tgt: tokenizer("a house"),
    };
    save(dir.path(), &mixed);
    let opened = ModelDir::open(dir.path())
        .expect("a model just saved")
        .tokenizers;
    let kinds = [TokenizerKind::SentencePiece, TokenizerKind::Word];
    assert_eq!([opened.src.kind(), opened.tgt.kind()], kinds);
}

#[test]
fn a_training_run_opens_its_best_model_and_else_its_last() {
    let run = tempfile::tempdir().expect("a temporary directory");
    let (best, last) = (Tokenizers::shared(tokenizer("a b c")), separate());
    save(&run.path().join("last"), &last);
    assert_eq!(
        ModelDir::open(run.path()).expect("last").path,
        run.path().join("last")
    );
    save(&run.path().join("best"), &best);
    let opened = ModelDir::open(run.path()).expect("best");
    assert_eq!(opened.path, run.path().join("best"));
    assert!(opened.tokenizers.is_shared());
}

#[cfg(unix)]
#[test]
fn links_to_checkpoints_are_followed_and_dangling_ones_reported() {
    let run = tempfile::tempdir().expect("a temporary directory");
    let checkpoint = run.path().join("checkpoints/step-000007");
    save(&checkpoint, &separate());
    save(&run.path().join("last"), &separate());
    std::os::unix::fs::symlink("checkpoints/step-000007", run.path().join("best"))
        .expect("links are possible");
    assert_eq!(
        ModelDir::open(run.path()).expect("best").path,
        run.path().join("best")
    );
    fs::remove_dir_all(checkpoint).expect("removable");
    assert!(error(run.path()).contains("its `best` points to nothing"));
}

#[test]
fn what_is_not_a_model_is_told_what_a_model_must_hold() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("file");
    fs::write(&file, "text").expect("writable");
    for (path, found) in [
        (
            dir.path().to_path_buf(),
            "it has neither config.json nor `best` nor `last`",
        ),
        (dir.path().join("nowhere"), "there is no such directory"),
        (file, "it is a file"),
    ] {
        let message = error(&path);
        assert!(message.contains(found), "{message}");
        assert!(message.contains(&path.display().to_string()), "{message}");
        assert!(
            message.contains("config.json, model.safetensors and tokenizer.json"),
            "{message}"
        );
    }
}

#[test]
fn each_missing_file_is_named() {
    for name in [
        "model.safetensors",
        "src.tokenizer.json",
        "tgt.tokenizer.json",
    ] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        save(dir.path(), &separate());
        fs::remove_file(dir.path().join(name)).expect("one of the files");
        assert!(
            error(dir.path()).contains(&format!("{name} is missing")),
            "{name}"
        );
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    save(dir.path(), &Tokenizers::shared(tokenizer("a")));
    fs::copy(
        dir.path().join("tokenizer.json"),
        dir.path().join("src.tokenizer.json"),
    )
    .expect("copyable");
    assert!(error(dir.path()).contains("it holds both tokenizer.json and"));
    fs::remove_file(dir.path().join("src.tokenizer.json")).expect("just copied");
    fs::remove_file(dir.path().join("tokenizer.json")).expect("just saved");
    assert!(error(dir.path()).contains("tokenizer.json is missing"));
}

#[test]
fn a_config_that_cannot_be_used_is_explained() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    save(dir.path(), &separate());
    let path = dir.path().join("config.json");
    let good = fs::read_to_string(&path).expect("just saved");
    for (from, to, expected) in [
        (
            "\"format\": 1",
            "\"format\": 2",
            "has format 2, but this program reads format 1",
        ),
        ("\"format\": 1,", "", "has format null"),
        (
            "\"heads\": 4",
            "\"heads\": 3",
            "`model.d_model` (128) must be divisible by `model.heads`",
        ),
        ("\"heads\": 4", "\"head\": 4", "unknown field `head`"),
        ("\"norm\": \"pre\",", "", "missing field `norm`"),
        (
            "\"norm\": \"pre\"",
            "\"norm\": \"mid\"",
            "unknown variant `mid`",
        ),
        ("\"norm\": \"pre\",", "\"norm\"", "line "),
        (
            "\"tgt_vocab\": 8",
            "\"tgt_vocab\": 9",
            "the target tokenizer of ",
        ),
    ] {
        assert!(good.contains(from), "{from} is not in {good}");
        fs::write(&path, good.replacen(from, to, 1)).expect("writable");
        let message = error(dir.path());
        assert!(message.contains(expected), "{to}: {message}");
        assert!(
            message.contains(&dir.path().display().to_string()),
            "{message}"
        );
    }
    fs::write(&path, "[]").expect("writable");
    assert!(error(dir.path()).contains("expected a JSON object"));
}

#[test]
fn a_damaged_tokenizer_is_named() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    save(dir.path(), &separate());
    fs::write(dir.path().join("tgt.tokenizer.json"), "{").expect("writable");
    assert!(error(dir.path()).contains("tgt.tokenizer.json"));
}

/// A fake model whose files are in memory, as a program holds them that brings its model along.
fn embedded() -> (tempfile::TempDir, EmbeddedModel) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    fake_dir::write(dir.path()).expect("written");
    let read = |name| -> &'static [u8] { fs::read(dir.path().join(name)).expect("there").leak() };
    let model = EmbeddedModel {
        name: "the built-in model x-y",
        config: read("config.json"),
        weights: read("model.safetensors"),
        tokenizer: read("tokenizer.json"),
        generation: None,
        shortlist: None,
    };
    (dir, model)
}

#[test]
fn a_model_in_memory_says_what_its_directory_says() {
    let (dir, model) = embedded();
    let opened = ModelDir::embedded(&model).expect("a sound model");
    assert_eq!(opened.weights_bytes().expect("known"), {
        let folder = ModelDir::open(dir.path()).expect("a model");
        folder.weights_bytes().expect("a file")
    });
    // Nothing of it may come from the folder.
    let lines = ["a b c", "", "z y"];
    let expected = Translator::open(dir.path())
        .expect("a model")
        .translate(&lines);
    drop(dir);
    let translator = Translator::of_model(opened, Compute::Auto, TranslatorOptions::default());
    assert_eq!(translator.expect("a model").translate(&lines), expected);
}

#[test]
fn errors_of_a_model_in_memory_have_its_name() {
    let (_dir, good) = embedded();
    let other = br#"{"format": 1, "words": ["a"]}"#;
    for (model, parts) in [
        (
            EmbeddedModel {
                config: b"{}",
                ..good
            },
            ["config.json", "format"],
        ),
        (
            EmbeddedModel {
                tokenizer: b"[",
                ..good
            },
            ["tokenizer.json", "JSON"],
        ),
        (
            EmbeddedModel {
                tokenizer: other,
                ..good
            },
            ["the built-in model x-y", "token"],
        ),
        (
            EmbeddedModel {
                weights: &good.weights[..100],
                ..good
            },
            ["model.safetensors", "damaged"],
        ),
    ] {
        let opened = ModelDir::embedded(&model).and_then(|dir| dir.weights());
        let message = opened.expect_err("a damaged model").to_string();
        for part in ["the built-in model x-y"].iter().chain(&parts) {
            assert!(message.contains(part), "{part} is not in: {message}");
        }
    }
}

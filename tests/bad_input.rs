//! What a new user does wrong: each time a clear message and the right exit code, never a panic
//! (`program` looks for those), never a lost checkpoint.

mod program;

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::Stdio;

use program::{Folder, Ran, attentive, attentive_reading, command, newest_checkpoint};

/// Trains for a moment with these two files as the corpus.
fn train_on(folder: &Folder, src: &[u8], tgt: &[u8], more: &[&str]) -> Ran {
    folder.file("train.src", src);
    folder.file("train.tgt", tgt);
    let (recipe, run) = (folder.recipe(), folder.path("run"));
    let mut arguments = vec![
        "train",
        &recipe,
        "--out",
        &run,
        "--set",
        "training.max_steps=4",
    ];
    arguments.extend(more);
    attentive(&arguments)
}

/// A run of a few steps, with a checkpoint every two.
fn small_run(folder: &Folder) -> String {
    let text = "a b c\nd e f g\nb a\nc d e\n".repeat(20);
    let settings = ["--set", "checkpoints.every_steps=2"];
    train_on(folder, text.as_bytes(), text.as_bytes(), &settings).good();
    folder.path("run")
}

#[cfg(not(feature = "mpi"))]
#[test]
fn a_program_without_mpi_refuses_to_be_one_of_several() {
    let folder = Folder::new();
    folder.file("train.src", b"a b\n");
    folder.file("train.tgt", b"a b\n");
    let (recipe, run) = (folder.recipe(), folder.path("run"));
    let variables = [("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_RANK", "1")];
    let mut train = command(&["train", &recipe, "--out", &run]);
    let output = train.envs(variables).output().expect("the binary runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("process 1 of 2"), "{stderr}");
    assert!(stderr.contains("--features mpi"), "{stderr}");
    assert!(!Path::new(&run).exists());
}

#[test]
fn a_missing_recipe_is_said_so() {
    let folder = Folder::new();
    let run = folder.path("run");
    attentive(&["train", "no-such-recipe.toml", "--out", &run]).bad(
        1,
        &["no-such-recipe.toml", "No such file", "attentive demo"],
    );
    assert!(
        !Path::new(&run).exists(),
        "a failed start leaves a folder behind"
    );
}

#[test]
fn a_recipe_that_lies_elsewhere_is_suggested() {
    let folder = Folder::new();
    fs::create_dir(folder.path("recipes")).expect("writable");
    folder.file("recipes/reverse.toml", "");
    let output = command(&["train", "reverse", "--out", "run"])
        .current_dir(folder.path(""))
        .output()
        .expect("the binary runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        message.contains("did you mean recipes/reverse.toml?"),
        "{message}"
    );
}

#[test]
fn missing_corpus_files_are_all_named() {
    let folder = Folder::new();
    let (recipe, run) = (folder.recipe(), folder.path("run"));
    attentive(&["train", &recipe, "--out", &run])
        .bad(1, &["train.src", "train.tgt", "--set data.dir"]);
}

#[test]
fn a_binary_file_is_not_a_corpus() {
    let binary: Vec<u8> = (0..=255).cycle().take(5000).collect();
    train_on(&Folder::new(), &binary, b"a\n", &[]).bad(1, &["train.src", "line 1", "NUL byte"]);
}

#[test]
fn unequal_line_counts_name_both_files() {
    train_on(&Folder::new(), b"a\nb\nc\n", b"a\nb\n", &[])
        .bad(1, &["train.src", "3 lines", "train.tgt", "has 2"]);
}

#[test]
fn invalid_utf8_names_file_line_and_byte() {
    train_on(&Folder::new(), b"a\nb\n", b"a\nna\xefve\n", &[])
        .bad(1, &["train.tgt", "line 2", "byte 3", "UTF-8"]);
}

#[test]
fn an_empty_corpus_is_refused() {
    train_on(&Folder::new(), b"", b"", &[]).bad(1, &["empty", "train.src"]);
    train_on(&Folder::new(), b"\n\n", b"a\nb\n", &[]).bad(1, &[]);
}

#[test]
fn a_typo_in_a_recipe_is_corrected() {
    let folder = Folder::new();
    let recipe = folder.file("typo.toml", "[model]\nheds = 4\n[trainign]\nepochs = 1\n");
    attentive(&["train", &recipe, "--out", &folder.path("run")]).bad(
        1,
        &[
            "typo.toml",
            "line 2",
            "`model.heds`",
            "did you mean `model.heads`?",
            "line 3",
            "training",
        ],
    );
}

#[test]
fn heads_that_do_not_divide_the_width_are_refused() {
    let text = b"a b\nb a\n";
    train_on(&Folder::new(), text, text, &["--set", "model.heads=7"]).bad(
        2, // The mistake stands on the command line.
        &[
            "--set model.heads=7",
            "`model.d_model` (32) must be divisible by `model.heads` (7)",
        ],
    );
    let folder = Folder::new();
    let recipe = folder.file(
        "seven.toml",
        "[data.synthetic]\n[model]\nd_model = 512\nheads = 7\n",
    );
    attentive(&["train", &recipe, "--out", &folder.path("run")]).bad(
        1,
        &[
            "seven.toml",
            "`model.d_model` (512) must be divisible by `model.heads` (7)",
        ],
    );
}

#[test]
fn a_wrong_setting_is_wrong_usage() {
    let text = b"a b\nb a\n";
    let set = |setting| train_on(&Folder::new(), text, text, &["--set", setting]);
    set("training.seed").bad(2, &["key=value"]);
    set("training.sed=2").bad(
        2,
        &["--set training.sed=2", "did you mean `training.seed`?"],
    );
    set("training.seed=many").bad(2, &["--set training.seed=many", "number"]);
}

#[test]
fn a_truncated_checkpoint_is_passed_over_with_a_warning() {
    let folder = Folder::new();
    let run = small_run(&folder);
    let newest = newest_checkpoint(Path::new(&run));
    let weights = newest.join("model.safetensors");
    let file = OpenOptions::new()
        .write(true)
        .open(&weights)
        .expect("there");
    file.set_len(100).expect("writable");
    drop(file);

    let last = format!("{run}/last");
    attentive(&["translate", "--model", &last, "a b"])
        .bad(1, &["model.safetensors", "damaged", "earlier checkpoint"]);

    let recipe = folder.path("recipe.toml");
    let settings = [
        "--set",
        "training.max_steps=4",
        "--set",
        "checkpoints.every_steps=2",
    ];
    let again = attentive(&[&["train", &recipe, "--out", &run], &settings[..]].concat());
    assert_eq!(again.code, 0, "{again:?}");
    for part in [
        "warning: ",
        "step-000004",
        "damaged",
        "continuing from step 2",
    ] {
        assert!(
            again.stderr.contains(part),
            "{part:?} is not in: {}",
            again.stderr
        );
    }
    attentive(&["translate", "--model", &last, "a b"]).good();
}

#[test]
fn a_run_without_an_intact_checkpoint_is_not_buried() {
    let folder = Folder::new();
    let run = small_run(&folder);
    for entry in fs::read_dir(format!("{run}/checkpoints")).expect("there") {
        fs::write(
            entry
                .expect("readable")
                .path()
                .join("optimizer.safetensors"),
            "",
        )
        .expect("writable");
    }
    let recipe = folder.path("recipe.toml");
    let settings = [
        "--set",
        "training.max_steps=4",
        "--set",
        "checkpoints.every_steps=2",
    ];
    attentive(&[&["train", &recipe, "--out", &run], &settings[..]].concat())
        .bad(1, &["no checkpoint", "intact", "optimizer.safetensors"]);
}

#[test]
fn a_changed_recipe_is_refused_with_the_difference() {
    let folder = Folder::new();
    let run = small_run(&folder);
    let recipe = folder.path("recipe.toml");
    attentive(&["train", &recipe, "--out", &run, "--set", "model.d_ff=128"])
        .bad(1, &["has changed", "model.d_ff", "64", "128"]);
}

#[test]
fn a_line_of_a_hundred_thousand_words_is_translated_in_pieces() {
    let folder = Folder::new();
    let run = small_run(&folder);
    let line = "a b c d ".repeat(25_000);
    let input = format!("a b\n{line}\nb a\n");
    let arguments = [
        "translate",
        "--model",
        &run,
        "--beam",
        "1",
        "--max-length",
        "20",
    ];
    let ran = attentive_reading(&arguments, input.as_bytes());
    assert!(!ran.stderr.contains("too long"), "{}", ran.stderr);
    assert_eq!(ran.good().lines().count(), 3);
}

#[test]
fn a_line_too_long_to_train_on_is_left_out_and_counted() {
    let text = format!("a b\n{}\nb a\n", "a ".repeat(100_000));
    let ran = train_on(&Folder::new(), text.as_bytes(), text.as_bytes(), &[]);
    assert!(
        ran.stderr.contains("1 left out as too long, first pair 2"),
        "{ran:?}"
    );
    ran.good();
}

#[test]
fn a_test_line_of_a_hundred_thousand_words_does_not_exhaust_the_memory() {
    let folder = Folder::new();
    let run = small_run(&folder);
    let text = format!("a b\n{}\nb a\n", "a ".repeat(100_000));
    let file = folder.file("test", text);
    let arguments = [
        "evaluate",
        "-m",
        &run,
        "--src",
        &file,
        "--ref",
        &file,
        "--max-length",
        "20",
    ];
    let ran = attentive(&arguments);
    assert!(ran.stderr.contains("1 pair is not in the loss"), "{ran:?}");
    ran.good();
}

#[test]
fn an_unknown_device_names_what_would_work() {
    let folder = Folder::new();
    let recipe = folder.recipe();
    attentive(&[
        "train",
        &recipe,
        "--out",
        &folder.path("run"),
        "--device",
        "abacus",
    ])
    .bad(2, &["abacus", "this build has cpu"]);
}

#[test]
fn what_is_no_model_is_said_to_be_none() {
    let folder = Folder::new();
    let file = folder.file("file.txt", "text");
    for command in [&["translate", "a", "--model"][..], &["info"]] {
        let of = |path: &str| attentive(&[command, &[path]].concat());
        of(&folder.path("nowhere")).bad(1, &["nowhere", "no such directory"]);
        of(&file).bad(1, &["file.txt", "it is a file"]);
        of(&folder.path("")).bad(1, &["config.json", "best"]);
    }
}

#[test]
fn a_folder_of_something_else_is_not_trained_into() {
    let folder = Folder::new();
    folder.copy_task("train", 10, 1);
    let recipe = folder.recipe();
    attentive(&["train", &recipe, "--out", &folder.path("")]).bad(1, &["not a training run"]);
}

#[test]
fn options_that_contradict_each_other_are_wrong_usage() {
    let folder = Folder::new();
    let run = small_run(&folder);
    let translate =
        |options: &[&str]| attentive(&[&["translate", "-m", &run, "a"], options].concat());
    translate(&["--beam", "2", "--n-best", "3"]).bad(2, &["n_best", "(3)", "beam size (2)"]);
    translate(&["--beam", "0"]).bad(2, &["--beam"]);
    translate(&["--sample", "--beam", "2"]).bad(2, &["--sample", "--beam"]);
    translate(&["--top-k", "2"]).bad(2, &["--sample"]);
    translate(&["--sample", "--temperature", "0"]).bad(2, &["temperature"]);
    translate(&["-i", "file"]).bad(2, &["--input"]);
    translate(&["--no-such-option"]).bad(2, &["--no-such-option"]);
}

#[test]
fn results_do_not_replace_folders_or_vanish_on_a_full_disk() {
    let folder = Folder::new();
    let run = small_run(&folder);
    let translate = |output: &str| attentive(&["translate", "-m", &run, "a b", "-o", output]);
    translate(&folder.path("")).bad(1, &["it is a folder"]);
    if Path::new("/dev/full").exists() {
        translate("/dev/full").bad(1, &["/dev/full", "No space left"]);
    }
    let file = folder.file("plain", "old");
    translate(&format!("{file}/inside")).bad(1, &["inside"]);
    assert_eq!(fs::read_to_string(file).expect("there"), "old");
}

#[test]
fn a_failed_translation_leaves_no_half_of_a_file() {
    let folder = Folder::new();
    let run = small_run(&folder);
    let input = folder.file("in", [&b"a b\n".repeat(1500)[..], b"\xff\n"].concat());
    let output = folder.path("out");
    attentive(&[
        "translate",
        "-m",
        &run,
        "-i",
        &input,
        "-o",
        &output,
        "--beam",
        "1",
    ])
    .bad(1, &["line 1501", "UTF-8"]);
    assert!(!Path::new(&output).exists());
}

#[test]
fn tokenizer_mistakes_are_explained() {
    let folder = Folder::new();
    let (text, out) = (folder.file("text", "a b c\n"), folder.path("out.json"));
    let train = |options: &[&str]| {
        attentive(&[&["tokenizer", "train", &text, "--out", &out], options].concat())
    };
    train(&["--vocab-size", "10"]).bad(2, &["--vocab-size", "260"]);
    train(&["--kind", "spaces"]).bad(2, &["spaces", "unigram"]);
    train(&["--kind", "word"]).bad(1, &["min_frequency"]);
    attentive(&["tokenizer", "train", "no-such-file", "--out", &out]).bad(1, &["no-such-file"]);
    assert!(!Path::new(&out).exists());
    attentive(&["tokenizer", "encode", "-t", &text]).bad(1, &["text", "not a tokenizer"]);
    train(&[
        "--kind",
        "word",
        "--min-frequency",
        "1",
        "--vocab-size",
        "0",
    ])
    .good();
    attentive_reading(&["tokenizer", "decode", "-t", &out], b"4\nx\n").bad(1, &["line 2", "\"x\""]);
}

#[test]
fn impossible_data_is_wrong_usage() {
    let folder = Folder::new();
    let make = |options: &[&str]| {
        let out = folder.path("data");
        attentive(&[&["data", "synthetic", "copy", "--out", &out], options].concat())
    };
    make(&["--min-length", "5", "--max-length", "4"]).bad(2, &["--min-length (5)"]);
    make(&["--symbols", "1"]).bad(2, &["--symbols (1)"]);
    make(&["--lines", "0"]).bad(2, &["--lines"]);
    let into_folder = ["data", "synthetic", "copy", "--out", &folder.path("")];
    attentive(&into_folder).bad(2, &["is a folder"]);
}

#[test]
fn unequal_test_sets_are_refused() {
    let folder = Folder::new();
    let run = small_run(&folder);
    let (src, tgt) = (folder.file("t.src", "a\nb\n"), folder.file("t.tgt", "a\n"));
    attentive(&["evaluate", "-m", &run, "--src", &src, "--ref", &tgt])
        .bad(1, &["t.src", "2 lines", "t.tgt"]);
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let mut child = command(&["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // Closed before anything is read, as `head -0` would.
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
}

#[test]
fn no_command_shows_the_help() {
    let ran = attentive::<&str>(&[]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("attentive demo"), "{ran:?}");
    attentive(&["tranlate"]).bad(2, &["translate"]);
}

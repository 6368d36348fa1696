//! Pictures made by the real binary: what they show is what the model did, whatever the sentence holds.

mod program;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use attentive_model::directory::ModelDir;
use attentive_runtime::cpu::{Compute, CpuModel};
use attentive_runtime::inspection::Inspect;
use program::{Folder, attentive, command};
use serde_json::Value;

/// A model that has seen a few lines, with a tokenizer that knows every string.
fn model(folder: &Folder) -> String {
    let text = "a b c\nd e f g\nb a\nc d e\n".repeat(20);
    folder.file("train.src", &text);
    folder.file("train.tgt", &text);
    let (recipe, run) = (folder.recipe(), folder.path("run"));
    let settings = [
        "training.max_steps=4",
        "tokenizer.kind=bpe",
        "tokenizer.vocab_size=264",
    ];
    let mut arguments = vec!["train", &recipe, "--out", &run, "--tensorboard"];
    for setting in settings {
        arguments.extend(["--set", setting]);
    }
    attentive(&arguments).good();
    run
}

fn drawn(model: &str, sentence: &str, more: &[&str]) -> String {
    let mut arguments = vec!["attention", "--model", model, sentence];
    arguments.extend(more);
    attentive(&arguments).good()
}

#[test]
fn the_json_holds_the_weights_of_the_forward_pass() {
    let folder = Folder::new();
    let run = model(&folder);
    let json = drawn(&run, "a b d", &["--target", "c a", "--format", "json"]);
    let json: Value = serde_json::from_str(&json).expect("valid JSON");

    let dir = ModelDir::open(&run).expect("a model");
    let (src, tgt) = (
        dir.tokenizers.src.encode("a b d"),
        dir.tokenizers.tgt.encode("c a"),
    );
    let model = CpuModel::open(&dir, Compute::F32).expect("a sound model");
    let inspection = model.inspect(&src, &tgt, 10);
    let stacks = [&inspection.encoder, &inspection.decoder, &inspection.cross];
    for ((part, kind), stack) in json["attention"]
        .as_array()
        .expect("a list")
        .iter()
        .zip(["encoder", "decoder", "cross"])
        .zip(stacks)
    {
        assert_eq!(part["kind"], kind);
        for (layer, expected) in part["layers"].as_array().expect("a list").iter().zip(stack) {
            let mut found = Vec::new();
            for row in layer["maps"]
                .as_array()
                .expect("a list")
                .iter()
                .flat_map(|map| map["weights"].as_array().expect("rows"))
            {
                let row: Vec<f32> = row
                    .as_array()
                    .expect("a row")
                    .iter()
                    .map(|weight| weight.as_f64().expect("a number") as f32)
                    .collect();
                assert!(
                    (row.iter().sum::<f32>() - 1.0).abs() < 1e-5,
                    "{kind}: {row:?}"
                );
                found.extend(row);
            }
            assert_eq!(found, expected.concat(), "{kind}");
        }
    }
    // As many tokens as were read, so no padding; the decoder never sees its future.
    assert_eq!(
        json["source"]["tokens"].as_array().map(Vec::len),
        Some(src.len() + 1)
    );
    assert_eq!(
        json["read"]["tokens"].as_array().map(Vec::len),
        Some(tgt.len() + 1)
    );
    for map in json["attention"][1]["layers"][0]["maps"]
        .as_array()
        .expect("a list")
    {
        for (query, row) in map["weights"].as_array().expect("rows").iter().enumerate() {
            let future = &row.as_array().expect("a row")[query + 1..];
            assert!(future.iter().all(|weight| weight == 0.0), "{future:?}");
        }
    }
    assert_eq!(json["written"]["text"], "c a");
    for (step, prediction) in json["steps"]
        .as_array()
        .expect("a list")
        .iter()
        .zip(&inspection.predictions)
    {
        assert_eq!(step["rank"], prediction.rank);
        let probability = step["probability"].as_f64().expect("a number") as f32;
        assert_eq!(probability, prediction.log_prob.exp());
    }
}

/// Quotes, markup, emoji, right-to-left text, a terminal's commands, 60 tokens and more.
const NASTY: &str = "He said \"<script>alert('x')</script>\" & 👍 שלום مرحبا \x1b[2J \u{202E}abc";

#[test]
fn nasty_sentences_are_drawn_safely_in_every_format() {
    let folder = Folder::new();
    let run = model(&folder);
    let forced = ["--target", NASTY];
    for more in [
        &[][..],
        &["--words"],
        &["--kind", "cross", "--layer", "1", "--head", "2"],
        &["--rollout"],
    ] {
        let with = |format: &str| -> String {
            let mut arguments = vec!["--format", format];
            arguments.extend(forced);
            arguments.extend(more);
            drawn(&run, NASTY, &arguments)
        };
        let svg = with("svg");
        assert!(
            !svg.contains("<script") && svg.contains("&lt;script&gt;"),
            "{svg}"
        );
        assert!(!svg.contains(['\x1b', '\u{202E}']));
        let html = with("html");
        assert_eq!(html.matches("<script").count(), 2, "our own scripts alone");
        let text = with("terminal");
        assert!(
            text.chars().all(|c| c == '\n' || !c.is_control()) && !text.contains('\u{202E}'),
            "{text:?}"
        );
        let json: Value = serde_json::from_str(&with("json")).expect("valid JSON");
        assert_eq!(json["source"]["text"], NASTY);
        assert!(json["source"]["tokens"].as_array().expect("tokens").len() > 60);
        let png = folder.path("nasty.png");
        let mut arguments = vec!["--out", &png];
        arguments.extend(forced);
        arguments.extend(more);
        drawn(&run, NASTY, &arguments);
        let bytes = fs::read(&png).expect("written");
        assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 5000);
    }
    let words: Value = serde_json::from_str(&drawn(&run, NASTY, &["--format", "json", "--words"]))
        .expect("valid JSON");
    let keys = words["attention"][0]["keys"].as_array().expect("a list");
    assert!(
        keys.iter().any(|word| word == "שלום") && keys.iter().any(|word| word == "👍"),
        "{keys:?}"
    );
}

#[test]
fn what_cannot_be_drawn_is_refused_with_what_could() {
    let folder = Folder::new();
    let run = model(&folder);
    let refused = |more: &[&str], code: i32, parts: &[&str]| {
        let mut arguments = vec!["attention", "--model", &run];
        arguments.extend(more);
        attentive(&arguments).bad(code, parts);
    };
    refused(&["a b", "--layer", "2"], 2, &["no layer 2", "1 to 1"]);
    refused(&["a b", "--head", "0"], 2, &["no head 0", "1 to 2"]);
    refused(&["", "--format", "svg"], 1, &["the sentence is empty"]);
    refused(&[" \u{a0}"], 1, &["the sentence is empty"]);
    refused(
        &["a b", "--out", "picture.gif"],
        2,
        &["picture.gif", "--format svg", "--format html"],
    );
    refused(&[&"a ".repeat(400)], 1, &["tokens", "at most 255"]);
    refused(&["a b", "--mean", "--rollout"], 2, &["cannot be used with"]);
    let plot = |arguments: &[&str], code: i32, parts: &[&str]| {
        let all = [&["plot"], arguments].concat();
        attentive(&all).bad(code, parts);
    };
    plot(
        &["training", "no-such-run"],
        1,
        &["no-such-run", "attentive train --out"],
    );
    plot(
        &["training", &folder.path("")],
        1,
        &["metrics.jsonl", "attentive train --out"],
    );
    plot(
        &["training", &folder.path("train.src")],
        1,
        &["train.src, line 1", "metrics.jsonl"],
    );
    plot(
        &["training", &run, "--watch", "--out", "x.svg"],
        2,
        &["--watch draws in the terminal"],
    );
    plot(&["smoothing", "--epsilon", "1.5"], 2, &["0 to below 1"]);
    plot(&["positions", "--dims", "900"], 2, &["0 to 127"]);
    plot(
        &["positions", "--length", "1000000"],
        2,
        &["at most 250000"],
    );
    plot(&["schedule", "--factor", "NaN"], 2, &["above 0"]);
    plot(&["schedule", "--curve", "512"], 2, &["512:4000"]);
}

#[test]
fn every_plot_comes_in_every_format() {
    let folder = Folder::new();
    folder.file("metrics.jsonl", HISTORY);
    let run = folder.path("");
    for plot in [
        &["positions"][..],
        &["schedule"],
        &["smoothing"],
        &["training", &run],
    ] {
        let svg = attentive(&[&["plot"], plot, &["--format", "svg"]].concat()).good();
        assert!(
            svg.starts_with("<svg") && svg.ends_with("</svg>\n"),
            "{plot:?}"
        );
        let text = attentive(&[&["plot"], plot].concat()).good();
        assert!(
            text.lines().count() > 15 && text.contains('│'),
            "{plot:?}: {text}"
        );
        let png = folder.path("plot.png");
        attentive(&[&["plot"], plot, &["--theme", "dark", "--out", &png]].concat()).good();
        assert!(fs::read(&png).expect("written").starts_with(b"\x89PNG"));
    }
}

const HISTORY: &str = "\
{\"event\":\"step\",\"step\":10,\"loss\":5.0,\"learning_rate\":0.001,\"tokens_per_second\":900.0,\"seconds\":1.0}
{\"event\":\"step\",\"step\":20,\"loss\":4.0,\"learning_rate\":0.002,\"tokens_per_second\":910.0,\"seconds\":2.0}
{\"event\":\"validation\",\"step\":20,\"loss\":4.2,\"perplexity\":66.0,\"bleu\":1.5,\"seconds\":2.5}
";

#[test]
fn a_watched_run_is_drawn_again_when_there_is_more() {
    let folder = Folder::new();
    let history = folder.file("metrics.jsonl", HISTORY);
    let mut child = command(&["plot", "training", &folder.path(""), "--watch"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut frame = || {
        lines
            .by_ref()
            .map_while(Result::ok)
            .find(|line| line.starts_with("Training: "))
    };
    assert!(frame().is_some());
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(history)
        .expect("writable");
    writeln!(
        file,
        "{{\"event\":\"step\",\"step\":30,\"loss\":3.0,\"seconds\":3.0}}"
    )
    .expect("writable");
    assert!(frame().is_some(), "the second picture never comes");
    child.kill().expect("it runs until it is stopped");
    child.wait().expect("it ends");
}

#[test]
fn training_writes_for_tensorboard_when_asked() {
    let folder = Folder::new();
    let run = model(&folder);
    let files: Vec<_> = fs::read_dir(Path::new(&run).join("tensorboard"))
        .expect("a folder")
        .collect();
    assert_eq!(files.len(), 1);
    let name = files[0].as_ref().expect("readable").file_name();
    assert!(
        name.to_string_lossy().starts_with("events.out.tfevents."),
        "{name:?}"
    );
    // The run goes on with the folder in it, and writes another file.
    let (recipe, more) = (
        folder.recipe(),
        [
            "training.max_steps=20",
            "tokenizer.kind=bpe",
            "tokenizer.vocab_size=264",
        ],
    );
    let mut arguments = vec!["train", &recipe, "--out", &run, "--tensorboard"];
    for setting in more {
        arguments.extend(["--set", setting]);
    }
    attentive(&arguments).good();
    let files = fs::read_dir(Path::new(&run).join("tensorboard")).expect("a folder");
    let bytes: Vec<u8> = files
        .flat_map(|file| fs::read(file.expect("readable").path()).expect("readable"))
        .collect();
    assert!(bytes.windows(13).any(|part| part == b"loss/training"));
}

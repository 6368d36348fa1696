//! The families beside the Transformer, with the real program: a GPT is trained, generates, is measured and shown; BERTs of
//! Hugging Face embed, fill and classify as transformers does; models of other families are refused.

mod program;

use std::path::{Path, PathBuf};

use program::{Folder, attentive, attentive_reading};
use serde_json::Value;

const RECIPE: &str = r#"
[data]
text = "verse.txt"
val_share = 0.1
[tokenizer]
kind = "characters"
vocab_size = 0
min_frequency = 1
[model]
family = "gpt"
preset = "tiny"
d_model = 16
d_ff = 32
heads = 2
layers = 1
context = 16
[training]
max_steps = 4
batch_size = 4
[schedule]
kind = "constant"
learning_rate = 0.01
"#;

/// A folder with the run of a small GPT.
fn gpt() -> (Folder, String) {
    let folder = Folder::new();
    folder.file(
        "verse.txt",
        "the rain in spain stays mainly in the plain,\n".repeat(20),
    );
    folder.file("recipe.toml", RECIPE);
    let (recipe, run) = (folder.path("recipe.toml"), folder.path("run"));
    let dir = format!("data.dir={}", folder.path(""));
    attentive(&["train", &recipe, "--out", &run, "--set", &dir]).good();
    (folder, run)
}

#[test]
fn a_gpt_is_trained_and_generates_by_its_seed() {
    let (_folder, run) = gpt();
    let write = |more: &[&str]| {
        let mut arguments = vec![
            "generate",
            "--model",
            &run,
            "the rain",
            "--max-tokens",
            "40",
        ];
        arguments.extend(more);
        attentive(&arguments).good()
    };
    // At most 40 tokens and the end of the line; the model may end the text before.
    let text = write(&["--seed", "3"]);
    let written = text.chars().count();
    assert!(
        text.starts_with("the rain") && (10..=49).contains(&written),
        "{text:?}"
    );
    assert_eq!(write(&["--seed", "3"]), text);
    assert_ne!(write(&["--seed", "4"]), text);
    assert_eq!(write(&["--seed", "3", "--stream"]), text);
    assert_eq!(
        write(&["--temperature", "0"]),
        write(&["--top-k", "1", "--seed", "9"])
    );
    let two = attentive_reading(&["generate", "--model", &run, "--json"], b"the\nrain\n").good();
    let prompts: Vec<Value> = two
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["prompt"].clone())
        .collect();
    assert_eq!(prompts, ["the", "rain"]);
    let from_dash = attentive_reading(&["generate", "--model", &run, "-"], b"the\n").good();
    assert!(from_dash.starts_with("the"));
}

#[test]
fn a_gpt_is_measured_shown_and_described() {
    let (folder, run) = gpt();
    let text = folder.path("verse.txt");
    let measured = attentive(&["evaluate", "--model", &run, "--text", &text, "--json"]).good();
    let measured: Value = serde_json::from_str(&measured).unwrap();
    let (loss, perplexity) = (measured["loss"].as_f64(), measured["perplexity"].as_f64());
    assert!((loss.unwrap().exp() - perplexity.unwrap()).abs() < 1e-6);
    assert_eq!(measured["tokens"], 45 * 20);
    attentive(&["attention", "--model", &run, "the rain"]).good();
    for format in ["svg", "html", "json"] {
        let picture = folder.path(&format!("picture.{format}"));
        attentive(&["attention", "--model", &run, "the rain", "--out", &picture]).good();
    }
    attentive(&["attention", "--model", &run, "the", "--kind", "cross"])
        .bad(2, &["no cross-attention", "decoder self-attention"]);
    let picture = folder.path("curves.svg");
    attentive(&["plot", "training", &run, "--out", &picture]).good();
    let info = attentive(&["info", &run]).good();
    for part in ["gpt", "context 16", "characters", "validation loss"] {
        assert!(info.contains(part), "{info}");
    }
}

#[test]
fn models_of_other_families_and_bad_prompts_are_refused() {
    let (folder, run) = gpt();
    attentive(&["translate", "--model", &run, "the"]).bad(
        1,
        &[
            "family `gpt`",
            "`transformer` is needed",
            "attentive generate",
        ],
    );
    attentive(&["generate", "--model", &run, ""]).bad(2, &["the prompt is empty"]);
    attentive(&["generate", "--model", &run, "a", "--temperature=-1"]).bad(2, &["temperature"]);
    attentive(&["generate", "--model", "nowhere", "a"]).bad(1, &["nowhere", "no such directory"]);
    attentive(&["evaluate", "--model", &run, "--src", "a", "--ref", "b"]).bad(2, &["--text"]);
    attentive(&["embed", "--model", &run, "a"]).bad(1, &["family `gpt`", "`bert` is needed"]);
    let long = attentive(&["generate", "--model", &run, &"the rain ".repeat(9)]);
    assert_eq!(long.code, 0);
    assert!(
        long.stderr.contains("81 tokens") && long.stderr.contains("reads the last"),
        "{}",
        long.stderr
    );
    let text = folder.path("verse.txt");
    attentive(&["generate", "--model", &text, "a"]).bad(1, &["it is a file"]);
}

fn bert(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/bert");
    path.join(name).display().to_string()
}

fn expected() -> Value {
    let path = PathBuf::from(bert("expected.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().expect("a list");
    list.iter()
        .map(|number| number.as_f64().expect("a number"))
        .collect()
}

fn close(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found - expected).abs() < 1e-4,
            "{what}: {found}, not {expected}"
        );
    }
}

#[test]
fn berts_of_hugging_face_embed_fill_and_classify_as_transformers_does() {
    let expected = expected();
    let folder = Folder::new();
    let model = folder.path("bert");
    attentive(&["import", &bert("pretraining"), "--out", &model]).good();
    for case in expected["texts"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let found = attentive(&["embed", "--model", &model, text, "--json"]).good();
        let found: Value = serde_json::from_str(&found).unwrap();
        close(&numbers(&found["vector"]), &numbers(&case["vector"]), text);
    }
    for case in expected["masked"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let found = attentive(&["fill", "--model", &model, text, "--json"]).good();
        let lines = found
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        for (found, expected) in lines.zip(case["tokens"].as_array().unwrap()) {
            for (found, expected) in found["tokens"]
                .as_array()
                .unwrap()
                .iter()
                .zip(expected.as_array().unwrap())
            {
                assert_eq!(found["token"], expected[0], "{text}");
                close(
                    &numbers(&Value::Array(vec![found["probability"].clone()])),
                    &numbers(&Value::Array(vec![expected[1].clone()])),
                    text,
                );
            }
        }
    }
    let model = folder.path("classifier");
    attentive(&["import", &bert("classification"), "--out", &model]).good();
    for case in expected["pairs"].as_array().unwrap() {
        let pair = format!(
            "{}\t{}",
            case["pair"][0].as_str().unwrap(),
            case["pair"][1].as_str().unwrap()
        );
        let found = attentive(&["classify", "--model", &model, &pair, "--json"]).good();
        let found: Value = serde_json::from_str(&found).unwrap();
        let found: Vec<f64> = ["negative", "positive", "neither"]
            .iter()
            .map(|label| found["probabilities"][label].as_f64().unwrap())
            .collect();
        close(&found, &numbers(&case["probabilities"]), &pair);
    }
}

#[test]
fn what_a_bert_cannot_do_is_said() {
    let folder = Folder::new();
    let [full, classifier] = ["pretraining", "classification"].map(|name| {
        let model = folder.path(name);
        attentive(&["import", &bert(name), "--out", &model]).good();
        model
    });
    attentive(&["fill", "--model", &full, "no hidden word"]).bad(2, &["[MASK]"]);
    attentive(&["fill", "--model", &classifier, "a [MASK]"])
        .bad(1, &["no masked-language-model head"]);
    attentive(&["classify", "--model", &full, "a"]).bad(1, &["no classifier"]);
    attentive(&["translate", "--model", &full, "a"])
        .bad(1, &["family `bert`", "`transformer` is needed"]);
    let long = attentive(&["embed", "--model", &full, &"the ".repeat(40)]);
    assert!(
        long.stderr.contains("10 tokens are left out"),
        "{}",
        long.stderr
    );
    let info = attentive(&["info", &classifier]).good();
    assert!(
        info.contains("bert") && info.contains("wordpiece"),
        "{info}"
    );
}

const BERT_RECIPE: &str = r#"
[tokenizer]
kind = "wordpiece"
vocab_size = 60
min_frequency = 1
lowercase = true
[model]
family = "bert"
preset = "tiny"
d_model = 16
d_ff = 32
heads = 2
layers = 2
max_positions = 16
[training]
max_steps = 4
batch_size = 4
[schedule]
kind = "constant"
learning_rate = 0.01
"#;

/// Trains with the recipe and these settings, in a folder that has text and labelled pairs.
fn trained_bert(folder: &Folder, run: &str, settings: &[&str]) -> String {
    folder.file("story.txt", "the dog barks.\nthe cat sleeps.\n".repeat(20));
    folder.file(
        "pairs.tsv",
        "same\ta\tb\nyes\tthe dog\tthe dog\nno\tthe dog\tthe cat\nyes\tthe cat\tthe cat\n",
    );
    folder.file("recipe.toml", BERT_RECIPE);
    let (recipe, run) = (folder.path("recipe.toml"), folder.path(run));
    let dir = format!("data.dir={}", folder.path(""));
    let mut arguments = vec!["train", &recipe, "--out", &run, "--set", &dir];
    for setting in settings {
        arguments.extend(["--set", setting]);
    }
    attentive(&arguments).good();
    run
}

const PAIRS: [&str; 5] = [
    "data.examples=pairs.tsv",
    "data.val_examples=pairs.tsv",
    "data.text_columns=[\"a\", \"b\"]",
    "data.label_column=same",
    "model.head=classification",
];

#[test]
fn a_bert_is_pre_trained_fine_tuned_measured_and_shown() {
    let folder = Folder::new();
    let settings = ["data.text=story.txt", "data.val_share=0.2"];
    let pretrained = trained_bert(&folder, "pretrained", &settings);
    let filled = attentive(&[
        "fill",
        "--model",
        &pretrained,
        "the [MASK] barks.",
        "--top",
        "2",
    ]);
    assert_eq!(filled.good().matches('%').count(), 2);
    let text = folder.path("story.txt");
    let measured = attentive(&[
        "evaluate",
        "--model",
        &pretrained,
        "--text",
        &text,
        "--json",
    ]);
    let measured: Value = serde_json::from_str(&measured.good()).unwrap();
    assert!(measured["next_sentence_accuracy"].is_number(), "{measured}");

    let start = format!("training.start_from={pretrained}");
    let tuned = trained_bert(&folder, "tuned", &[&PAIRS[..], &[&start]].concat());
    let class = attentive(&["classify", "--model", &tuned, "the dog\tthe cat"]).good();
    assert!(
        class.starts_with("yes\t") || class.starts_with("no\t"),
        "{class}"
    );
    let pairs = folder.path("pairs.tsv");
    // The columns are those of the recipe.
    let measured = attentive(&["evaluate", "--model", &tuned, "--examples", &pairs]).good();
    for part in ["examples    3", "accuracy", "F1", "of the class yes"] {
        assert!(measured.contains(part), "{measured}");
    }
    for format in ["svg", "html", "json"] {
        let picture = folder.path(&format!("picture.{format}"));
        attentive(&["attention", "--model", &tuned, "the dog", "--out", &picture]).good();
    }
    attentive(&["attention", "--model", &tuned, "the dog"]).good();
    let info = attentive(&["info", &tuned]).good();
    assert!(
        info.contains("classification") && info.contains("validation accuracy"),
        "{info}"
    );
    let picture = folder.path("curves.svg");
    attentive(&["plot", "training", &tuned, "--out", &picture]).good();

    attentive(&["translate", "--model", &tuned, "a"])
        .bad(1, &["family `bert`", "`transformer` is needed", "classify"]);
    attentive(&["evaluate", "--model", &tuned, "--src", "a", "--ref", "b"]).bad(2, &["--examples"]);
    attentive(&["evaluate", "--model", &pretrained, "--examples", &pairs])
        .bad(1, &["no classifier"]);
    attentive(&["evaluate", "--model", &tuned, "--text", &text]).bad(1, &["no hidden tokens"]);
    let unknown = folder.file("unknown.tsv", "same\ta\tb\nmaybe\tx\ty\n");
    attentive(&["evaluate", "--model", &tuned, "--examples", &unknown]).bad(
        1,
        &["unknown.tsv, line 2", "\"maybe\" is not one of no, yes"],
    );
    attentive(&[
        "evaluate",
        "--model",
        &tuned,
        "--examples",
        &pairs,
        "--label-column",
        "x",
    ])
    .bad(1, &["no column \"x\""]);
}

#[test]
fn tokens_that_leave_are_shown() {
    let folder = Folder::new();
    let settings = [
        "model.pruning=learned_thresholds",
        "pruning.initial_threshold=0.3",
    ];
    let run = trained_bert(&folder, "pruned", &[&PAIRS[..], &settings].concat());
    let show = |more: &[&str]| {
        let mut arguments = vec!["attention", "--model", &run, "the dog\tthe cat", "--pruned"];
        arguments.extend(more);
        attentive(&arguments)
    };
    let text = show(&[]).good();
    assert!(text.contains("layer 2") && text.contains('·'), "{text}");
    let picture = folder.path("pruned.svg");
    show(&["--out", &picture]).good();
    assert!(
        std::fs::read_to_string(&picture)
            .unwrap()
            .contains("<circle")
    );
    show(&["--format", "json"]).bad(2, &["terminal, svg or png"]);
    let pairs = folder.path("pairs.tsv");
    let measured = attentive(&["evaluate", "--model", &run, "--examples", &pairs]).good();
    assert!(measured.contains("operations"), "{measured}");
    let whole = trained_bert(&folder, "whole", &PAIRS);
    attentive(&["attention", "--model", &whole, "the dog", "--pruned"])
        .bad(1, &["`model.pruning`"]);
}

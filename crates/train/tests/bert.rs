//! A BERT learns, in pre-training and as a classifier; a run that was stopped and continued is bitwise equal to one that was
//! not; bad examples are refused with file, line and what to do.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use attentive_model::{
    Tokenizers,
    config::BertConfig,
    directory::{AnyModelDir, ModelDir},
};
use attentive_nn::models::bert::{Bert, text::Framed};
use attentive_text::tokenizer::MASK;
use attentive_train::{
    Recipe, Result, Session,
    events::{Event, Observer, Outcome, ValidationReport},
    train,
};
use burn::tensor::Device;

const RECIPE: &str = r#"
[tokenizer]
kind = "wordpiece"
vocab_size = 120
min_frequency = 1
lowercase = true
[model]
family = "bert"
preset = "tiny"
d_model = 32
d_ff = 64
heads = 2
layers = 2
max_positions = 24
[training]
seed = 5
epochs = 2000
batch_size = 16
clip_norm = 1.0
log_every = 1
precision = "f32"
[optimizer]
kind = "adamw"
[schedule]
kind = "constant"
learning_rate = 0.005
warmup = 20
[validation]
every_epochs = 0
samples = 1
[checkpoints]
keep_last = 50
"#;

const PRETRAINING: [&str; 5] = [
    "data.text=story.txt",
    "data.val_share=0.2",
    "model.head=pretraining",
    "model.dropout=0",
    "training.max_steps=500",
];

const CLASSIFICATION: [&str; 5] = [
    "data.examples=train.tsv",
    "data.val_examples=dev.tsv",
    "model.head=classification",
    "training.max_steps=80",
    "validation.every_steps=80",
];

const PRUNING: [&str; 4] = [
    "model.pruning=learned_thresholds",
    "pruning.initial_threshold=0.05",
    "pruning.temperature=0.02",
    "pruning.regularizer=0.3",
];

/// Keeps what was said, and stops the run after so many steps.
struct Watch<'a> {
    steps: u64,
    stop: &'a AtomicBool,
    validated: Option<ValidationReport>,
    warnings: Vec<String>,
}

impl Observer for Watch<'_> {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Step(report) => {
                let stops = report.step >= self.steps;
                self.stop.store(stops, Ordering::Relaxed);
            }
            Event::Validated(report) => self.validated = Some(report.clone()),
            Event::Warning(text) => self.warnings.push(text.clone()),
            _ => {}
        }
    }
}

fn recipe(folder: &Path, overrides: &[&[&str]]) -> Recipe {
    let mut all = vec![format!("data.dir={}", folder.display())];
    all.extend(overrides.concat().iter().map(|text| text.to_string()));
    Recipe::from_toml_str("test", RECIPE, &all).unwrap_or_else(|error| panic!("{error}"))
}

struct Ran {
    outcome: Result<Outcome>,
    validated: Option<ValidationReport>,
    warnings: Vec<String>,
}

fn run(recipe: &Recipe, out: &Path, steps: u64) -> Ran {
    let stop = AtomicBool::new(false);
    let mut watch = Watch {
        steps,
        stop: &stop,
        validated: None,
        warnings: Vec::new(),
    };
    let session = Session {
        recipe,
        out,
        device: Device::flex(),
        stop: &stop,
    };
    let outcome = train(session, &mut watch);
    Ran {
        outcome,
        validated: watch.validated,
        warnings: watch.warnings,
    }
}

/// A folder with documents, of which each is about one animal, and with reviews, which one word decides.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    let story = |(animal, sound, food): (&str, &str, &str)| {
        let document = format!(
            "the {animal} says {sound}.\nwe hear {sound} from the {animal}.\nthe {animal} eats {food}.\n\
             {food} is what the {animal} likes.\n\n"
        );
        document
    };
    let animals = [
        ("dog", "wuff", "meat"),
        ("cat", "miau", "fish"),
        ("cow", "muh", "grass"),
        ("hen", "gack", "corn"),
    ];
    write("story.txt", animals.map(story).concat().repeat(15));
    let reviews = |numbers: std::ops::Range<usize>| -> String {
        let one = |number: usize| {
            let (word, label) = [("fine", 1), ("dull", 0), ("great", 1), ("bad", 0)][number % 4];
            let noun = ["film", "story", "plot", "cast", "end"][number % 5];
            let other = ["music", "scene", "text"][number % 3];
            format!("the {noun} with its {other} is {word}\t{label}\n")
        };
        "sentence\tlabel\n".to_owned() + &numbers.map(one).collect::<String>()
    };
    write("train.tsv", reviews(0..120));
    write("dev.tsv", reviews(120..150));
    folder
}

fn open(out: &Path) -> (Bert, BertConfig, attentive_text::Tokenizer) {
    let opened = AnyModelDir::open(out).unwrap();
    let config: &BertConfig = opened.config_of().unwrap();
    let weights = ModelDir::weights_path(&opened.path);
    let model = Bert::load(config, &weights, &Device::flex()).unwrap();
    (model, config.clone(), opened.tokenizer().unwrap().clone())
}

#[test]
fn a_small_bert_learns_hidden_words_and_next_sentences_in_seconds() {
    let folder = folder();
    let out = folder.path().join("run");
    let ran = run(&recipe(folder.path(), &[&PRETRAINING]), &out, u64::MAX);
    assert_eq!(ran.outcome.unwrap(), Outcome::Finished);
    let validated = ran.validated.expect("a validation");
    let metric = |name: &str| {
        validated
            .metrics
            .iter()
            .find(|(it, _)| *it == name)
            .unwrap()
            .1
    };
    assert!(metric("masked_accuracy") > 0.65, "{:?}", validated.metrics);
    assert!(
        metric("next_sentence_accuracy") > 0.7,
        "{:?}",
        validated.metrics
    );
    let (model, config, tokenizer) = open(&out);
    let mask = tokenizer.id(MASK).unwrap();
    let text = tokenizer.encode("the hen says [MASK].");
    let text = Framed::new(&text, None, config.max_positions);
    let filled = model.fill(&text, mask).unwrap();
    let words = (0..).zip(&filled[0]);
    let best = words.max_by(|(_, a), (_, b)| a.total_cmp(b)).unwrap().0;
    let sounds = ["wuff", "miau", "muh", "gack"];
    assert!(
        sounds.contains(&&*tokenizer.label(best)),
        "{}",
        tokenizer.label(best)
    );
}

#[test]
fn a_small_bert_learns_to_classify_in_seconds() {
    let folder = folder();
    let out = folder.path().join("run");
    let ran = run(&recipe(folder.path(), &[&CLASSIFICATION]), &out, u64::MAX);
    assert_eq!(ran.outcome.unwrap(), Outcome::Finished);
    let validated = ran.validated.expect("a validation");
    assert_eq!(validated.metrics, [("accuracy", 1.0), ("f1", 1.0)]);
    let (model, config, tokenizer) = open(&out);
    assert_eq!(config.labels, ["0", "1"]);
    let texts = ["the music is great", "the music is dull"]
        .map(|text| Framed::new(&tokenizer.encode(text), None, config.max_positions));
    let classes = model.classify(&texts).unwrap();
    assert!(classes[0][1] > 0.9 && classes[1][0] > 0.9, "{classes:?}");
}

#[test]
fn a_classifier_learns_which_tokens_it_need_not_read() {
    let folder = folder();
    let first = folder.path().join("first");
    let whole = recipe(folder.path(), &[&CLASSIFICATION]);
    run(&whole, &first, u64::MAX).outcome.unwrap();
    let start = format!("training.start_from={}", first.display());
    let changes = [
        &*start,
        "pruning.soft_epochs=8",
        "training.max_steps=120",
        "validation.every_steps=120",
        "schedule.learning_rate=0.002",
    ];
    let out = folder.path().join("pruned");
    let ran = run(
        &recipe(folder.path(), &[&CLASSIFICATION, &PRUNING, &changes]),
        &out,
        u64::MAX,
    );
    ran.outcome.unwrap();
    let metrics = ran.validated.expect("a validation").metrics;
    let metric = |name: &str| metrics.iter().find(|(it, _)| *it == name).unwrap().1;
    assert_eq!(metric("accuracy"), 1.0);
    assert!(
        metric("kept") < 0.7 && metric("operations") < 0.75,
        "{metrics:?}"
    );
    let (model, _, tokenizer) = open(&out);
    let text = Framed::new(
        &tokenizer.encode("the film with its music is great"),
        None,
        24,
    );
    let left = &model.encode(std::slice::from_ref(&text)).layers;
    assert!(
        left[1][0].len() < text.tokens.len() && left[1][0][0] == 0,
        "{left:?}"
    );
}

#[test]
fn resumed_berts_match_uninterrupted_ones() {
    let folder = folder();
    let changes = [
        "training.max_steps=12",
        "model.dropout=0.2",
        "training.accumulate=2",
        "training.ema_decay=0.9",
        "training.epochs=4",
        "validation.every_steps=0",
    ];
    let bytes = |run: &Path| {
        ["model.safetensors", "optimizer.safetensors"]
            .map(|file| std::fs::read(run.join("last").join(file)).unwrap())
    };
    // The first two epochs are soft, the others hard.
    let pruning = [&CLASSIFICATION[..], &PRUNING, &["pruning.soft_epochs=2"]].concat();
    let tasks = [
        ("text", &PRETRAINING[..]),
        ("classes", &CLASSIFICATION[..]),
        ("pruning", &pruning[..]),
    ];
    for (name, task) in tasks {
        let recipe = recipe(folder.path(), &[task, &changes]);
        let whole = folder.path().join(format!("{name}-whole"));
        assert_eq!(
            run(&recipe, &whole, u64::MAX).outcome.unwrap(),
            Outcome::Finished
        );
        let pieces = folder.path().join(format!("{name}-pieces"));
        let mut stops = 0;
        for limit in (3..).step_by(3) {
            if run(&recipe, &pieces, limit).outcome.unwrap() == Outcome::Finished {
                break;
            }
            stops += 1;
        }
        assert!(stops >= 3, "the run was stopped only {stops} times");
        assert!(
            bytes(&whole) == bytes(&pieces),
            "{name}: the weights differ"
        );
    }
}

#[test]
fn fine_tuning_begins_with_the_encoder_and_the_vocabulary_of_a_pre_trained_model() {
    let folder = folder();
    let first = folder.path().join("first");
    let short = ["training.max_steps=3"];
    run(&recipe(folder.path(), &[&PRETRAINING, &short]), &first, 3)
        .outcome
        .unwrap();
    let start = format!("training.start_from={}", first.display());
    let tuned = folder.path().join("tuned");
    let changes = [
        &*start,
        "training.max_steps=1",
        "schedule.learning_rate=1e-9",
    ];
    let recipe_of = |changes: &[&str]| recipe(folder.path(), &[&CLASSIFICATION, changes]);
    run(&recipe_of(&changes), &tuned, 1).outcome.unwrap();
    let tokenizer = |run: &Path| {
        Tokenizers::load(run.join("last"))
            .unwrap()
            .tgt
            .fingerprint()
    };
    assert_eq!(tokenizer(&first), tokenizer(&tuned));
    let query = |run: &Path| -> Vec<f32> {
        let (model, ..) = open(run);
        let weight = model.layers[1].self_attention.query.weight.val();
        weight.into_data().iter::<f32>().collect()
    };
    for (a, b) in query(&first).iter().zip(query(&tuned)) {
        assert!((a - b).abs() < 1e-6, "{a} became {b}");
    }
    // A classifier goes on with its own labels.
    let start = format!("training.start_from={}", tuned.display());
    let more = folder.path().join("more");
    run(&recipe_of(&[&*start, "training.max_steps=1"]), &more, 1)
        .outcome
        .unwrap();
    let other = run(
        &recipe_of(&[&*start, "model.labels=[\"a\", \"b\"]"]),
        &folder.path().join("x"),
        1,
    );
    let message = other.outcome.unwrap_err().to_string();
    assert!(message.contains("knows the labels 0, 1"), "{message}");
    let other = run(
        &recipe_of(&[&*start, "model.layers=1"]),
        &folder.path().join("x"),
        1,
    );
    let message = other.outcome.unwrap_err().to_string();
    assert!(
        message.contains("`model.layers`: 2 in the model, 1 in the recipe"),
        "{message}"
    );
}

#[test]
fn a_vocabulary_file_takes_the_place_of_learning_one() {
    let folder = folder();
    let tokens = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nfilm\nis\nfine\n";
    std::fs::write(folder.path().join("vocab.txt"), tokens).unwrap();
    let out = folder.path().join("run");
    let changes = ["tokenizer.vocabulary=vocab.txt", "training.max_steps=1"];
    run(
        &recipe(folder.path(), &[&CLASSIFICATION, &changes]),
        &out,
        1,
    )
    .outcome
    .unwrap();
    let (_, config, tokenizer) = open(&out);
    assert_eq!((config.vocab, tokenizer.id("fine")), (9, Some(8)));
    std::fs::write(
        folder.path().join("vocab.txt"),
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n",
    )
    .unwrap();
    let out = folder.path().join("x");
    let message = run(
        &recipe(folder.path(), &[&CLASSIFICATION, &changes]),
        &out,
        1,
    );
    let message = message.outcome.unwrap_err().to_string();
    assert!(message.contains("no token [MASK]"), "{message}");
}

#[test]
fn bad_examples_are_refused_with_their_line() {
    let folder = folder();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let message = |changes: &[&str]| {
        let recipe = recipe(folder.path(), &[&CLASSIFICATION, changes]);
        run(&recipe, &folder.path().join("x"), 1)
            .outcome
            .unwrap_err()
            .to_string()
    };
    write("bad.tsv", "sentence\tlabel\nfine\t1\ndull\t\n");
    let missing = message(&["data.examples=bad.tsv"]);
    assert!(
        missing.contains("bad.tsv, line 3") && missing.contains("\"label\" is empty"),
        "{missing}"
    );
    write("bad.tsv", "sentence\tlabel\nfine\tmaybe\n");
    let unknown = message(&["data.val_examples=bad.tsv"]);
    assert!(
        unknown.contains("line 2: the label \"maybe\" is not one of 0, 1"),
        "{unknown}"
    );
    let column = message(&["data.label_column=quality"]);
    assert!(
        column.contains("no column \"quality\"") && column.contains("\"sentence\", \"label\""),
        "{column}"
    );
    write("bad.tsv", "sentence\tlabel\nfine\t1\n");
    let one = message(&["data.examples=bad.tsv"]);
    assert!(one.contains("1 different labels"), "{one}");
    assert!(message(&["data.examples=nowhere.tsv"]).contains("nowhere.tsv"));
    write("empty.txt", "\n\n");
    let changes = [
        &PRETRAINING[..],
        &["data.text=empty.txt", "training.max_steps=1"],
    ];
    let empty = run(
        &recipe(folder.path(), &changes),
        &folder.path().join("y"),
        1,
    );
    let empty = empty.outcome.unwrap_err().to_string();
    assert!(
        empty.contains("no text") || empty.contains("no sentences"),
        "{empty}"
    );
}

#[test]
fn texts_longer_than_the_model_reads_are_counted_and_said() {
    let folder = folder();
    let long = format!("sentence\tlabel\n{}\t1\nfine\t0\n", "fine ".repeat(60));
    std::fs::write(folder.path().join("long.tsv"), long).unwrap();
    let changes = [
        "data.examples=long.tsv",
        "training.max_steps=1",
        "validation.every_steps=0",
    ];
    let recipe = recipe(folder.path(), &[&CLASSIFICATION, &changes]);
    let ran = run(&recipe, &folder.path().join("run"), 1);
    ran.outcome.unwrap();
    let warning = ran.warnings.join("\n");
    assert!(
        warning.contains("1 of 2 training texts") && warning.contains("`model.max_positions`"),
        "{warning}"
    );
}

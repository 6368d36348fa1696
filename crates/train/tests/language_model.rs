//! A language model learns, a run that was stopped and continued is bitwise equal to one that was not, and bad input is
//! refused with what to do.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use attentive_model::{
    Tokenizers,
    config::GptConfig,
    directory::{AnyModelDir, ModelDir},
};
use attentive_nn::models::gpt::{Gpt, generation::Generator};
use attentive_train::{
    Recipe, Result, Session,
    events::{Event, Observer, Outcome, ValidationReport},
    train,
};
use burn::tensor::Device;

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
d_model = 32
d_ff = 64
heads = 2
layers = 2
context = 24
[training]
seed = 5
epochs = 200
max_steps = 400
batch_size = 16
clip_norm = 1.0
log_every = 1
precision = "f32"
[optimizer]
kind = "adamw"
beta2 = 0.99
[schedule]
kind = "constant"
learning_rate = 0.005
warmup = 20
[validation]
every_epochs = 0
every_steps = 400
samples = 1
[checkpoints]
keep_last = 50
"#;

const VERSE: &str =
    "the rain in spain stays mainly in the plain,\nand in hampshire hurricanes hardly happen.\n";

/// Stops the run after so many steps, and keeps what the last validation said.
struct Watch<'a> {
    steps: u64,
    stop: &'a AtomicBool,
    validated: Option<ValidationReport>,
}

impl Observer for Watch<'_> {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Step(report) => {
                let stops = report.step >= self.steps;
                self.stop.store(stops, Ordering::Relaxed);
            }
            Event::Validated(report) => self.validated = Some(report.clone()),
            _ => {}
        }
    }
}

fn recipe(folder: &Path, overrides: &[&str]) -> Recipe {
    let dir = format!("data.dir={}", folder.display());
    let overrides: Vec<String> = [dir.as_str()]
        .iter()
        .chain(overrides)
        .map(|text| text.to_string())
        .collect();
    Recipe::from_toml_str("test", RECIPE, &overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn run(recipe: &Recipe, out: &Path, steps: u64) -> (Result<Outcome>, Option<ValidationReport>) {
    let stop = AtomicBool::new(false);
    let mut watch = Watch {
        steps,
        stop: &stop,
        validated: None,
    };
    let session = Session {
        recipe,
        out,
        device: Device::flex(),
        stop: &stop,
    };
    let outcome = train(session, &mut watch);
    (outcome, watch.validated)
}

/// A folder with the verse, many times.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("verse.txt"), VERSE.repeat(40)).unwrap();
    folder
}

#[test]
fn a_small_gpt_learns_a_verse_by_heart_in_seconds() {
    let folder = folder();
    let out = folder.path().join("run");
    let recipe = recipe(folder.path(), &["model.context=48"]);
    let (outcome, validated) = run(&recipe, &out, u64::MAX);
    assert_eq!(outcome.unwrap(), Outcome::Finished);
    let validated = validated.expect("a validation");
    assert!(validated.loss < 0.4, "the loss is still {}", validated.loss);
    assert_eq!(validated.metrics, [("perplexity", validated.loss.exp())]);
    assert_eq!(validated.samples.len(), 1);

    let opened = AnyModelDir::open(&out).unwrap();
    let config: &GptConfig = opened.config_of().unwrap();
    let weights = ModelDir::weights_path(&opened.path);
    let model = Gpt::load(config, &weights, &Device::flex()).unwrap();
    let tokenizer = opened.tokenizer().unwrap();
    // Prompt and continuation fit into the context, in which a character is always clear from those before it.
    let prompt = "the rain in spain stays ";
    let written: Vec<u32> = Generator::new(&model, tokenizer.encode(prompt), 20, None, 0).collect();
    assert_eq!(tokenizer.decode(&written), "mainly in the plain,");
}

#[test]
fn a_resumed_language_model_matches_an_uninterrupted_one() {
    let folder = folder();
    let changes = [
        "training.max_steps=14",
        "model.dropout=0.2",
        "training.accumulate=2",
        "training.ema_decay=0.9",
        "training.epochs=3",
        "training.batch_size=16",
    ];
    let recipe = recipe(folder.path(), &changes);
    let bytes = |run: &Path| {
        ["model.safetensors", "optimizer.safetensors"]
            .map(|file| std::fs::read(run.join("last").join(file)).unwrap())
    };
    let whole = folder.path().join("whole");
    assert_eq!(run(&recipe, &whole, u64::MAX).0.unwrap(), Outcome::Finished);
    let pieces = folder.path().join("pieces");
    let mut stops = 0;
    for limit in (3..).step_by(3) {
        if run(&recipe, &pieces, limit).0.unwrap() == Outcome::Finished {
            break;
        }
        stops += 1;
    }
    assert!(stops >= 3, "the run was stopped only {stops} times");
    assert!(bytes(&whole) == bytes(&pieces), "the weights differ");
}

#[test]
fn fine_tuning_begins_with_the_weights_and_the_vocabulary_of_a_model() {
    let folder = folder();
    let first = folder.path().join("first");
    run(&recipe(folder.path(), &["training.max_steps=3"]), &first, 3)
        .0
        .unwrap();
    let start = format!("training.start_from={}", first.display());
    let tuned = folder.path().join("tuned");
    let changes = [&*start, "training.max_steps=1"];
    run(&recipe(folder.path(), &changes), &tuned, 1).0.unwrap();
    let tokenizer = |run: &Path| {
        Tokenizers::load(run.join("last"))
            .unwrap()
            .tgt
            .fingerprint()
    };
    assert_eq!(tokenizer(&first), tokenizer(&tuned));
    let changes = [&*start, "model.layers=1"];
    let other = run(
        &recipe(folder.path(), &changes),
        &folder.path().join("x"),
        1,
    );
    let message = other.0.unwrap_err().to_string();
    assert!(
        message.contains("`model.layers`: 2 in the model, 1 in the recipe"),
        "{message}"
    );
}

#[test]
fn bad_text_is_refused_with_what_to_do() {
    let folder = folder();
    let message = |changes: &[&str]| {
        let (outcome, _) = run(&recipe(folder.path(), changes), &folder.path().join("x"), 1);
        outcome.unwrap_err().to_string()
    };
    let missing = message(&["data.text=nowhere.txt"]);
    assert!(missing.contains("nowhere.txt"), "{missing}");
    std::fs::write(folder.path().join("short.txt"), "too short\n").unwrap();
    let short = message(&["data.text=short.txt", "data.val_share=0"]);
    assert!(
        short.contains("has 11 tokens") && short.contains("`model.context`"),
        "{short}"
    );
    std::fs::write(folder.path().join("empty.txt"), "").unwrap();
    let empty = message(&["data.text=empty.txt"]);
    assert!(empty.contains("no text"), "{empty}");
    assert!(
        !folder
            .path()
            .join("x/checkpoints")
            .join("step-000001")
            .exists()
    );
}

//! A run that was stopped and continued is bitwise equal to one that was not, wherever it stopped.

use std::{path::Path, sync::atomic::AtomicBool};

use attentive_model::{config::ModelConfig as _, directory::ModelDir};
use attentive_nn::{models::transformer::Transformer, ops::Precision, parameters};
use attentive_train::{
    Recipe, Session, TrainError, evaluation,
    events::{Event, Observer, Outcome, StepReport},
    run::{checkpoint, state::TrainState},
    train,
};
use burn::tensor::Device;

const RECIPE: &str = r#"
[data]
synthetic = { task = "reverse", lines = 300, val_lines = 20, symbols = 8, min_length = 2, max_length = 6, seed = 3 }
max_length = 20
[tokenizer]
kind = "word"
min_frequency = 1
vocab_size = 0
[augmentation]
marks = 0.3
[model]
preset = "tiny"
d_model = 16
d_ff = 32
heads = 2
kv_heads = 2
encoder_layers = 1
decoder_layers = 1
dropout = 0.2
[training]
seed = 5
epochs = 3
batch_tokens = 96
accumulate = 3
r_drop = 2.0
r_drop_after = 1
clip_norm = 1.0
ema_decay = 0.9
log_every = 1
[schedule]
kind = "noam"
warmup = 20
[validation]
samples = 1
[checkpoints]
keep_last = 50
"#;

/// Asks to stop after so many steps, or never.
struct StopAfter<'a> {
    steps: u64,
    stop: &'a AtomicBool,
    warnings: Vec<String>,
    last: Option<StepReport>,
}

impl Observer for StopAfter<'_> {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Step(report) => {
                let stops = report.step >= self.steps;
                self.stop.store(stops, std::sync::atomic::Ordering::Relaxed);
                self.last = Some(report.clone());
            }
            Event::Warning(message) => self.warnings.push(message.clone()),
            _ => {}
        }
    }
}

fn recipe(overrides: &[&str]) -> Recipe {
    let overrides: Vec<String> = overrides.iter().map(|s| s.to_string()).collect();
    Recipe::from_toml_str("test", RECIPE, &overrides).unwrap()
}

fn run(recipe: &Recipe, out: &Path, stop_after: u64) -> (Result<Outcome, TrainError>, Vec<String>) {
    let (result, warnings, _) = observed(recipe, out, stop_after);
    (result, warnings)
}

/// How a run ended, its warnings, and what it said of its last step.
fn observed(
    recipe: &Recipe,
    out: &Path,
    stop_after: u64,
) -> (Result<Outcome, TrainError>, Vec<String>, Option<StepReport>) {
    let stop = AtomicBool::new(false);
    let mut observer = StopAfter {
        steps: stop_after,
        stop: &stop,
        warnings: Vec::new(),
        last: None,
    };
    let session = Session {
        recipe,
        out,
        device: Device::flex(),
        stop: &stop,
    };
    let result = train(session, &mut observer);
    (result, observer.warnings, observer.last)
}

/// Every weight of RUN/last and every number of its optimizer, as bytes.
fn bytes(run: &Path) -> Vec<Vec<u8>> {
    ["model.safetensors", "optimizer.safetensors"]
        .map(|file| std::fs::read(run.join("last").join(file)).unwrap())
        .to_vec()
}

#[test]
fn resumed_training_matches_uninterrupted() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = recipe(&[]);
    let whole = dir.path().join("whole");
    assert_eq!(run(&recipe, &whole, u64::MAX).0.unwrap(), Outcome::Finished);

    // Stopped after every second step: in the middle of epochs, continued each time.
    let pieces = dir.path().join("pieces");
    let mut stops = 0;
    for limit in (2..).step_by(2) {
        match run(&recipe, &pieces, limit).0.unwrap() {
            Outcome::Finished => break,
            outcome => assert_eq!(outcome, Outcome::Interrupted),
        }
        stops += 1;
    }
    assert!(stops > 5, "the run was stopped only {stops} times");
    assert_eq!(bytes(&whole), bytes(&pieces));

    // The history is the same too, but for times.
    let history = |run: &Path| -> Vec<(String, u64, String)> {
        let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
        text.lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .map(|v| {
                (
                    v["event"].to_string(),
                    v["step"].as_u64().unwrap(),
                    v["loss"].to_string(),
                )
            })
            .collect()
    };
    assert_eq!(history(&whole), history(&pieces));
}

/// What an earlier process did between two lines of the log is no speed of this one.
#[test]
fn a_continued_run_counts_only_its_own_tokens_as_its_speed() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = recipe(&[
        "training.accumulate=1",
        "training.log_every=20",
        "training.max_steps=20",
    ]);
    let last_report = |stop_after| observed(&recipe, dir.path(), stop_after).2.unwrap();
    let (stopped, ended) = (last_report(19), last_report(u64::MAX));
    assert_eq!((stopped.step, ended.step), (19, 20));
    let tokens = ended.tokens_per_second * (ended.seconds - stopped.seconds);
    let own = (ended.tokens - stopped.tokens) as f64;
    assert!(tokens < own * 5.0, "{tokens} tokens, not {own}");
}

/// An epoch that ends in the middle of an accumulation leaves gradients waiting in its checkpoint.
#[test]
fn a_run_stopped_within_an_accumulation_continues_with_its_gradients() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, pieces) = (dir.path().join("whole"), dir.path().join("pieces"));
    run(&recipe(&["training.accumulate=7"]), &whole, u64::MAX)
        .0
        .unwrap();
    run(
        &recipe(&["training.accumulate=7", "training.epochs=1"]),
        &pieces,
        u64::MAX,
    )
    .0
    .unwrap();
    let state = TrainState::load(&pieces.join("last")).unwrap();
    assert!(
        state.step > 0 && state.micro_step > 0,
        "the epoch must end within an accumulation: {state:?}"
    );
    run(&recipe(&["training.accumulate=7"]), &pieces, u64::MAX)
        .0
        .unwrap();
    assert_eq!(bytes(&whole), bytes(&pieces));
}

#[test]
fn a_changed_recipe_is_refused_with_the_difference_named() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    run(&recipe(&["training.max_steps=2"]), &out, u64::MAX)
        .0
        .unwrap();
    let before = bytes(&out);
    let error = run(
        &recipe(&["training.seed=6", "training.max_steps=2"]),
        &out,
        u64::MAX,
    )
    .0
    .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("`training.seed`: 5 in the run, 6 in the recipe"),
        "{error}"
    );
    let error = run(&recipe(&["data.synthetic.seed=4"]), &out, u64::MAX)
        .0
        .unwrap_err();
    assert!(error.to_string().contains("data.synthetic"), "{error}");
    assert_eq!(bytes(&out), before, "a refused run changes nothing");
}

/// The recipe in the run's folder may be lost or edited; the checkpoint knows its own.
#[test]
fn a_changed_recipe_is_refused_even_if_the_folder_has_lost_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let few = "training.max_steps=2";
    run(&recipe(&[few]), dir.path(), u64::MAX).0.unwrap();
    std::fs::remove_file(dir.path().join("recipe.toml")).unwrap();
    let other = recipe(&["training.seed=6", few]);
    let error = run(&other, dir.path(), u64::MAX).0.unwrap_err();
    assert!(error.to_string().contains("`training.seed`: 5"), "{error}");
    run(&recipe(&[few]), dir.path(), u64::MAX).0.unwrap();
}

#[test]
fn a_run_goes_on_in_the_precision_that_it_was_begun_in() {
    let dir = tempfile::tempdir().unwrap();
    let begin = |precision: &str, out: &Path| {
        let set = format!("training.precision={precision}");
        run(&recipe(&[&set]), out, 1).0.unwrap();
        TrainState::load(&out.join("last")).unwrap().precision
    };
    let go_on = |precision: &str, out: &Path| {
        let set = format!("training.precision={precision}");
        run(&recipe(&[&set]), out, 2).0
    };
    let (auto, f32) = (dir.path().join("auto"), dir.path().join("f32"));
    let best = if Precision::Bf16.available() {
        Precision::Bf16
    } else {
        Precision::F32
    };
    assert_eq!(begin("auto", &auto), Some(best));
    assert_eq!(begin("f32", &f32), Some(Precision::F32));
    go_on("auto", &auto).unwrap();
    go_on("f32", &f32).unwrap();
    if best == Precision::F32 {
        let error = go_on("bf16", &f32).unwrap_err();
        assert!(matches!(error, TrainError::Precision { .. }), "{error}");
        return;
    }
    go_on("bf16", &auto).unwrap();
    for (precision, out, remedy) in [
        ("auto", &f32, "--set training.precision=f32"),
        ("bf16", &f32, "--set training.precision=f32"),
        ("f32", &auto, "--set training.precision=bf16"),
    ] {
        let message = go_on(precision, out).unwrap_err().to_string();
        assert!(message.contains(remedy), "{message}");
    }
}

#[test]
fn a_run_may_begin_with_the_weights_and_vocabularies_of_another_model() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    run(&recipe(&[]), &first, 2).0.unwrap();
    let start = format!("training.start_from={}", first.display());
    let tuned = recipe(&[&start, "data.synthetic.symbols=6", "model.dropout=0.1"]);
    run(&tuned, &second, 0).0.unwrap();
    let weights = |run: &Path| std::fs::read(run.join("last/model.safetensors")).unwrap();
    let vocabulary = |run: &Path| ModelDir::open(run).unwrap().tokenizers.src.fingerprint();
    assert_eq!(vocabulary(&first), vocabulary(&second), "8 symbols, not 6");
    assert_ne!(weights(&first), weights(&second), "one step was made");
    // A step of the size 0 leaves the weights of the first model as they were.
    let third = dir.path().join("third");
    let still = recipe(&[&start, "schedule.factor=1e-30", "training.ema_decay=0.0"]);
    run(&still, &third, 0).0.unwrap();
    assert_eq!(weights(&first), weights(&third));

    // What the model's configuration leaves out, because it is usual, may not differ either.
    for (change, expected) in [
        (
            "model.d_ff=48",
            "`model.d_ff`: 32 in the model, 48 in the recipe",
        ),
        (
            "model.embedding_norm=layer_norm",
            "`model.embedding_norm`: the default in the model",
        ),
    ] {
        let other = recipe(&[&start, change]);
        let error = run(&other, &dir.path().join("other"), 0).0.unwrap_err();
        let message = error.to_string();
        assert!(message.contains(expected), "{message}");
    }
    let nowhere = recipe(&["training.start_from=no/such/model"]);
    let error = run(&nowhere, &dir.path().join("nowhere"), 0).0.unwrap_err();
    assert!(error.to_string().contains("no/such/model"), "{error}");
}

#[test]
fn a_run_may_begin_with_quantized_weights_and_with_a_vocabulary_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    run(&recipe(&[]), &path("first"), 2).0.unwrap();
    attentive_runtime::cpu::quantize(&path("first"), &path("int8")).unwrap();
    let still = ["schedule.factor=1e-30", "training.ema_decay=0.0"];
    let values = |run: &str, name: &str| {
        let file = ModelDir::weights_path(&path(run).join("last"));
        attentive_model::weights::Weights::open(file)
            .unwrap()
            .tensor(name)
            .unwrap()
    };
    let start = format!("training.start_from={}", path("int8").display());
    let unpacked = recipe(&[&start, still[0], still[1]]);
    run(&unpacked, &path("unpacked"), 0).0.unwrap();
    for tensor in ModelDir::open(path("first")).unwrap().config.tensors() {
        let (_, first) = values("first", &tensor.name);
        let largest = first
            .iter()
            .fold(0.0f32, |most, value| most.max(value.abs()));
        for (found, expected) in values("unpacked", &tensor.name).1.iter().zip(first) {
            let away = (found - expected).abs();
            assert!(
                away <= largest / 250.0,
                "{}: {found} and {expected}",
                tensor.name
            );
        }
    }

    // Fewer symbols are a smaller vocabulary, whose tokens the first model has all.
    let start = format!("training.start_from={}", path("first").display());
    let learned = "training.start_vocabulary=learned";
    let own = recipe(&[
        &start,
        learned,
        "data.synthetic.symbols=6",
        still[0],
        still[1],
    ]);
    run(&own, &path("own"), 0).0.unwrap();
    let tokenizer = |run: &str| ModelDir::open(path(run)).unwrap().tokenizers.tgt;
    let (old, new) = (tokenizer("first"), tokenizer("own"));
    assert_eq!((old.vocab_size(), new.vocab_size()), (12, 10));
    let name = "embeddings.target.weight";
    let (before, after) = (values("first", name).1, values("own", name).1);
    for id in 0..new.vocab_size() as u32 {
        let same = old.id(new.token(id).unwrap()).unwrap() as usize;
        assert_eq!(after[id as usize * 16..][..16], before[same * 16..][..16]);
    }
    let name = "encoder.layers.0.feed_forward.inner.weight";
    assert_eq!(values("own", name), values("first", name));
}

#[test]
fn a_model_of_other_sizes_may_have_the_vocabularies_of_another_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    run(&recipe(&[]), &path("first"), 1).0.unwrap();
    let from = format!("tokenizer.from_model={}", path("first").display());
    // Of fewer symbols another vocabulary would be learned.
    let small = [&from, "data.synthetic.symbols=6", "model.d_model=8"];
    run(&recipe(&small), &path("small"), 1).0.unwrap();
    let vocabulary = |run: &str| ModelDir::open(path(run)).unwrap().tokenizers;
    let (first, small) = (vocabulary("first"), vocabulary("small"));
    assert_eq!(first.src.fingerprint(), small.src.fingerprint());
    assert_eq!(first.tgt.fingerprint(), small.tgt.fingerprint());

    let other = if first.is_shared() { "false" } else { "true" };
    let sharing = [
        &from,
        &format!("tokenizer.shared={other}"),
        "model.tying=none",
    ];
    let error = run(&recipe(&sharing), &path("other"), 1).0.unwrap_err();
    assert!(error.to_string().contains("`tokenizer.shared`"), "{error}");
    let start = format!("training.start_from={}", path("first").display());
    let both = Recipe::from_toml_str("test", RECIPE, &[from.clone(), start]).unwrap_err();
    assert!(both.to_string().contains("means nothing"), "{both}");
    let nowhere = recipe(&["tokenizer.from_model=no/such/model"]);
    let error = run(&nowhere, &path("nowhere"), 1).0.unwrap_err();
    assert!(error.to_string().contains("no/such/model"), "{error}");
}

#[test]
fn layers_that_a_model_lacks_are_added_and_change_nothing_at_first() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let scores = |run: &str| {
        let model = attentive_runtime::Translator::open(path(run).join("last")).unwrap();
        let found = model.translate(&["a b c d", "d", "b a a b c"]);
        found.iter().map(|found| found.score).collect::<Vec<_>>()
    };
    run(&recipe(&["model.norm=pre"]), &path("first"), 9)
        .0
        .unwrap();
    let start = format!("training.start_from={}/last", path("first").display());
    let deeper = |norm: &str, layers: &str| {
        let still = ["schedule.factor=1e-30", "training.ema_decay=0.0"];
        recipe(&[&start, norm, layers, still[0], still[1]])
    };
    for layers in ["model.encoder_layers=3", "model.decoder_layers=2"] {
        let grown = layers.replace(['.', '='], "-");
        run(&deeper("model.norm=pre", layers), &path(&grown), 0)
            .0
            .unwrap();
        for (before, after) in scores("first").iter().zip(scores(&grown)) {
            assert!(
                (before - after).abs() < 1e-5,
                "{layers}: {before} and {after}"
            );
        }
    }
    // A model loses no layers, and a layer between norms always changes something.
    let start = |run: &str| format!("training.start_from={}", path(run).display());
    let shallower = recipe(&["model.norm=pre", &start("model-encoder_layers-3")]);
    let post = recipe(&["model.norm=post", "model.encoder_layers=3", &start("first")]);
    for refused in [shallower, post] {
        let error = run(&refused, &path("refused"), 0).0.unwrap_err();
        assert!(
            error.to_string().contains("`model.encoder_layers`"),
            "{error}"
        );
    }
}

#[test]
fn a_run_ends_where_its_learning_rate_comes_to_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let ending = recipe(&[
        "schedule.kind=trapezoid",
        "schedule.warmup=2",
        "schedule.decay=4",
        "schedule.total_steps=8",
    ]);
    let outcome = run(&ending, dir.path(), u64::MAX).0.unwrap();
    assert_eq!(outcome, Outcome::Finished);
    let last = dir.path().join("last").canonicalize().unwrap();
    assert!(
        last.ends_with("step-000007") || last.to_string_lossy().contains("step-000007-"),
        "{last:?}"
    );
}

#[test]
fn a_changed_corpus_is_refused_with_the_file_named() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("a.src", &"a b c\nc b a\n".repeat(20));
    write("a.tgt", &"c b a\na b c\n".repeat(20));
    let text = RECIPE.replace(
        RECIPE.lines().nth(2).unwrap(),
        &format!("dir = {:?}\nsrc = \"a.src\"\ntgt = \"a.tgt\"", dir.path()),
    );
    let recipe = Recipe::from_toml_str("test", &text, &["training.max_steps=2".into()]).unwrap();
    let out = dir.path().join("run");
    run(&recipe, &out, u64::MAX).0.unwrap();
    write("a.tgt", &"c b a\na b a\n".repeat(20));
    let error = run(&recipe, &out, u64::MAX).0.unwrap_err().to_string();
    assert!(
        error.contains("a.tgt") && error.contains("corpus"),
        "{error}"
    );
}

#[test]
fn a_damaged_checkpoint_is_reported_and_the_one_before_it_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = recipe(&[]);
    let out = dir.path().join("run");
    run(&recipe, &out, 4).0.unwrap();
    run(&recipe, &out, 8).0.unwrap();
    let last = std::fs::canonicalize(out.join("last")).unwrap();
    let file = last.join("optimizer.safetensors");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let (outcome, warnings) = run(&recipe, &out, u64::MAX);
    assert_eq!(outcome.unwrap(), Outcome::Finished);
    assert!(
        warnings[0].contains("optimizer.safetensors"),
        "{warnings:?}"
    );
    let uninterrupted = dir.path().join("whole");
    run(&recipe, &uninterrupted, u64::MAX).0.unwrap();
    assert_eq!(bytes(&uninterrupted), bytes(&out));
}

#[test]
fn checkpoint_averaging_is_the_mean_of_the_last_epochs() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = recipe(&[
        "checkpoints.average_last=2",
        "training.ema_decay=0.0",
        "training.label_smoothing=0.25",
    ]);
    let out = dir.path().join("run");
    run(&recipe, &out, u64::MAX).0.unwrap();
    let values = |dir: &Path| {
        let opened = ModelDir::open(dir).unwrap();
        let file = opened.path.join("model.safetensors");
        let model = Transformer::load(&opened.config, &file, &Device::flex()).unwrap();
        parameters::named(&model)
            .iter()
            .flat_map(|p| parameters::to_vec(&p.values))
            .collect::<Vec<_>>()
    };
    let mut checkpoints: Vec<_> = std::fs::read_dir(out.join("checkpoints"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    checkpoints.sort();
    let epochs: Vec<_> = checkpoints
        .iter()
        .filter(|path| {
            std::fs::read_to_string(path.join("manifest.json"))
                .unwrap()
                .to_lowercase()
                .contains("epoch")
        })
        .collect();
    let smoothing = |folder: &Path| evaluation::label_smoothing(folder).unwrap();
    assert_eq!(smoothing(&out.join("average")), 0.25);
    let [a, b] = [epochs[epochs.len() - 2], epochs[epochs.len() - 1]].map(|path| values(path));
    for (mean, (a, b)) in values(&out.join("average")).iter().zip(a.iter().zip(&b)) {
        assert!((mean - (a + b) / 2.0).abs() < 1e-6);
    }
}

#[test]
fn an_average_that_is_the_best_model_is_what_later_ones_are_compared_with() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    // Nothing is validated before the average, so the first average is the best model.
    let with_epochs = |epochs: &str| {
        let average = "checkpoints.average_last=2";
        recipe(&[epochs, average, "validation.every_epochs=0"])
    };
    let scores = || -> Vec<f64> {
        let text = std::fs::read_to_string(out.join("metrics.jsonl")).unwrap();
        text.lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .filter(|line| line["event"] == "average")
            .map(|line| line["bleu"].as_f64().unwrap())
            .collect()
    };
    let average = || std::fs::read(out.join("average/model.safetensors")).unwrap();
    let mut before = Vec::new();
    // The second time, there is nothing left to do.
    for epochs in [
        "training.epochs=2",
        "training.epochs=2",
        "training.epochs=3",
    ] {
        run(&with_epochs(epochs), &out, u64::MAX).0.unwrap();
        let state = TrainState::load(&out.join("last")).unwrap();
        let found = scores();
        assert_eq!(found.len(), epochs[16..].parse::<usize>().unwrap() - 1);
        let best = found.iter().copied().fold(f64::MIN, f64::max);
        assert_eq!(state.best_score, Some(best));
        assert!(state.best_is_average);
        let link = std::fs::canonicalize(out.join("best")).unwrap();
        assert!(link.ends_with("average"), "{link:?}");
        checkpoint::verify(&std::fs::canonicalize(out.join("last")).unwrap()).unwrap();
        // An average that is not better does not take the place of the best model.
        if found.last() != Some(&best) {
            assert!(average() == before);
        }
        before = average();
    }
}

#[test]
fn a_run_that_diverges_names_the_batch_stops_and_keeps_its_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let wild = recipe(&[
        "schedule.kind=constant",
        "schedule.learning_rate=1e30",
        "training.clip_norm=0.0",
        "training.accumulate=1",
        "checkpoints.every_steps=1",
    ]);
    let (result, warnings) = run(&wild, &out, u64::MAX);
    let error = result.unwrap_err();
    assert!(
        matches!(error, TrainError::NotFinite { times: 5, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("learning rate"), "{error}");
    assert_eq!(warnings.len(), 4);
    assert!(
        warnings[0].contains("the step was not applied") && warnings[0].contains("batch"),
        "{warnings:?}"
    );
    // The bad steps were not applied: the newest checkpoint is that of the last good step.
    let state = TrainState::load(&out.join("last")).unwrap();
    assert!(state.step >= 1 && state.bad_steps == 0);
    checkpoint::verify(&std::fs::canonicalize(out.join("last")).unwrap()).unwrap();
}

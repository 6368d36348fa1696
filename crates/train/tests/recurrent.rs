//! The recurrent translators as a family of the same trainer: they learn, and a run that was stopped continues bit by
//! bit.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use attentive_model::{
    config::RecurrentConfig,
    directory::{AnyModelDir, ModelDir},
};
use attentive_nn::models::recurrent::Recurrent;
use attentive_runtime::{
    inspection::Inspect,
    translator::{Translator, TranslatorOptions},
};
use attentive_train::{
    Recipe, Session,
    data::synthetic,
    events::{Event, Observer, Outcome},
    train,
};
use burn::tensor::Device;

const RECIPE: &str = r#"
[data.synthetic]
task = "reverse"
lines = 4000
val_lines = 100
symbols = 10
min_length = 3
max_length = 7
[tokenizer]
kind = "word"
vocab_size = 0
[model]
family = "recurrent"
context = "attention"
d_embedding = 32
d_hidden = 48
d_attention = 32
dropout = 0.0
[training]
max_steps = 400
batch_tokens = 512
clip_norm = 1.0
[schedule]
kind = "constant"
learning_rate = 5e-3
warmup = 50
[validation]
every_epochs = 0
"#;

/// Asks to stop after so many steps.
struct StopAfter<'a>(u64, &'a AtomicBool);

impl Observer for StopAfter<'_> {
    fn event(&mut self, event: &Event) {
        if let Event::Step(report) = event {
            self.1.store(report.step >= self.0, Ordering::Relaxed);
        }
    }
}

fn run(overrides: &[&str], out: &Path, stop_after: u64) -> Outcome {
    let overrides: Vec<String> = overrides.iter().map(|s| s.to_string()).collect();
    let recipe = Recipe::from_toml_str("test", RECIPE, &overrides).unwrap();
    let stop = &AtomicBool::new(false);
    let session = Session {
        recipe: &recipe,
        out,
        device: Device::flex(),
        stop,
    };
    rayon::scope(|_| train(session, &mut StopAfter(stop_after, stop))).unwrap()
}

#[test]
fn a_recurrent_translator_learns_to_reverse_and_its_attention_reads_from_the_end() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(run(&[], dir.path(), u64::MAX), Outcome::Finished);
    let opened = AnyModelDir::open(dir.path()).unwrap();
    let config = opened.config_of::<RecurrentConfig>().unwrap();
    let weights = ModelDir::weights_path(&opened.path);
    let model = Recurrent::load(config, &weights, &Device::flex()).unwrap();
    let tokenizers = opened.tokenizers.unwrap();
    let recipe = Recipe::from_toml_str("test", RECIPE, &[]).unwrap();
    let unseen = synthetic::generate(recipe.data.synthetic.as_ref().unwrap()).val;

    let line = tokenizers.src.encode("a b c d e");
    let target: Vec<u32> = line.iter().rev().copied().collect();
    let weights = &model.inspect(&line, &target, 1).cross[0][0];
    let on_diagonal: f32 = (0..5).map(|row| weights[row * 6 + 4 - row]).sum();
    // Evenly spread weights would give 5 / 6.
    assert!(on_diagonal > 2.5, "{on_diagonal} of 5");

    let translator = Translator::new(model, tokenizers, TranslatorOptions::default()).unwrap();
    let sources: Vec<&str> = unseen.iter().map(|(src, _)| src.as_str()).collect();
    let outputs = translator.translate(&sources);
    let right = outputs
        .iter()
        .zip(&unseen)
        .filter(|(output, (_, tgt))| output.text == *tgt)
        .count();
    assert!(right >= 95, "{right} of {} right", unseen.len());
}

#[test]
fn resumed_training_of_a_recurrent_translator_matches_uninterrupted() {
    for context in ["model.context=fixed", "model.context=attention"] {
        let dir = tempfile::tempdir().unwrap();
        let short = [context, "training.max_steps=12", "model.dropout=0.2"];
        let [whole, pieces] = ["whole", "pieces"].map(|name| dir.path().join(name));
        assert_eq!(run(&short, &whole, u64::MAX), Outcome::Finished);
        assert_eq!(run(&short, &pieces, 5), Outcome::Interrupted);
        assert_eq!(run(&short, &pieces, u64::MAX), Outcome::Finished);
        for file in ["model.safetensors", "optimizer.safetensors"] {
            let bytes = |run: &Path| std::fs::read(run.join("last").join(file)).unwrap();
            assert_eq!(bytes(&whole), bytes(&pieces), "{context}: {file}");
        }
    }
}

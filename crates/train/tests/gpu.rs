//! Training on a GPU, or with `wgpu` through Vulkan in software: the losses of the CPU. `tests/gpu/run` installs a software driver and runs this.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use attentive_nn::device;
use attentive_train::events::{Event, Observer};
use attentive_train::{Recipe, Session, train};

const RECIPE: &str = r#"
[data]
synthetic = { task = "reverse", lines = 2000, val_lines = 20, symbols = 8, min_length = 6, max_length = 6, seed = 3 }
max_length = 20
[tokenizer]
kind = "word"
min_frequency = 1
vocab_size = 0
[model]
preset = "tiny"
d_model = 32
d_ff = 64
heads = 2
kv_heads = 2
encoder_layers = 2
decoder_layers = 2
dropout = 0.1
[training]
seed = 5
max_steps = 50
batch_tokens = 256
accumulate = 2
clip_norm = 1.0
ema_decay = 0.9
log_every = 1
[schedule]
kind = "constant"
learning_rate = 3e-3
warmup = 10
[validation]
samples = 0
"#;

/// The loss of every step, and of the validation.
#[derive(Default)]
struct Losses(Vec<f64>);

impl Observer for Losses {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Logged(report) => self.0.push(report.loss),
            Event::Validated(report) => self.0.push(report.loss),
            _ => {}
        }
    }
}

fn losses(device: &str, out: &Path, overrides: &[&str]) -> Vec<f64> {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    let recipe = Recipe::from_toml_str("test", RECIPE, &overrides).unwrap();
    let stop = AtomicBool::new(false);
    let session = Session {
        recipe: &recipe,
        out,
        device: device::parse(device).unwrap(),
        stop: &stop,
    };
    let mut losses = Losses::default();
    train(session, &mut losses).unwrap();
    losses.0
}

/// Dropout, label smoothing, accumulation, clipping and the moving average are in the recipe.
#[test]
fn fifty_steps_on_the_gpu_have_the_losses_of_the_cpu() {
    let dir = tempfile::tempdir().unwrap();
    // A software driver compiles every kernel for every shape, which takes longer than the steps: so all lines have one
    // length, and the second run is short.
    let others = [
        "training.precision=f32",
        "training.max_steps=5",
        "training.r_drop=1.0",
        "optimizer.kind=muon",
        "model.kv_heads=1",
    ];
    for (steps, overrides) in [(50, &others[..1]), (5, &others[..])] {
        let name = overrides.join(",");
        let run = |device: &str| {
            losses(
                device,
                &dir.path().join(format!("{device} {name}")),
                overrides,
            )
        };
        let (cpu, gpu) = (run("cpu"), run("wgpu"));
        assert!(cpu.len() > steps, "{} steps", cpu.len());
        assert_eq!(cpu.len(), gpu.len());
        assert!(cpu[steps - 1] < cpu[0], "it learns: {cpu:?}");
        for (step, (cpu, gpu)) in cpu.iter().zip(&gpu).enumerate() {
            assert!(
                (cpu - gpu).abs() < 0.01 * cpu.abs(),
                "{name}, step {step}: {cpu} and {gpu}"
            );
        }
    }
}

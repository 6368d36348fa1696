//! Processes that share the batches of every step learn what one process learns.
//!
//! Threads stand in for processes: each has its own model, and bytes go through channels. Real processes, started by
//! `mpirun`, are in `tests/mpi`.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use attentive_train::{
    Recipe, Result, Session, TrainError,
    distributed::{
        Communicator, SingleProcess,
        threads::{Seat, seats},
    },
    events::{Event, Observer, Outcome},
    run::state::TrainState,
    train_together,
};
use burn::tensor::Device;
use serde_json::Value;

/// Epochs of an odd number of batches: with two batches to a step, every second step spans two epochs.
const RECIPE: &str = r#"
[data]
synthetic = { lines = 200, val_lines = 20, symbols = 8, min_length = 2, max_length = 6, seed = 3 }
max_length = 20
[tokenizer]
kind = "word"
min_frequency = 1
vocab_size = 0
[model]
preset = "tiny"
d_model = 16
d_ff = 32
heads = 2
encoder_layers = 1
decoder_layers = 1
dropout = 0.2
[training]
epochs = 3
batch_tokens = 96
accumulate = 2
r_drop = 1.0
r_drop_after = 1
clip_norm = 1.0
ema_decay = 0.9
log_every = 1
[schedule]
warmup = 20
[checkpoints]
keep_last = 50
average_last = 2
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

fn recipe(overrides: &[&str]) -> Recipe {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    Recipe::from_toml_str("test", RECIPE, &overrides).unwrap()
}

/// Trains in one process; `steps` is when it is asked to stop.
fn train_with(
    communicator: &dyn Communicator,
    recipe: &Recipe,
    out: &Path,
    steps: u64,
) -> Result<Outcome> {
    let stop = AtomicBool::new(false);
    let session = Session {
        recipe,
        out,
        device: Device::flex(),
        stop: &stop,
    };
    train_together(session, communicator, &mut StopAfter(steps, &stop))
}

/// Trains in so many processes, of which process 0 alone is asked to stop.
fn train(size: usize, recipe: &Recipe, out: &Path, steps: u64) -> Vec<Result<Outcome>> {
    if size == 1 {
        return vec![train_with(&SingleProcess, recipe, out, steps)];
    }
    std::thread::scope(|scope| {
        let start = |seat: Seat| {
            scope.spawn(move || {
                let thread = seat.take();
                let steps = if thread.is_root() { steps } else { u64::MAX };
                train_with(&thread, recipe, out, steps)
            })
        };
        let threads: Vec<_> = seats(size).into_iter().map(start).collect();
        threads.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

/// The weights, the moments and the history but for times.
fn outcome(run: &Path) -> (Vec<Vec<u8>>, Vec<Value>) {
    let files = [
        "last/model.safetensors",
        "last/optimizer.safetensors",
        "average/model.safetensors",
    ];
    let read = |file: &str| std::fs::read(run.join(file)).unwrap();
    (files.map(read).to_vec(), history(run))
}

fn history(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    text.lines()
        .map(|line| {
            let mut value: Value = serde_json::from_str(line).unwrap();
            let fields = value.as_object_mut().unwrap();
            fields.retain(|key, _| key != "seconds" && key != "tokens_per_second");
            value
        })
        .collect()
}

#[test]
fn two_processes_learn_bit_by_bit_what_one_learns_from_the_same_batches() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    let recipe = recipe(&[]);
    train(1, &recipe, &one, u64::MAX)[0].as_ref().unwrap();
    for ended in train(2, &recipe, &two, u64::MAX) {
        assert_eq!(ended.unwrap(), Outcome::Finished);
    }
    let epochs = history(&one);
    let epochs = epochs
        .iter()
        .filter(|line| line["event"] == "epoch")
        .count();
    assert_eq!(epochs, 3);
    assert!(outcome(&one) == outcome(&two), "the runs differ");
}

#[test]
fn a_run_of_two_processes_can_be_stopped_and_continued_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, pieces) = (dir.path().join("whole"), dir.path().join("pieces"));
    let recipe = recipe(&["checkpoints.average_last=2"]);
    train(1, &recipe, &whole, u64::MAX)[0].as_ref().unwrap();
    for (size, steps) in [(2, 2), (1, 5), (2, 9)] {
        for ended in train(size, &recipe, &pieces, steps) {
            assert_eq!(ended.unwrap(), Outcome::Interrupted);
        }
        // Several processes hear of it a round later.
        let step = TrainState::load(&pieces.join("last")).unwrap().step;
        assert!((steps..=steps + 1).contains(&step), "{step}");
    }
    train(2, &recipe, &pieces, u64::MAX).remove(1).unwrap();
    assert!(outcome(&whole) == outcome(&pieces), "the runs differ");
}

/// Every way of sharing the work, with four batches to a step.
const WAYS: [&[&str]; 4] = [
    &["distributed.reduction=exact"],
    &[
        "distributed.reduction=exact",
        "distributed.shard_optimizer=true",
    ],
    &["distributed.reduction=exact", "distributed.wire=bf16"],
    &[
        "distributed.reduction=exact",
        "distributed.wire=bf16",
        "distributed.shard_optimizer=true",
        "optimizer.kind=muon",
    ],
];

#[test]
fn in_the_exact_order_any_number_of_processes_learns_bit_by_bit_the_same() {
    for way in WAYS {
        let dir = tempfile::tempdir().unwrap();
        let recipe = recipe(&[way, &["training.accumulate=4"]].concat());
        let run = |size: usize| {
            let run = dir.path().join(size.to_string());
            for ended in train(size, &recipe, &run, u64::MAX) {
                assert_eq!(ended.unwrap(), Outcome::Finished);
            }
            outcome(&run)
        };
        let one = run(1);
        for size in [2, 3, 4] {
            assert!(run(size) == one, "{size} processes differ with {way:?}");
        }
    }
}

#[test]
fn recurrent_models_share_their_batches_too() {
    let dir = tempfile::tempdir().unwrap();
    let (start, end) = (
        RECIPE.find("[model]").unwrap(),
        RECIPE.find("[training]").unwrap(),
    );
    let model = "[model]\nfamily = \"recurrent\"\npreset = \"tiny\"\nd_embedding = 16\nd_hidden = 16\ndropout = 0.2\n";
    let text =
        format!("{}{model}{}", &RECIPE[..start], &RECIPE[end..]).replace("r_drop", "# r_drop");
    let recipe = Recipe::from_toml_str("test", &text, &[]).unwrap();
    let run = |size: usize| {
        let run = dir.path().join(size.to_string());
        for ended in train(size, &recipe, &run, u64::MAX) {
            assert_eq!(ended.unwrap(), Outcome::Finished);
        }
        outcome(&run)
    };
    assert!(run(1) == run(2), "the runs differ");
}

#[test]
fn a_run_continues_with_any_number_of_processes_bit_by_bit() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, pieces) = (dir.path().join("whole"), dir.path().join("pieces"));
    let recipe = recipe(&[WAYS[1], &["training.accumulate=4"]].concat());
    train(1, &recipe, &whole, u64::MAX)[0].as_ref().unwrap();
    for (size, steps) in [(4, 1), (1, 3), (2, 4)] {
        for ended in train(size, &recipe, &pieces, steps) {
            assert_eq!(ended.unwrap(), Outcome::Interrupted);
        }
    }
    for ended in train(3, &recipe, &pieces, u64::MAX) {
        assert_eq!(ended.unwrap(), Outcome::Finished);
    }
    assert!(outcome(&whole) == outcome(&pieces), "the runs differ");
}

#[test]
fn in_the_fast_order_a_run_is_the_same_every_time_stopped_or_not() {
    let dir = tempfile::tempdir().unwrap();
    for set in [
        "distributed.shard_optimizer=false",
        "distributed.shard_optimizer=true",
    ] {
        let recipe = recipe(&["training.accumulate=4", set]);
        let [once, again] = ["once", "again"].map(|name| dir.path().join(format!("{name} {set}")));
        for ended in train(2, &recipe, &once, u64::MAX) {
            ended.unwrap();
        }
        for ended in train(2, &recipe, &again, 3) {
            assert_eq!(ended.unwrap(), Outcome::Interrupted);
        }
        for ended in train(2, &recipe, &again, u64::MAX) {
            ended.unwrap();
        }
        assert!(
            outcome(&once) == outcome(&again),
            "the runs differ with {set}"
        );
    }
}

#[test]
fn gradients_in_half_the_bytes_learn_nearly_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let losses = |wire: &str| -> Vec<f64> {
        let run = dir.path().join(wire);
        let recipe = recipe(&[&format!("distributed.wire={wire}")]);
        for ended in train(2, &recipe, &run, u64::MAX) {
            ended.unwrap();
        }
        let steps = history(&run);
        let steps = steps.iter().filter(|line| line["event"] == "step");
        steps.map(|line| line["loss"].as_f64().unwrap()).collect()
    };
    let (full, half) = (losses("f32"), losses("bf16"));
    assert!(full != half);
    for (full, half) in full.iter().zip(half) {
        assert!((full - half).abs() < 0.02 * full, "{full} and {half}");
    }
}

#[test]
fn processes_with_other_recipes_and_other_data_are_refused_with_the_difference_named() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |set: &str| -> String {
        let recipes = [recipe(&[]), recipe(&[set])];
        let out = dir.path().join(set);
        let errors: Vec<String> = std::thread::scope(|scope| {
            let start = |(seat, recipe): (Seat, _)| {
                let out = &out;
                scope.spawn(move || {
                    let ended = train_with(&seat.take(), recipe, out, u64::MAX);
                    ended.unwrap_err().to_string()
                })
            };
            let seats = seats(2).into_iter().zip(&recipes);
            let threads: Vec<_> = seats.map(start).collect();
            threads.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(errors[0], errors[1]);
        errors[0].clone()
    };
    let message = refused("training.seed=2");
    assert!(message.contains("rank 1 of 2"), "{message}");
    assert!(
        message.contains("seed = 1 on rank 0, seed = 2 on"),
        "{message}"
    );
}

#[test]
fn three_processes_with_an_unequal_share_learn_the_same_but_for_rounding() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = recipe(&["training.accumulate=4"]);
    let losses = |size: usize| -> Vec<f64> {
        let run = dir.path().join(size.to_string());
        for ended in train(size, &recipe, &run, u64::MAX) {
            ended.unwrap();
        }
        let steps = history(&run);
        let steps = steps.iter().filter(|line| line["event"] == "step");
        steps.map(|line| line["loss"].as_f64().unwrap()).collect()
    };
    let (one, three) = (losses(1), losses(3));
    assert!(one.len() > 3 && one.len() == three.len());
    for (one, three) in one.iter().zip(three) {
        assert!((one - three).abs() < 1e-3 * one, "{one} and {three}");
    }
}

#[test]
fn more_processes_than_batches_in_a_step_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for ended in train(2, &recipe(&["training.accumulate=1"]), dir.path(), 1) {
        let error = ended.unwrap_err();
        assert!(matches!(error, TrainError::TooManyProcesses { .. }));
        assert!(error.to_string().contains("`training.accumulate` (1)"));
    }
}

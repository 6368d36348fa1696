//! Processes that share the batches of every step learn what one process learns.
//!
//! Threads stand in for processes: each has its own model, and they meet in a communicator that sums in the
//! order of the ranks.

use std::{
    path::Path,
    sync::{
        Barrier, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use attentive_train::{
    Recipe, Result, Session, TrainError,
    distributed::{Communicator, SingleProcess},
    events::{Event, Observer, Outcome},
    run::state::TrainState,
    task::translation::Translation,
    trainer,
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

/// Where the threads meet.
struct Meeting {
    barrier: Barrier,
    values: Mutex<Vec<Vec<f64>>>,
    bytes: Mutex<Vec<u8>>,
}

struct Thread<'a> {
    rank: usize,
    size: usize,
    meeting: &'a Meeting,
}

impl Thread<'_> {
    fn sum(&self, own: Vec<f64>) -> Vec<f64> {
        let length = own.len();
        self.meeting.values.lock().unwrap()[self.rank] = own;
        self.barrier();
        let all = self.meeting.values.lock().unwrap().clone();
        // Nobody may come with the next values before everybody has read these.
        self.barrier();
        assert!(all.iter().all(|values| values.len() == length));
        let sum = |index: usize| all.iter().map(|values| values[index]).sum();
        (0..length).map(sum).collect()
    }
}

impl Communicator for Thread<'_> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_reduce(&self, values: &mut [f32]) {
        // A sum of two in double precision, rounded once more, is their sum in single precision.
        let sums = self.sum(values.iter().map(|value| f64::from(*value)).collect());
        for (value, sum) in values.iter_mut().zip(sums) {
            *value = sum as f32;
        }
    }

    fn all_reduce_scalars(&self, values: &mut [f64]) {
        values.copy_from_slice(&self.sum(values.to_vec()));
    }

    fn broadcast(&self, bytes: &mut Vec<u8>) {
        if self.is_root() {
            *self.meeting.bytes.lock().unwrap() = bytes.clone();
        }
        self.barrier();
        *bytes = self.meeting.bytes.lock().unwrap().clone();
        self.barrier();
    }

    fn barrier(&self) {
        self.meeting.barrier.wait();
    }
}

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
    trainer::train::<Translation>(session, communicator, &mut StopAfter(steps, &stop))
}

/// Trains in so many processes, of which process 0 alone is asked to stop.
fn train(size: usize, recipe: &Recipe, out: &Path, steps: u64) -> Vec<Result<Outcome>> {
    if size == 1 {
        return vec![train_with(&SingleProcess, recipe, out, steps)];
    }
    let meeting = Meeting {
        barrier: Barrier::new(size),
        values: Mutex::new(vec![Vec::new(); size]),
        bytes: Mutex::default(),
    };
    std::thread::scope(|scope| {
        let start = |rank| {
            let meeting = &meeting;
            let steps = if rank == 0 { steps } else { u64::MAX };
            scope.spawn(move || {
                let thread = Thread {
                    rank,
                    size,
                    meeting,
                };
                train_with(&thread, recipe, out, steps)
            })
        };
        let threads: Vec<_> = (0..size).map(start).collect();
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
        assert_eq!(TrainState::load(&pieces.join("last")).unwrap().step, steps);
    }
    train(2, &recipe, &pieces, u64::MAX).remove(1).unwrap();
    assert!(outcome(&whole) == outcome(&pieces), "the runs differ");
}

#[test]
fn three_processes_with_an_unequal_share_learn_the_same_but_for_rounding() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = recipe(&["training.accumulate=4", "training.epochs=1"]);
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

//! Real processes that `mpirun` starts: the same bits as one process, ranks that die, ranks that do not belong together.
//!
//! Needs the feature `mpi` and an `mpirun` to start two processes with; `.ci/run` installs Open MPI. What needs no real
//! processes is tested with threads, in crates/train/tests/distributed.rs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{sleep, spawn};
use std::time::Duration;

/// Four batches make a step; dropout and an average of the weights are part of what must be the same.
const RECIPE: &str = r#"
[data]
synthetic = { lines = 600, val_lines = 20, symbols = 8, min_length = 2, max_length = 6, seed = 3 }
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
encoder_layers = 1
decoder_layers = 1
dropout = 0.2
[training]
epochs = 100
max_steps = 50
batch_tokens = 96
accumulate = 4
clip_norm = 1.0
ema_decay = 0.9
log_every = 1
[schedule]
warmup = 20
[validation]
every_epochs = 2
[checkpoints]
every_steps = 5
[distributed]
reduction = "exact"
"#;

/// How often a rank is killed; more with ATTENTIVE_KILLS.
const KILLS: usize = 3;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("recipe.toml"), RECIPE).expect("writable");
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `attentive train` of this recipe into this run, with one thread.
    fn train(&self, recipe: &str, run: &str, settings: &[&str]) -> Vec<String> {
        let binary = env!("CARGO_BIN_EXE_attentive").to_owned();
        let mut words = vec![
            binary,
            "train".to_owned(),
            self.path(recipe).display().to_string(),
        ];
        words.extend(["--out".to_owned(), self.path(run).display().to_string()]);
        words.extend(["--threads", "1"].map(str::to_owned));
        for setting in settings {
            words.extend(["--set".to_owned(), setting.to_string()]);
        }
        words
    }

    fn weights(&self, run: &str) -> [Vec<u8>; 2] {
        ["model.safetensors", "optimizer.safetensors"]
            .map(|file| fs::read(self.path(run).join("last").join(file)).expect("saved"))
    }
}

/// `mpirun` of one command in so many ranks.
fn mpirun(ranks: usize, words: &[String]) -> Command {
    let mut command = launcher();
    command.args(["-n", &ranks.to_string()]).args(words);
    command
}

fn launcher() -> Command {
    let mut command = Command::new("mpirun");
    // As the superuser in a container, on machines with fewer cores than ranks.
    command.args([
        "--allow-run-as-root",
        "--oversubscribe",
        "--bind-to",
        "none",
    ]);
    command.stderr(Stdio::piped()).stdout(Stdio::piped());
    command
}

fn good(command: &mut Command) -> String {
    let output = command.output().expect("mpirun runs");
    let stderr = stderr(&output);
    assert!(output.status.success(), "{stderr}");
    stderr
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn alone(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

#[test]
fn one_two_and_four_ranks_end_with_the_same_bits() {
    let folder = Folder::new();
    good(&mut alone(&folder.train("recipe.toml", "one", &[])));
    let one = folder.weights("one");
    for (name, ranks) in [("two", 2), ("four", 4)] {
        good(&mut mpirun(ranks, &folder.train("recipe.toml", name, &[])));
        assert!(folder.weights(name) == one, "{ranks} ranks ended elsewhere");
    }
    // The same run in pieces, by different numbers of ranks, one of them with a sharded optimizer.
    let shard = "distributed.shard_optimizer=true";
    for (ranks, settings) in [
        (4, ["training.max_steps=13", shard]),
        (1, ["training.max_steps=29", "training.log_every=1"]),
        (3, ["training.max_steps=50", shard]),
    ] {
        good(&mut mpirun(
            ranks,
            &folder.train("recipe.toml", "pieces", &settings),
        ));
    }
    assert!(
        folder.weights("pieces") == one,
        "the pieces ended elsewhere"
    );
}

/// The ranks that a launcher has started.
fn children(launcher: &Child) -> Vec<u32> {
    let id = launcher.id();
    let list = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    list.split_whitespace()
        .filter_map(|id| id.parse().ok())
        .collect()
}

fn signal(name: &str, process: u32) {
    let _ = Command::new("kill")
        .args([name, &process.to_string()])
        .status();
}

/// What the launcher said until it ended. After a rank was killed, the mpirun of Open MPI 4.1 now and then waits for one
/// of its own locks for ever, all ranks gone; then it is ended from here.
fn end_of(launcher: Child) -> Output {
    let ranks = children(&launcher);
    let id = launcher.id();
    let (ended, wait) = channel::<()>();
    let watch = spawn(move || {
        if wait.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
            let runs = |rank: &&u32| {
                let status = fs::read_to_string(format!("/proc/{rank}/status")).unwrap_or_default();
                !status.is_empty() && !status.contains("State:\tZ")
            };
            let left = ranks.iter().filter(runs).count();
            signal("-KILL", id);
            assert_eq!(left, 0, "ranks go on a minute after one was killed");
        }
    });
    let output = launcher.wait_with_output().expect("mpirun ends");
    drop(ended);
    watch.join().expect("no rank is left");
    output
}

/// Waits until the run has a checkpoint of at least this step.
fn wait_for_checkpoint(launcher: &mut Child, run: &Path, step: u64) {
    while newest(run) < step && launcher.try_wait().expect("its child").is_none() {
        sleep(Duration::from_millis(20));
    }
}

fn newest(run: &Path) -> u64 {
    let checkpoints = fs::read_dir(run.join("checkpoints")).into_iter().flatten();
    let steps = checkpoints.filter_map(|entry| {
        let name = entry.ok()?.file_name().to_string_lossy().into_owned();
        name.strip_prefix("step-")?.split('-').next()?.parse().ok()
    });
    steps.max().unwrap_or(0)
}

#[test]
fn ranks_that_are_killed_lose_nothing_but_the_steps_since_the_last_checkpoint() {
    let folder = Folder::new();
    let kills = std::env::var("ATTENTIVE_KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok());
    let kills = kills.unwrap_or(KILLS);
    // Each kill comes a few steps after the last.
    let steps = format!("training.max_steps={}", 10 + 5 * kills);
    let settings = [steps.as_str(), "checkpoints.every_steps=2"];
    good(&mut alone(&folder.train("recipe.toml", "whole", &settings)));
    let run = folder.path("killed");
    for kill in 0..kills {
        // Fewer ranks now and then: another number goes on from the same checkpoint.
        let ranks = 2 + kill % 3;
        let words = folder.train("recipe.toml", "killed", &settings);
        let mut launcher = mpirun(ranks, &words).spawn().expect("mpirun starts");
        wait_for_checkpoint(&mut launcher, &run, 5 * kill as u64 + 2);
        sleep(Duration::from_millis(7 * (kill as u64 * 11 % 13)));
        let children = children(&launcher);
        if let Some(rank) = children.get(kill * 7 % children.len().max(1)) {
            signal("-KILL", *rank);
        }
        let output = end_of(launcher);
        let text = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
        assert!(
            !output.status.success() || newest(&run) >= 10 + 5 * kills as u64,
            "{text}"
        );
        if output.status.code().is_some_and(|code| code != 0) {
            assert!(
                text.contains("signal 9") || text.contains("Killed"),
                "{text}"
            );
        }
    }
    good(&mut mpirun(
        2,
        &folder.train("recipe.toml", "killed", &settings),
    ));
    assert!(
        folder.weights("killed") == folder.weights("whole"),
        "the run ended elsewhere"
    );
}

#[test]
fn a_signal_to_the_launcher_saves_and_the_same_command_goes_on() {
    let folder = Folder::new();
    let settings = [
        "training.max_steps=150",
        "checkpoints.every_steps=0",
        "checkpoints.every_minutes=0",
    ];
    good(&mut alone(&folder.train("recipe.toml", "whole", &settings)));
    let words = folder.train("recipe.toml", "stopped", &settings);
    let mut launcher = mpirun(2, &words).spawn().expect("mpirun starts");
    wait_for_checkpoint(&mut launcher, &folder.path("stopped"), 5);
    signal("-USR1", launcher.id());
    let output = launcher.wait_with_output().expect("mpirun ends");
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.contains("the ranks save a checkpoint first"), "{text}");
    assert!(newest(&folder.path("stopped")) < 150, "{text}");
    let text = good(&mut mpirun(2, &words));
    assert!(text.contains("continuing from step"), "{text}");
    assert!(
        folder.weights("stopped") == folder.weights("whole"),
        "the run ended elsewhere"
    );
}

/// Rank 0 with one command, rank 1 with another.
fn unlike(first: &[String], second: &[String]) -> String {
    let mut command = launcher();
    command
        .args(["-n", "1"])
        .args(first)
        .arg(":")
        .args(["-n", "1"])
        .args(second);
    let output = command.output().expect("mpirun runs");
    assert!(!output.status.success());
    stderr(&output)
}

#[test]
fn ranks_that_do_not_belong_together_are_refused_and_a_rank_that_fails_ends_all() {
    let folder = Folder::new();
    let same = folder.train("recipe.toml", "run", &[]);
    let other = folder.train("recipe.toml", "run", &["training.seed=2"]);
    let text = unlike(&same, &other);
    for part in [
        "rank 1 of 2 is not like rank 0",
        "seed = 1 on rank 0, seed = 2 on",
    ] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    let mut threads = same.clone();
    let count = threads
        .iter()
        .position(|word| word == "--threads")
        .expect("given")
        + 1;
    threads[count] = "2".to_owned();
    let text = unlike(&same, &threads);
    assert!(
        text.contains("threads") && text.contains("1 on rank 0, 2 on"),
        "{text}"
    );

    // Data that differs, and data that one rank cannot find.
    let files = |name: &str, text: &str| {
        for end in ["src", "tgt"] {
            fs::write(folder.path(&format!("{name}.{end}")), text).expect("writable");
        }
        fs::create_dir_all(folder.path(name)).expect("writable");
        for end in ["src", "tgt"] {
            fs::rename(
                folder.path(&format!("{name}.{end}")),
                folder.path(&format!("{name}/text.{end}")),
            )
            .expect("moved");
        }
    };
    files("one", &"a b\nb c\n".repeat(40));
    files("two", &"a b\nb d\n".repeat(40));
    let recipe = RECIPE.replace(
        "max_length = 20\n",
        "max_length = 20\nsrc = \"text.src\"\ntgt = \"text.tgt\"\n",
    );
    let start = recipe.find("synthetic").expect("there");
    let end = start + recipe[start..].find('\n').expect("a line");
    fs::write(
        folder.path("files.toml"),
        recipe[..start].to_owned() + &recipe[end + 1..],
    )
    .expect("writable");
    let with = |name: &str| {
        let mut words = folder.train("files.toml", "files", &[]);
        words.splice(
            0..1,
            [
                "env".to_owned(),
                "-C".to_owned(),
                folder.path(name).display().to_string(),
                words[0].clone(),
            ],
        );
        words
    };
    let text = unlike(&with("one"), &with("two"));
    assert!(text.contains("text is another"), "{text}");
    fs::remove_file(folder.path("two/text.tgt")).expect("there");
    let text = unlike(&with("one"), &with("two"));
    for part in ["rank 1 on", "text.tgt", "This ends all ranks"] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

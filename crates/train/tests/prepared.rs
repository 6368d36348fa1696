//! A prepared corpus: streamed epochs are exact and resumable, damage is named and repaired, other recipes are refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use attentive_model::directory::Tokenizers;
use attentive_train::data::batches::{Batch, Budget};
use attentive_train::data::corpus::{CorpusText, Pair};
use attentive_train::data::prepared::prepare::{Outcome, Progress, prepare};
use attentive_train::data::prepared::stream::{EpochOptions, StreamedEpoch};
use attentive_train::data::prepared::{Manifest, Prepared};
use attentive_train::events::{self, Event, Observer};
use attentive_train::task::Plan;
use attentive_train::{Recipe, Session, train};
use burn::tensor::Device;

/// A corpus in a temporary folder: lines of one to eight letters, every one different from its neighbors.
struct Corpus(tempfile::TempDir);

impl Corpus {
    fn new(lines: usize) -> Self {
        let corpus = Self(tempfile::tempdir().unwrap());
        let line = |number: usize, shift: usize| {
            let letter = |place: usize| char::from(b'a' + ((number >> place) + shift) as u8 % 16);
            let words: Vec<String> = (0..1 + number % 8).map(|i| letter(i).to_string()).collect();
            words.join(" ") + "\n"
        };
        corpus.write("a.src", &(0..lines).map(|i| line(i, 0)).collect::<String>());
        corpus.write("a.tgt", &(0..lines).map(|i| line(i, 1)).collect::<String>());
        corpus
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn recipe(&self, overrides: &[&str]) -> Recipe {
        let text = format!(
            "[data]\ndir = {:?}\nprepared = {:?}\nsrc = \"a.src\"\ntgt = \"a.tgt\"\n{RECIPE}",
            self.0.path(),
            self.path("prepared")
        );
        let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
        Recipe::from_toml_str("test", &text, &overrides).unwrap()
    }

    fn shard(&self, number: usize) -> PathBuf {
        self.path(&format!("prepared/{number:05}.pairs"))
    }
}

const RECIPE: &str = r#"
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
kv_heads = 2
encoder_layers = 1
decoder_layers = 1
dropout = 0.2
[training]
seed = 5
epochs = 2
batch_tokens = 512
accumulate = 2
[schedule]
warmup = 20
"#;

fn prepared(recipe: &Recipe) -> (Manifest, usize) {
    match prepare(recipe, &AtomicBool::new(false), &|_| {}).unwrap() {
        Outcome::Done { manifest, kept } => (*manifest, kept),
        Outcome::Interrupted => panic!("nobody stopped it"),
    }
}

fn epoch(recipe: &Recipe, epoch: u64) -> Arc<StreamedEpoch> {
    let options = EpochOptions {
        budget: Budget::of(&recipe.training),
        weights: recipe.data.weights.clone(),
        seed: recipe.training.seed,
        epoch,
    };
    let prepared = Arc::new(Prepared::open(recipe).unwrap());
    Arc::new(StreamedEpoch::new(prepared, options).unwrap())
}

fn plan(epoch: &Arc<StreamedEpoch>) -> Vec<Vec<usize>> {
    (0..epoch.batches())
        .map(|i| epoch.batch(i).unwrap())
        .collect()
}

fn message(recipe: &Recipe) -> String {
    Prepared::open(recipe).unwrap_err().to_string()
}

#[test]
fn every_epoch_has_every_pair_once_in_another_order() {
    // Three shards, three windows.
    let corpus = Corpus::new(300_000);
    for overrides in [&[][..], &["training.batch_sentences=50"]] {
        let recipe = corpus.recipe(overrides);
        let (manifest, _) = prepared(&recipe);
        assert_eq!(manifest.shards.len(), 3);
        assert_eq!(manifest.report.kept(), 300_000);
        let first = epoch(&recipe, 0);
        let batches = plan(&first);
        assert!(
            first.padding().unwrap() < 0.01,
            "{}",
            first.padding().unwrap()
        );
        let mut seen = batches.concat();
        // Far from the order of the files: neighbors of the corpus are seldom neighbors of the epoch.
        let near = seen
            .windows(2)
            .filter(|pair| pair[0].abs_diff(pair[1]) < 64);
        assert!(near.count() < 3_000);
        seen.sort_unstable();
        assert!(seen == (0..300_000).collect::<Vec<_>>());

        // A function of seed and epoch alone, from whichever batch one begins.
        let again = epoch(&recipe, 0);
        for index in [batches.len() - 1, batches.len() / 2, 0, batches.len() / 3] {
            assert_eq!(again.batch(index).unwrap(), batches[index]);
        }
        assert!(plan(&epoch(&recipe, 1)) != batches);
        let other = corpus.recipe(&[overrides, &["training.seed=6"]].concat());
        assert!(plan(&epoch(&other, 0)) != batches);
    }
}

#[test]
fn pairs_are_those_of_the_corpus_in_memory_and_so_is_the_vocabulary() {
    let corpus = Corpus::new(3_000);
    let rare = format!(
        "{}z\n\n{}",
        "b ".repeat(30),
        fs::read_to_string(corpus.path("a.src")).unwrap()
    );
    let target = format!(
        "x\ny\n{}",
        fs::read_to_string(corpus.path("a.tgt")).unwrap()
    );
    corpus.write("a.src", &rare);
    corpus.write("a.tgt", &target);
    corpus.write("held", "a b c\n");
    let recipe = corpus.recipe(&["data.held_out=held"]);
    let (manifest, _) = prepared(&recipe);

    let mut in_memory = recipe.clone();
    in_memory.data.prepared.clear();
    let text = CorpusText::read(&in_memory).unwrap();
    let tokenizers = text.train_tokenizers(&in_memory).unwrap();
    let expected = text.encode(&in_memory, &tokenizers).unwrap();
    assert_eq!(manifest.report, expected.train_report);
    assert_eq!(manifest.report.empty, 1);
    assert_eq!(manifest.report.first_too_long, Some((1, 31)));
    let learned = Tokenizers::load(corpus.path("prepared")).unwrap();
    assert_eq!(learned.src.fingerprint(), tokenizers.src.fingerprint());

    let epoch = epoch(&recipe, 0);
    for indices in plan(&epoch) {
        let batch = epoch.collect(&indices).unwrap();
        assert_eq!(batch, Batch::collect(&expected.train, &indices));
    }
    let pair = |pair: &Pair| (pair.src.len(), pair.tgt.len());
    assert!(
        expected
            .train
            .iter()
            .any(|one| pair(one) != pair(&expected.train[0]))
    );
}

#[test]
fn wide_vocabularies_keep_their_tokens() {
    let corpus = Corpus::new(1);
    let words: String = (0..70_000).map(|i| format!("w{i}\n")).collect();
    corpus.write("a.src", &words);
    corpus.write("a.tgt", &words);
    let recipe = corpus.recipe(&[]);
    prepared(&recipe);
    let epoch = epoch(&recipe, 0);
    let mut largest = 0;
    for indices in plan(&epoch) {
        let batch = epoch.collect(&indices).unwrap();
        largest = largest.max(batch.src.into_iter().max().unwrap());
    }
    assert_eq!(largest, 70_003);
}

#[test]
fn files_are_visited_by_their_weights() {
    let corpus = Corpus::new(2_000);
    corpus.write("b.src", &"b\n".repeat(1_000));
    corpus.write("b.tgt", &"b\n".repeat(1_000));
    let recipe = corpus.recipe(&[
        "data.src=[\"a.src\", \"b.src\"]",
        "data.tgt=[\"a.tgt\", \"b.tgt\"]",
        "data.weights=[0.5, 3]",
    ]);
    prepared(&recipe);
    let seen = plan(&epoch(&recipe, 0)).concat();
    let (few, many): (Vec<usize>, Vec<usize>) = seen.iter().partition(|pair| **pair < 2_000);
    assert!((900..1_100).contains(&few.len()), "{}", few.len());
    assert_eq!(many.len(), 3_000);
    assert_ne!(few.len(), {
        let next = plan(&epoch(&recipe, 1)).concat();
        next.iter().filter(|pair| **pair < 2_000).count()
    });
}

#[test]
fn a_damaged_a_cut_a_missing_and_a_foreign_shard_are_named_and_written_anew() {
    let corpus = Corpus::new(140_000);
    let recipe = corpus.recipe(&[]);
    let (manifest, _) = prepared(&recipe);
    let intact = [0, 1].map(|number| fs::read(corpus.shard(number)).unwrap());
    let whole = |shard: usize| fs::read(corpus.shard(shard)).unwrap() == intact[shard];

    // A bit of the tokens: found when the block is read, before it is used.
    let mut damaged = intact[1].clone();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    fs::write(corpus.shard(1), &damaged).unwrap();
    let streamed = epoch(&recipe, 0);
    let found = (0..streamed.batches()).find_map(|index| streamed.batch(index).err());
    let found = found.unwrap().to_string();
    assert!(found.contains("00001.pairs is damaged"), "{found}");
    assert!(found.contains("attentive prepare"), "{found}");
    assert_eq!(prepared(&recipe), (manifest.clone(), 1));
    assert!(whole(1));

    let header = |bytes: &mut Vec<u8>| bytes[60] ^= 1;
    let cut = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() / 2);
    let short = |bytes: &mut Vec<u8>| bytes.truncate(50);
    let other =
        |bytes: &mut Vec<u8>| *bytes = b"something else, long enough to be a header".repeat(9);
    type Damage<'a> = &'a dyn Fn(&mut Vec<u8>);
    for damage in [&header as Damage, &cut, &short, &other] {
        let mut bytes = intact[0].clone();
        damage(&mut bytes);
        fs::write(corpus.shard(0), &bytes).unwrap();
        assert!(
            message(&recipe).contains("00000.pairs is damaged"),
            "{}",
            message(&recipe)
        );
        assert_eq!(prepared(&recipe), (manifest.clone(), 1));
        assert!(whole(0));
    }
    fs::remove_file(corpus.shard(0)).unwrap();
    assert!(
        message(&recipe).contains("00000.pairs"),
        "{}",
        message(&recipe)
    );

    // A shard of another corpus.
    let foreign = Corpus::new(140_001);
    prepared(&foreign.recipe(&[]));
    fs::copy(foreign.shard(0), corpus.shard(0)).unwrap();
    let found = message(&recipe);
    assert!(found.contains("another corpus or vocabulary"), "{found}");
    prepared(&recipe);
    // Another one of the same corpus.
    fs::copy(corpus.shard(1), corpus.shard(0)).unwrap();
    assert!(
        message(&recipe).contains("not that of the manifest"),
        "{}",
        message(&recipe)
    );
    prepared(&recipe);
    assert!(whole(0) && whole(1));
}

#[test]
fn an_interrupted_preparation_goes_on_and_ends_the_same() {
    let corpus = Corpus::new(300_000);
    let recipe = corpus.recipe(&[]);
    let stop = AtomicBool::new(false);
    let stop_after_first = |progress: Progress| {
        if matches!(progress, Progress::Encoding(1.., _)) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let outcome = prepare(&recipe, &stop, &stop_after_first).unwrap();
    assert!(matches!(outcome, Outcome::Interrupted));
    assert!(
        message(&recipe).contains("goes on where it stopped"),
        "{}",
        message(&recipe)
    );
    let (manifest, kept) = prepared(&recipe);
    assert_eq!(kept, 1);

    let whole = Corpus::new(300_000);
    assert_eq!(prepared(&whole.recipe(&[])), (manifest, 0));
    for number in 0..3 {
        assert!(fs::read(corpus.shard(number)).unwrap() == fs::read(whole.shard(number)).unwrap());
    }
}

#[test]
fn a_recipe_that_no_longer_fits_is_refused_with_the_difference() {
    let corpus = Corpus::new(1_000);
    let recipe = corpus.recipe(&[]);
    assert!(message(&recipe).contains("holds no prepared corpus"));
    prepared(&recipe);
    for (change, told) in [
        (
            "data.max_length=30",
            "`data.max_length`: 20 when it was prepared, 30 in the recipe",
        ),
        (
            "tokenizer.lowercase=true",
            "`tokenizer.lowercase`: false when",
        ),
        ("data.held_out=a.src", "`data.held_out`"),
    ] {
        let changed = corpus.recipe(&[change]);
        assert!(message(&changed).contains(told), "{}", message(&changed));
        let again = prepare(&changed, &AtomicBool::new(false), &|_| {}).unwrap_err();
        assert!(again.to_string().contains(told), "{again}");
    }
    // What only training looks at may change.
    for free in [
        "training.seed=9",
        "data.weights=[2.0]",
        "data.dir=elsewhere",
    ] {
        Prepared::open(&corpus.recipe(&[free])).unwrap();
    }
    corpus.write("a.src", &"b\n".repeat(1_000));
    let again = prepare(&recipe, &AtomicBool::new(false), &|_| {}).unwrap_err();
    assert!(again.to_string().contains("text has changed"), "{again}");
}

#[test]
fn what_cannot_be_prepared_is_refused() {
    let corpus = Corpus::new(100);
    let refused = |recipe: &Recipe| {
        let error = prepare(recipe, &AtomicBool::new(false), &|_| {}).unwrap_err();
        error.to_string()
    };
    fs::create_dir_all(corpus.path("prepared")).unwrap();
    corpus.write("prepared/letter.txt", "Dear");
    assert!(refused(&corpus.recipe(&[])).contains("letter.txt is none of the files"));
    fs::remove_file(corpus.path("prepared/letter.txt")).unwrap();
    let long = refused(&corpus.recipe(&["data.max_length=70000", "training.batch_tokens=80000"]));
    assert!(long.contains("65535"), "{long}");
    corpus.write("a.tgt", "one\n");
    let unequal = refused(&corpus.recipe(&[]));
    assert!(
        unequal.contains("has 100 lines") && unequal.contains("has 1"),
        "{unequal}"
    );
    corpus.write("a.src", "\n");
    let blank = refused(&corpus.recipe(&[]));
    assert!(blank.contains("none of the 1 training pairs"), "{blank}");
    fs::remove_dir_all(corpus.path("prepared")).unwrap();
    corpus.write("a.src", "");
    corpus.write("a.tgt", "");
    let empty = refused(&corpus.recipe(&[]));
    assert!(empty.contains("the corpus is empty"), "{empty}");

    let text = "[data]\nprepared = \"x\"\nsrc = \"a\"\ntgt = \"b\"\n[augmentation]\nsubword_dropout = 0.1\n";
    let error = Recipe::from_toml_str("test", text, &[])
        .unwrap_err()
        .to_string();
    assert!(error.contains("train without `data.prepared`"), "{error}");
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

fn run(recipe: &Recipe, out: &Path, steps: u64) -> events::Outcome {
    let stop = AtomicBool::new(false);
    let session = Session {
        recipe,
        out,
        device: Device::flex(),
        stop: &stop,
    };
    train(session, &mut StopAfter(steps, &stop)).unwrap()
}

#[test]
fn a_resumed_run_on_a_prepared_corpus_matches_an_uninterrupted_one() {
    let corpus = Corpus::new(1_500);
    let recipe = corpus.recipe(&["data.weights=[1.5]"]);
    prepared(&recipe);
    let weights = |run: &str| fs::read(corpus.path(run).join("last/model.safetensors")).unwrap();
    assert_eq!(
        run(&recipe, &corpus.path("whole"), u64::MAX),
        events::Outcome::Finished
    );
    let mut stops = 0;
    for steps in (3..).step_by(7) {
        if run(&recipe, &corpus.path("pieces"), steps) == events::Outcome::Finished {
            break;
        }
        stops += 1;
    }
    assert!(stops >= 3, "{stops}");
    assert!(weights("whole") == weights("pieces"));

    // Neither the text itself nor another vocabulary continues it.
    let mut in_memory = recipe.clone();
    in_memory.data.prepared.clear();
    let stop = AtomicBool::new(false);
    let out = corpus.path("whole");
    let session = Session {
        recipe: &in_memory,
        out: &out,
        device: Device::flex(),
        stop: &stop,
    };
    let error = train(session, &mut StopAfter(1, &stop))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("prepared training source file a.src is no longer read"),
        "{error}"
    );
}

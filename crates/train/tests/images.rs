//! Image models learn (a ViT its classes, a diffusion model to draw them), a run that was stopped and continued is bitwise
//! equal to one that was not, and bad images are refused with what to do.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use attentive_model::{
    config::{DiffusionConfig, VitConfig},
    directory::{AnyModelDir, ModelDir},
};
use attentive_nn::models::{
    diffusion::{Diffusion, noise::NoiseSchedule, sampling::Sampling},
    vit::Vit,
};
use attentive_train::{
    Recipe, Result, Session,
    data::{image_files::to_idx, images::normalized},
    events::{Event, Observer, Outcome, ValidationReport},
    train,
};
use burn::tensor::Device;

const DATA: &str = r#"
[data]
images = "train-images"
labels = "train-labels"
val_images = "val-images"
val_labels = "val-labels"
"#;

const VIT: &str = r#"
[augmentation]
shift = 1
[model]
family = "vit"
preset = "tiny"
image_size = 8
patch_size = 2
d_model = 16
d_ff = 32
heads = 2
layers = 2
[training]
seed = 5
epochs = 100
max_steps = 250
batch_size = 32
loss = "cross_entropy"
clip_norm = 1.0
log_every = 1
precision = "f32"
[optimizer]
kind = "adamw"
[schedule]
kind = "constant"
learning_rate = 0.004
warmup = 20
[validation]
every_epochs = 0
every_steps = 250
samples = 2
[checkpoints]
keep_last = 50
"#;

const DIFFUSION: &str = r#"
[model]
family = "diffusion"
preset = "tiny"
image_size = 8
widths = [16, 16]
heads = 2
timesteps = 100
[training]
seed = 5
epochs = 200
max_steps = 500
batch_size = 32
clip_norm = 1.0
ema_decay = 0.95
log_every = 1
precision = "f32"
[optimizer]
kind = "adamw"
[schedule]
kind = "constant"
learning_rate = 0.003
warmup = 20
[validation]
every_epochs = 0
every_steps = 500
[checkpoints]
keep_last = 50
"#;

const SIZE: usize = 8;
const CLASSES: usize = 3;

/// A bright square of 4 x 4 pixels in one of three corners, on a dark, uneven ground.
fn square(class: usize, number: usize) -> Vec<u8> {
    let (top, left) = [(0, 0), (0, 4), (4, 4)][class];
    let pixel = |at: usize| {
        let (y, x) = (at / SIZE, at % SIZE);
        let bright = (top..top + 4).contains(&y) && (left..left + 4).contains(&x);
        let uneven = (at * 31 + number * 17) % 40;
        (uneven + if bright { 200 } else { 0 }) as u8
    };
    (0..SIZE * SIZE).map(pixel).collect()
}

/// A folder with squares to learn and to validate on.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, first, count) in [("train", 0, 192), ("val", 1000, 48)] {
        let numbers = first..first + count;
        let labels: Vec<u8> = numbers.clone().map(|n| (n % CLASSES) as u8).collect();
        let pixels: Vec<u8> = numbers.flat_map(|n| square(n % CLASSES, n)).collect();
        let [images, labels] = to_idx(&pixels, SIZE, &labels);
        std::fs::write(folder.path().join(format!("{name}-images")), images).unwrap();
        std::fs::write(folder.path().join(format!("{name}-labels")), labels).unwrap();
    }
    folder
}

/// Stops the run after so many steps, and keeps what the last validation said.
struct Watch<'a> {
    steps: u64,
    stop: &'a AtomicBool,
    validated: Option<ValidationReport>,
}

impl Observer for Watch<'_> {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Step(report) => self
                .stop
                .store(report.step >= self.steps, Ordering::Relaxed),
            Event::Validated(report) => self.validated = Some(report.clone()),
            _ => {}
        }
    }
}

fn recipe(folder: &Path, text: &str, overrides: &[&str]) -> Recipe {
    let dir = format!("data.dir={}", folder.display());
    let overrides = [dir.as_str()].into_iter().chain(overrides.iter().copied());
    let overrides: Vec<String> = overrides.map(str::to_owned).collect();
    Recipe::from_toml_str("test", &format!("{DATA}{text}"), &overrides)
        .unwrap_or_else(|error| panic!("{error}"))
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

#[test]
fn a_small_vit_learns_its_classes_in_seconds() {
    let folder = folder();
    let out = folder.path().join("run");
    let recipe = recipe(folder.path(), VIT, &["augmentation.shift=0"]);
    let (outcome, validated) = run(&recipe, &out, u64::MAX);
    assert_eq!(outcome.unwrap(), Outcome::Finished);
    let validated = validated.expect("a validation");
    assert_eq!(validated.metrics, [("accuracy", 1.0)]);
    assert!(
        validated.loss < 0.05,
        "the loss is still {}",
        validated.loss
    );
    assert_eq!(validated.samples.len(), 2);

    let opened = AnyModelDir::open(&out).unwrap();
    assert!(opened.tokenizers.is_none());
    let config: &VitConfig = opened.config_of().unwrap();
    assert_eq!(config.labels, ["0", "1", "2"]);
    let file = ModelDir::weights_path(&opened.path);
    let model = Vit::load(config, &file, &Device::flex()).unwrap();
    let image = normalized(&square(2, 5), SIZE, &config.mean, &config.deviation);
    // With every token, and with a third of them merged in each layer.
    for merge in [&[][..], &[5, 5]] {
        let classes = model.classify(image.clone(), [1, 1, SIZE, SIZE], merge);
        assert!(classes[0][2] > 0.8, "{classes:?}");
    }
}

#[test]
fn fine_tuning_may_change_the_dropout_and_not_the_sizes() {
    let folder = folder();
    let first = folder.path().join("first");
    let begin = |out: &str, changes: &[&str]| {
        let recipe = recipe(folder.path(), VIT, changes);
        run(&recipe, &folder.path().join(out), u64::MAX).0
    };
    begin("first", &["training.max_steps=2"]).unwrap();
    let start = format!("training.start_from={}", first.display());
    let changes = ["training.max_steps=2", start.as_str(), "model.dropout=0.3"];
    assert_eq!(begin("second", &changes).unwrap(), Outcome::Finished);
    let wider = ["training.max_steps=2", start.as_str(), "model.d_ff=48"];
    let message = begin("third", &wider).unwrap_err().to_string();
    assert!(message.contains("`model.d_ff`: 32"), "{message}");
}

#[test]
fn a_small_diffusion_model_learns_to_draw_what_it_is_asked_for() {
    let folder = folder();
    let out = folder.path().join("run");
    let (outcome, validated) = run(&recipe(folder.path(), DIFFUSION, &[]), &out, u64::MAX);
    assert_eq!(outcome.unwrap(), Outcome::Finished);
    let validated = validated.expect("a validation");
    assert!(
        validated.loss < 0.35,
        "the loss is still {}",
        validated.loss
    );

    let opened = AnyModelDir::open(&out).unwrap();
    let config: &DiffusionConfig = opened.config_of().unwrap();
    let file = ModelDir::weights_path(&opened.path);
    let model = Diffusion::load(config, &file, &Device::flex()).unwrap();
    let schedule = NoiseSchedule::cosine(config.timesteps);
    for (merge, guidance) in [(0.0, 1.0), (0.5, 1.0), (0.0, 2.0)] {
        let sampling = Sampling {
            steps: 20,
            guidance,
            merge,
            seed: 3,
        };
        let classes: Vec<usize> = (0..12).map(|number| number % CLASSES).collect();
        let drawn = sampling.draw(&model, &schedule, &classes, 0);
        assert_eq!(drawn, sampling.draw(&model, &schedule, &classes, 0));
        let right = classes.iter().zip(drawn.chunks(SIZE * SIZE));
        let right = right.filter(|(class, image)| nearest(image) == **class);
        let right = right.count();
        assert!(
            right >= 10,
            "{right} of 12 with merge {merge}, guidance {guidance}"
        );
    }
}

/// The class whose square is brightest in an image.
fn nearest(image: &[f32]) -> usize {
    let brightness = |class: usize| {
        let like = square(class, 0);
        let both = image.iter().zip(&like).filter(|(_, like)| **like >= 200);
        both.map(|(value, _)| value).sum::<f32>()
    };
    let order = |a: &usize, b: &usize| brightness(*a).total_cmp(&brightness(*b));
    (0..CLASSES).max_by(order).unwrap()
}

/// Weights and moments of a run in one go, and of one that is stopped every few steps.
fn assert_resumes(text: &str) {
    let folder = folder();
    let changes = [
        "training.max_steps=14",
        "model.dropout=0.2",
        "training.accumulate=2",
        "training.ema_decay=0.9",
        "training.epochs=5",
        "validation.every_steps=5",
    ];
    let recipe = recipe(folder.path(), text, &changes);
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
fn a_resumed_vit_matches_an_uninterrupted_one() {
    assert_resumes(VIT);
}

#[test]
fn a_resumed_diffusion_model_matches_an_uninterrupted_one() {
    assert_resumes(DIFFUSION);
}

#[test]
fn bad_images_are_refused_with_what_to_do() {
    let folder = folder();
    let path = folder.path();
    let cut = &std::fs::read(path.join("train-images")).unwrap()[..500];
    std::fs::write(path.join("cut"), cut).unwrap();
    std::fs::create_dir_all(path.join("classes/a")).unwrap();
    std::fs::write(path.join("classes/a/x.png"), "no picture").unwrap();
    let out = path.join("x");
    for (changes, part) in [
        (vec!["data.labels=nowhere"], "nowhere"),
        (
            vec!["data.labels=[]"],
            "name the IDX file of the labels too (data.labels)",
        ),
        (
            vec!["data.images=cut"],
            "should hold 12288 bytes behind its first 16, and holds 484",
        ),
        (vec!["data.labels=val-labels"], "val-labels has 48 labels"),
        (
            vec!["model.image_size=16"],
            "has 8 x 8 pixels, and the model reads 16 x 16",
        ),
        (
            vec!["data.images=classes", "data.labels=[]"],
            "x.png cannot be read as a PNG",
        ),
        (
            vec!["model.labels=[\"a\", \"b\"]"],
            "the class 2 is not one of the model's 2: a, b",
        ),
    ] {
        let recipe = recipe(path, VIT, &changes);
        let message = run(&recipe, &out, 1).0.unwrap_err().to_string();
        assert!(message.contains(part), "{changes:?}: {message}");
    }
    assert!(!out.join("checkpoints/step-000001").exists());
}

#[test]
fn a_run_is_not_continued_on_other_images() {
    let folder = folder();
    let out = folder.path().join("run");
    let recipe = recipe(folder.path(), VIT, &["training.max_steps=4"]);
    run(&recipe, &out, 2).0.unwrap();
    let path = folder.path().join("train-images");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let message = run(&recipe, &out, 4).0.unwrap_err().to_string();
    assert!(
        message.contains("the training images file train-images"),
        "{message}"
    );
}

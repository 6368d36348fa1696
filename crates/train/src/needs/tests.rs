//! A trial is the real run, shorter; what it took is multiplied rightly.

use super::*;

struct Silent;

impl Observer for Silent {
    fn event(&mut self, _: &Event) {}
}

fn recipe(more: &[&str]) -> Recipe {
    let text = "[data]\nsrc = \"a\"\ntgt = \"b\"\nmax_length = 50\n[tokenizer]\nkind = \"word\"\nvocab_size = 0\nmin_frequency = 1\n\
                [model]\nd_model = 32\nd_ff = 64\nheads = 2\nencoder_layers = 1\ndecoder_layers = 1\n\
                [training]\nepochs = 10\nbatch_tokens = 256\n[validation]\nbest_by = \"loss\"\n";
    let more: Vec<String> = more.iter().map(|one| one.to_string()).collect();
    Recipe::from_toml_str("recipe", text, &more).expect("a sound recipe")
}

fn pairs(count: usize) -> Vec<(String, String)> {
    (0..count)
        .map(|i| {
            (
                format!("a{} b{} c", i % 7, i % 5),
                format!("x{} y{} z w", i % 7, i % 5),
            )
        })
        .collect()
}

#[test]
fn a_trial_measures_steps_and_a_checkpoint_as_a_run_writes_it() {
    let scratch = tempfile::tempdir().unwrap();
    let (recipe, pairs) = (recipe(&["checkpoints.keep_last=2"]), pairs(60));
    let device = attentive_nn::device::parse("cpu").unwrap();
    let trial = trial(&recipe, device.clone(), &pairs, scratch.path(), &mut Silent).unwrap();
    assert!(
        trial.seconds_per_batch > 0.0 && trial.seconds_per_batch < 5.0,
        "{trial:?}"
    );
    assert!(trial.batches >= FEWEST_STEPS as usize, "{trial:?}");
    // One vocabulary for both sides, after the special tokens.
    assert_eq!(
        trial.tokenizers.src.vocab_size(),
        4 + (7 + 5 + 1) + (7 + 5 + 2)
    );

    let real = tempfile::tempdir().unwrap();
    let mut text = [String::new(), String::new()];
    for (src, tgt) in &pairs {
        text[0] += &format!("{src}\n");
        text[1] += &format!("{tgt}\n");
    }
    fs::write(real.path().join("a"), &text[0]).unwrap();
    fs::write(real.path().join("b"), &text[1]).unwrap();
    let mut run = recipe.clone();
    run.data.dir = real.path().display().to_string();
    run.training.epochs = 2;
    let (out, stop) = (real.path().join("run"), AtomicBool::new(false));
    crate::train(
        Session {
            recipe: &run,
            out: &out,
            device,
            stop: &stop,
        },
        &mut Silent,
    )
    .unwrap();
    let written = folder_bytes(&newest(&out.join(CHECKPOINTS)).unwrap());
    let ratio = trial.checkpoint_bytes as f64 / written as f64;
    assert!(
        (ratio - 1.0).abs() < 0.05,
        "{} and {written}",
        trial.checkpoint_bytes
    );

    // 60 pairs of 5 target columns: 51 pairs to a batch of 256 tokens.
    let needs = Needs::estimate(&recipe, &trial, &[60], &pairs);
    assert!(
        (needs.steps - 20.0).abs() < 1e-6 && (needs.epochs - 10.0).abs() < 1e-6,
        "{needs:?}"
    );
    assert!((needs.seconds - 20.0 * trial.seconds_per_batch).abs() < 1e-6);
    assert_eq!(
        (needs.checkpoints, needs.disk_bytes),
        (4, 4 * trial.checkpoint_bytes)
    );
    let twice = Needs::estimate(&recipe, &trial, &[60, 60], &pairs);
    assert!((twice.steps - 40.0).abs() < 1e-6, "{twice:?}");
    assert!(trial.memory_bytes.is_none() || twice.memory_bytes > needs.memory_bytes);
}

#[test]
fn limits_of_the_recipe_end_the_run_earlier() {
    let scratch = tempfile::tempdir().unwrap();
    let pairs = pairs(60);
    let device = attentive_nn::device::parse("cpu").unwrap();
    let trial = trial(&recipe(&[]), device, &pairs, scratch.path(), &mut Silent).unwrap();
    let needs = |more: &[&str]| Needs::estimate(&recipe(more), &trial, &[60_000], &pairs);
    assert!((needs(&["training.max_steps=7"]).steps - 7.0).abs() < 1e-9);
    let minutes = trial.seconds_per_batch * 100.0 / 60.0;
    let short = needs(&[&format!("training.max_minutes={minutes}")]);
    assert!(
        (short.seconds - 60.0 * minutes).abs() < 1e-6 && (short.steps - 100.0).abs() < 0.01,
        "{short:?}"
    );
    let weighted = needs(&["data.weights=[0.5]"]);
    assert!((weighted.pairs - 30_000.0).abs() < 1e-6);
    let halved = needs(&["training.accumulate=2"]).steps * 2.0;
    assert!((halved - needs(&[]).steps).abs() < 1.0);
}

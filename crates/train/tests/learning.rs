//! Learning: the model can do what it is for. The reversal task is the first check of a translator.

use std::{path::Path, sync::atomic::AtomicBool};

use attentive_model::directory::ModelDir;
use attentive_nn::models::transformer::Transformer;
use attentive_runtime::inspection::Inspect;
use attentive_runtime::translator::{Translator, TranslatorOptions};
use attentive_train::{
    Recipe, Session,
    data::synthetic,
    events::{Event, Observer},
    train,
};
use burn::tensor::Device;

struct Print;

impl Observer for Print {
    fn event(&mut self, event: &Event) {
        if let Event::Validated(report) = event {
            println!(
                "epoch {}: loss {:.4}, {:?}, {:.1} s",
                report.epoch, report.loss, report.metrics, report.seconds
            );
        }
    }
}

/// At least 99% of unseen sequences exactly right after its 1,200 steps (some 20 seconds on two cores); and
/// one of its heads can be seen to read the line from its end.
#[test]
fn reversal_is_learned_with_the_recipe_as_it_ships() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes/reverse.toml");
    let recipe = Recipe::load(&path, &[]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let session = Session {
        recipe: &recipe,
        out: &out,
        device: Device::flex(),
        stop: &AtomicBool::new(false),
    };
    // Inside the pool, small operations need no hand-over between threads.
    rayon::scope(|_| train(session, &mut Print)).unwrap();

    // Lines from another seed, none of which was trained on.
    let mut task = recipe.data.synthetic.clone().unwrap();
    let seen: std::collections::HashSet<String> = synthetic::generate(&task)
        .train
        .into_iter()
        .map(|(src, _)| src)
        .collect();
    task.seed += 1000;
    let unseen: Vec<(String, String)> = synthetic::generate(&task)
        .val
        .into_iter()
        .filter(|(src, _)| !seen.contains(src))
        .take(400)
        .collect();
    assert!(unseen.len() >= 200);

    let opened = ModelDir::open(&out).unwrap();
    let model = Transformer::load(
        &opened.config,
        &opened.path.join("model.safetensors"),
        &Device::flex(),
    )
    .unwrap();
    let translator =
        Translator::new(model, opened.tokenizers, TranslatorOptions::default()).unwrap();
    let sources: Vec<&str> = unseen.iter().map(|(src, _)| src.as_str()).collect();
    let outputs = translator.translate(&sources);
    let right = outputs
        .iter()
        .zip(&unseen)
        .filter(|(output, (_, tgt))| output.text == *tgt)
        .count();
    let share = right as f64 / unseen.len() as f64;
    println!("{right} of {} right", unseen.len());
    assert!(
        share >= 0.99,
        "only {right} of {} unseen sequences are right",
        unseen.len()
    );

    let looks = anti_diagonal_share(&translator, &unseen[..50]);
    println!(
        "{:.1}% of a head's cross-attention is near the anti-diagonal",
        100.0 * looks
    );
    assert!(
        looks >= 0.8,
        "only {looks} of the best head's mass is near the anti-diagonal"
    );
}

/// Of the heads of cross-attention the largest share of the weights that lies within one position of
/// the anti-diagonal, over the letters of all these lines.
fn anti_diagonal_share(translator: &Translator<Transformer>, pairs: &[(String, String)]) -> f32 {
    let tokenizers = translator.tokenizers();
    let mut sums: Vec<f32> = Vec::new();
    let mut letters = 0;
    for (source, target) in pairs {
        let (src, tgt) = (tokenizers.src.encode(source), tokenizers.tgt.encode(target));
        let inspection = translator.model().inspect(&src, &tgt, 1);
        let heads: Vec<&Vec<f32>> = inspection.cross.iter().flatten().collect();
        sums.resize(heads.len(), 0.0);
        for (sum, weights) in sums.iter_mut().zip(heads) {
            // The last row writes `</s>`, which stands nowhere in the source's order.
            for (written, row) in weights.chunks(src.len() + 1).take(tgt.len()).enumerate() {
                let there = src.len() - 1 - written;
                *sum += row[there.saturating_sub(1)..=there + 1].iter().sum::<f32>();
            }
        }
        letters += tgt.len();
    }
    sums.into_iter().fold(0.0, f32::max) / letters as f32
}

//! Cross-attention weights: which source tokens does each output token attend to?
//!
//! Trains a very small Transformer to write lines backwards (some seconds), then prints the weights of
//! its cross-attention (§3.2.3). Nothing in the training says where to look, and yet the picture is a
//! diagonal from right to left: to write a line backwards, look at its end first.
//!
//! Run with `cargo run --example 03_looking_inside`, or give it a model and a sentence of your own:
//! `cargo run --example 03_looking_inside -- runs/demo "h e l l o"`.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use attentive_model::directory::ModelDir;
use attentive_nn::device;
use attentive_runtime::cpu::{Compute, CpuModel};
use attentive_runtime::inspection::Inspect;
use attentive_runtime::search::{Request, SearchOptions, search};
use attentive_text::Tokenizer;
use attentive_text::special::{decoder_output, source_ids};
use attentive_train::events::{Event, Observer};
use attentive_train::{Recipe, Session, train};

/// Short lines of few letters, and one layer each side: enough to see, quick to learn.
const RECIPE: &str = r#"
[data.synthetic]
task = "reverse"
lines = 5000
val_lines = 0
symbols = 10
min_length = 3
max_length = 7

[tokenizer]
kind = "word"
vocab_size = 0

[model]
d_model = 64
d_ff = 128
heads = 2
encoder_layers = 1
decoder_layers = 1
dropout = 0.0

[training]
max_steps = 600
batch_tokens = 512
log_every = 100

[schedule]
kind = "constant"
learning_rate = 2e-3
warmup = 100
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let temporary = tempfile::tempdir()?;
    let (model, sentence) = match (arguments.next(), arguments.next()) {
        (Some(model), Some(sentence)) => (model.into(), sentence),
        _ => {
            let run = temporary.path().join("run");
            train_on_reversal(&run)?;
            (run, "a b c d e".to_owned())
        }
    };

    let dir = ModelDir::open(&model)?;
    let model = CpuModel::open(&dir, Compute::Auto)?;
    let (src, tgt) = (&dir.tokenizers.src, &dir.tokenizers.tgt);

    let source = src.encode(&sentence);
    let request = Request::new(source_ids(&source[..]));
    let found = search(&model, &[request], &SearchOptions::greedy());
    let output = &found[0][0].tokens;
    println!("{sentence}  ->  {}\n", tgt.decode(output));

    // ANCHOR: inspect
    // Once more with the whole output given (teacher forcing), to have all weights together.
    let inspection = model.inspect(&source, output, 1);
    // ANCHOR_END: inspect
    let labels = |tokenizer: &Tokenizer, ids: Vec<u32>| -> Vec<String> {
        ids.iter().map(|id| tokenizer.label(*id)).collect()
    };
    let read = labels(src, source_ids(&source[..]));
    let written = labels(tgt, decoder_output(&output[..]));
    for (layer, heads) in inspection.cross.iter().enumerate() {
        for (head, weights) in heads.iter().enumerate() {
            println!(
                "layer {} of {}, head {} of {}",
                layer + 1,
                inspection.cross.len(),
                head + 1,
                heads.len()
            );
            picture(&read, &written, weights);
        }
    }
    Ok(())
}

/// The weights in percent: a row for each token written, a column for each token read.
fn picture(read: &[String], written: &[String], weights: &[f32]) {
    let cells: String = read.iter().map(|word| format!("{word:>6}")).collect();
    println!("{:>6} |{cells}", "");
    for (word, row) in written.iter().zip(weights.chunks(read.len())) {
        let cell = |weight: &f32| match (weight * 100.0).round() as u32 {
            0..5 => format!("{:>6}", "."),
            percent => format!("{percent:>6}"),
        };
        println!("{word:>6} |{}", row.iter().map(cell).collect::<String>());
    }
    println!();
}

fn train_on_reversal(run: &Path) -> Result<(), Box<dyn std::error::Error>> {
    struct Losses;
    impl Observer for Losses {
        fn event(&mut self, event: &Event) {
            if let Event::Logged(report) = event {
                println!("step {:>4}  loss {:.3}", report.step, report.loss);
            }
        }
    }
    let recipe = Recipe::from_toml_str("this example", RECIPE, &[])?;
    let stop = AtomicBool::new(false);
    let session = Session {
        recipe: &recipe,
        out: run,
        device: device::parse("cpu")?,
        stop: &stop,
    };
    train(session, &mut Losses)?;
    println!();
    Ok(())
}

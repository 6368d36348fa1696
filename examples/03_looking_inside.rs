//! Looking inside a model: where does each output word look in the source?
//!
//! Trains a very small Transformer to write lines backwards (some seconds), then prints the weights of
//! its cross-attention (§3.2.3). Nobody told it where to look, and yet the picture is a diagonal from
//! right to left: to write a line backwards, look at its end first.
//!
//! Run with `cargo run --example 03_looking_inside`, or give it a model and a sentence of your own:
//! `cargo run --example 03_looking_inside -- runs/demo "h e l l o"`.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use attentive_model::directory::ModelDir;
use attentive_nn::device;
use attentive_nn::models::transformer::Transformer;
use attentive_nn::models::transformer::search::pad_rows;
use attentive_nn::pass::Pass;
use attentive_runtime::search::{Request, SearchOptions, search};
use attentive_text::special::{decoder_input, source_ids};
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

    let ModelDir {
        path,
        config,
        tokenizers,
        ..
    } = ModelDir::open(&model)?;
    let device = device::parse("cpu")?;
    let network = Transformer::load(&config, &path.join("model.safetensors"), &device)?;

    let source = source_ids(tokenizers.src.encode(&sentence));
    let request = Request::new(source.clone());
    let found = search(&network, &[request], &SearchOptions::greedy());
    let output = &found[0][0].tokens;
    println!("{sentence}  ->  {}\n", tokenizers.tgt.decode(output));

    // Once more with the whole output at once, to have all weights together.
    let memory = network.encode(
        pad_rows(&[source.clone()], &device),
        &mut Pass::inspection(),
    );
    let decoded = network.decode(
        pad_rows(&[decoder_input(output)], &device),
        &memory,
        &mut Pass::inspection(),
    );
    let mut written: Vec<String> = output.iter().map(|id| tokenizers.tgt.label(*id)).collect();
    written.push("</s>".to_owned());
    let read: Vec<String> = source.iter().map(|id| tokenizers.src.label(*id)).collect();

    for (layer, weights) in decoded.cross_weights.iter().enumerate() {
        let [_, heads, tgt_len, src_len] = weights.dims();
        let weights: Vec<f32> = weights.clone().into_data().iter::<f32>().collect();
        for (head, weights) in weights.chunks(tgt_len * src_len).enumerate() {
            println!(
                "layer {} of {}, head {} of {heads}",
                layer + 1,
                config.decoder_layers,
                head + 1
            );
            picture(&read, &written, weights);
        }
    }
    Ok(())
}

/// A row for each word written, a column for each word read, in percent.
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

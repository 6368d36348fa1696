//! A very small Transformer that learns to write lines backwards in some seconds, for examples that need a trained model.

use std::error::Error;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use attentive_nn::device;
use attentive_train::events::{Event, Observer};
use attentive_train::{Recipe, Session};

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
heads = 4
kv_heads = 4
encoder_layers = 1
decoder_layers = 1
dropout = 0.0
[training]
max_steps = 500
batch_tokens = 512
log_every = 50
[schedule]
kind = "constant"
learning_rate = 2e-3
warmup = 100
"#;

/// Trains with the recipe above and `KEY=VALUE`s that change it; gives the last loss.
pub fn train(run: &Path, overrides: &[&str]) -> Result<f64, Box<dyn Error>> {
    struct Last(f64);
    impl Observer for Last {
        fn event(&mut self, event: &Event) {
            if let Event::Logged(report) = event {
                self.0 = report.loss;
            }
        }
    }
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    let recipe = Recipe::from_toml_str("this example", RECIPE, &overrides)?;
    let session = Session {
        recipe: &recipe,
        out: run,
        device: device::parse("cpu")?,
        stop: &AtomicBool::new(false),
    };
    let mut last = Last(f64::NAN);
    attentive_train::train(session, &mut last)?;
    Ok(last.0)
}

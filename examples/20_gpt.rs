//! GPT: the decoder alone, taught to predict the next character, then asked to go on.
//!
//! A small model reads a nursery rhyme over and over, for some seconds. It learns it by heart, which so few lines allow, and
//! writes it down from any beginning. The map shows its attention: nothing to the right of the diagonal.
//!
//! Run with `cargo run --release --example 20_gpt [PICTURE.svg]`. Next: `21_bert`.

mod picture;

use std::sync::atomic::AtomicBool;

use attentive_model::config::GptConfig;
use attentive_model::directory::{AnyModelDir, ModelDir};
use attentive_nn::device;
use attentive_nn::models::gpt::Gpt;
use attentive_nn::models::gpt::generation::Generator;
use attentive_nn::pass::Pass;
use attentive_runtime::search::Sampling;
use attentive_train::events::{Event, Observer};
use attentive_train::{Recipe, Session, train};
use burn::tensor::{Int, Tensor, TensorData};

const RHYME: &str = "This is the cat that killed the rat that ate the malt that lay in the house that Jack built.
This is the dog that worried the cat that killed the rat that ate the malt that lay in the house that Jack built.
This is the cow that tossed the dog that worried the cat that killed the rat that lay in the house that Jack built.
";

const RECIPE: &str = r#"
[tokenizer]
kind = "characters"
vocab_size = 0
min_frequency = 1
[model]
family = "gpt"
preset = "tiny"
d_model = 64
d_ff = 128
heads = 4
layers = 2
context = 48
dropout = 0.0
[training]
epochs = 1000
max_steps = 350
batch_size = 16
clip_norm = 1.0
log_every = 50
[schedule]
kind = "constant"
learning_rate = 4e-3
warmup = 20
[validation]
every_epochs = 0
"#;

struct Losses;
impl Observer for Losses {
    fn event(&mut self, event: &Event) {
        if let Event::Logged(report) = event {
            println!("step {:>3}  loss {:.3}", report.step, report.loss);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("rhyme.txt"), RHYME.repeat(4))?;
    let run = folder.path().join("run");
    let text = format!(
        "[data]\ndir = {:?}\ntext = \"rhyme.txt\"\n{RECIPE}",
        folder.path()
    );
    let recipe = Recipe::from_toml_str("this example", &text, &[])?;
    let device = device::parse("cpu")?;
    let session = Session {
        recipe: &recipe,
        out: &run,
        device: device.clone(),
        stop: &AtomicBool::new(false),
    };
    train(session, &mut Losses)?;

    // ANCHOR: generate
    let dir = AnyModelDir::open(&run)?;
    let model = Gpt::load(
        dir.config_of::<GptConfig>()?,
        &ModelDir::weights_path(&dir.path),
        &device,
    )?;
    let tokenizer = dir.tokenizer()?;
    let prompt = tokenizer.encode("This is the dog");
    let hot = Sampling {
        temperature: 2.0,
        seed: 1,
        ..Sampling::default()
    };
    for (name, sampling) in [("most probable", None), ("temperature 2", Some(&hot))] {
        let tokens: Vec<u32> = Generator::new(&model, prompt.clone(), 80, sampling, 0).collect();
        println!("{name}: This is the dog{}", tokenizer.decode(&tokens));
    }
    // ANCHOR_END: generate

    let line = tokenizer.encode("that killed the rat");
    let ids: Vec<i64> = line.iter().map(|id| i64::from(*id)).collect();
    let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, [1, line.len()]), &device);
    let out = model.forward(ids, None, &mut Pass::inspection());
    let weights: Vec<f32> = out.weights[0].clone().into_data().iter::<f32>().collect();
    let panel = |head: usize| {
        let map = weights[head * line.len() * line.len()..][..line.len() * line.len()].to_vec();
        let title = format!("Layer 1, head {}", head + 1);
        let names = line.iter().map(|id| tokenizer.decode(&[*id])).collect();
        picture::named_map(&title, ["character looked at", "character"], names, map)
    };
    Ok(picture::show(
        "Causal attention: `that killed the rat`",
        vec![panel(0), panel(1)],
    )?)
}

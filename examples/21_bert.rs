//! BERT beside GPT: the encoder alone sees both sides of a gap, the decoder alone only what came before.
//!
//! Lines are palindromes, `4 7 5 9 9 5 7 4`. BERT learns to fill in letters that are hidden, GPT to predict the next one. Behind
//! the middle both know the answer; before it, the letter that tells is to the right, where only BERT looks.
//!
//! Run with `cargo run --release --example 21_bert [PICTURE.svg]`. Next: `22_int8`.

mod picture;

use attentive_model::config::{BertConfig, GptConfig, ModelConfig, Preset};
use attentive_nn::models::bert::Bert;
use attentive_nn::models::bert::text::{Framed, Texts};
use attentive_nn::models::gpt::Gpt;
use attentive_nn::ops::{Precision, smoothed_loss};
use attentive_nn::parameters;
use attentive_nn::pass::Pass;
use attentive_nn::random::mix;
use attentive_text::special::BOS;
use attentive_train::optim::optimizer::{Optimizer, Step};
use attentive_train::recipe::Optimizer as Settings;
use burn::tensor::{Device, Int, Tensor, TensorData};

const LEN: usize = 8;
const MASK: u32 = 4;
const FIRST: u32 = 5;
const VOCAB: usize = 15;
const ROWS: u64 = 64;

/// A palindrome of four random letters, which depends on its number only.
fn line(number: u64) -> Vec<u32> {
    let half = (0..4).map(|i| FIRST + (mix(number << 3 | i) % 10) as u32);
    let half: Vec<u32> = half.collect();
    half.iter().chain(half.iter().rev()).copied().collect()
}

fn ids(values: Vec<u32>, shape: [usize; 2], device: &Device) -> Tensor<2, Int> {
    let values: Vec<i64> = values.into_iter().map(i64::from).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// What BERT says about the hidden letters of these lines, and the true ones. Every second letter is hidden, so that the
/// mirror image of each of them is there.
fn fill(model: &Bert, lines: &[Vec<u32>]) -> (Tensor<2>, Vec<u32>) {
    // ANCHOR: fill
    let (mut framed, mut places, mut truth) = (Vec::new(), Vec::new(), Vec::new());
    for (row, line) in lines.iter().enumerate() {
        let mut hidden = line.clone();
        for gap in gaps(row) {
            truth.push(hidden[gap]);
            hidden[gap] = MASK;
            places.push((row * (LEN + 2) + 1 + gap) as i64);
        }
        framed.push(Framed::new(&hidden, None, 64)); // [CLS] ... [SEP]
    }
    let [tokens, segments] = Texts::collect(&framed).tensors(model);
    let pass = &mut Pass::evaluation();
    let hidden = model.forward(tokens, segments, pass).hidden; // [rows, len, d_model]
    let places = Tensor::from_data(TensorData::new(places, [truth.len()]), &hidden.device());
    let gaps = hidden.flatten::<2>(0, 1).select(0, places).unsqueeze::<3>();
    let logits = model.masked_logits(gaps, Precision::F32);
    // ANCHOR_END: fill
    let logits = logits.unwrap_or_else(|| unreachable!("it has that head"));
    (logits.squeeze_dim(0), truth)
}

/// The hidden letters of a line: the even ones or the odd ones.
fn gaps(row: usize) -> impl Iterator<Item = usize> {
    (row % 2..LEN).step_by(2)
}

/// What GPT says about every letter of these lines from those before it.
fn predict(model: &Gpt, lines: &[Vec<u32>]) -> (Tensor<2>, Vec<u32>) {
    // ANCHOR: predict
    let read = lines
        .iter()
        .flat_map(|line| [&[BOS], &line[..LEN - 1]].concat());
    let tokens = ids(read.collect(), [lines.len(), LEN], &model.device());
    let hidden = model.forward(tokens, None, &mut Pass::evaluation()).hidden;
    let logits = model.logits(hidden).flatten::<2>(0, 1);
    // ANCHOR_END: predict
    (logits, lines.concat())
}

/// One way to train both: 250 steps of Adam on what `predict` says about fresh lines.
fn trained<M: burn::module::Module>(
    mut model: M,
    config: &impl ModelConfig,
    predict: impl Fn(&M, &[Vec<u32>]) -> (Tensor<2>, Vec<u32>),
) -> M {
    let mut optimizer = Optimizer::new(&Settings::default(), &config.tensors());
    for number in 1..=250 {
        let lines: Vec<Vec<u32>> = (0..ROWS).map(|row| line(number * ROWS + row)).collect();
        let (logits, truth) = predict(&model, &lines);
        let loss = smoothed_loss(logits, &truth, 0.0).objective;
        let gradients = parameters::gradients(&model, loss.backward());
        let step = Step {
            number,
            learning_rate: 3e-3,
            gradient_scale: 1.0 / truth.len() as f64,
            precision: Precision::F32,
        };
        model = optimizer.step(model, gradients, &step);
    }
    model
}

/// The share of right guesses, in percent, by the place of the letter.
fn right((logits, truth): (Tensor<2>, Vec<u32>), place: impl Fn(usize) -> usize) -> Vec<f64> {
    let guesses: Vec<i64> = logits.argmax(1).into_data().iter::<i64>().collect();
    let mut hits = [0.0; LEN];
    for (i, (guess, truth)) in guesses.iter().zip(&truth).enumerate() {
        hits[place(i)] += f64::from(u8::from(*guess == i64::from(*truth)));
    }
    let each = truth.len() as f64 / LEN as f64;
    hits.iter().map(|hits| 100.0 * hits / each).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex().autodiff();
    let bert = BertConfig {
        d_model: 64,
        d_ff: 128,
        dropout: 0.0,
        max_positions: 64,
        ..BertConfig::from_preset(Preset::Tiny).with_vocabularies(0, VOCAB)
    };
    let gpt = GptConfig {
        d_model: 64,
        d_ff: 128,
        layers: 2,
        dropout: 0.0,
        context: 64,
        ..GptConfig::from_preset(Preset::Tiny).with_vocabularies(0, VOCAB)
    };
    let filler = trained(Bert::new(&bert, 1, &device), &bert, fill);
    let writer = trained(Gpt::new(&gpt, 1, &device), &gpt, predict);

    let new: Vec<Vec<u32>> = (1_000_000..1_000_400).map(line).collect();
    let places: Vec<usize> = (0..new.len()).flat_map(gaps).collect();
    let found = [
        (
            "BERT, hidden letters",
            right(fill(&filler, &new), |i| places[i]),
        ),
        (
            "GPT, the next letter",
            right(predict(&writer, &new), |i| i % LEN),
        ),
    ];
    println!("right guesses in percent, letter 1 to {LEN} of 400 new palindromes");
    let mut lines = Vec::new();
    for (name, shares) in found {
        println!(
            "{name:>24}  {}",
            shares
                .iter()
                .map(|x| format!("{x:>4.0}"))
                .collect::<String>()
        );
        let points = (1..).zip(shares).map(|(i, share)| (f64::from(i), share));
        lines.push((name.to_owned(), points.collect()));
    }
    let panel = picture::curves(
        "Palindromes",
        ["letter of the line", "right guesses (percent)"],
        lines,
    );
    Ok(picture::show("Both sides, or the past alone", vec![panel])?)
}

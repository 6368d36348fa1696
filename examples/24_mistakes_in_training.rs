//! Mistakes that readers of the paper make in training, each of them made here, and what it does.
//!
//! Averages over padding, a buffer that is changed before the backward pass needs it, and a checkpoint without the
//! optimizer's state. The program fails if a mistake goes unnoticed.
//!
//! Run with `cargo run --release --example 24_mistakes_in_training [PICTURE.svg]`. Next: `25_exercises`.

mod picture;

use std::cell::RefCell;
use std::rc::Rc;

use attentive_nn::init::Init;
use attentive_nn::layers::linear::Linear;
use attentive_nn::ops::{Precision, smoothed_loss};
use attentive_nn::parameters;
use attentive_nn::random::mix;
use attentive_text::special::PAD;
use attentive_train::optim::optimizer::{Optimizer, Step};
use attentive_train::recipe::Optimizer as Settings;
use burn::tensor::{Device, Tensor, TensorData};

/// What must hold for a mistake to be shown.
fn ensure(shown: bool) -> Result<(), String> {
    if shown {
        Ok(())
    } else {
        Err("the mistake did not show".to_owned())
    }
}

fn numbers(tensor: Tensor<1>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

fn padding() -> Result<(), String> {
    let device = Device::flex();
    // ANCHOR: padding
    let sentence = Tensor::<2>::from_data([[4.0, 2.0], [2.0, 4.0]], &device); // [2 words, 2 numbers]
    let padded = Tensor::cat(vec![sentence.clone(), Tensor::zeros([6, 2], &device)], 0);
    let alone = numbers(sentence.mean_dim(0).reshape([2]));
    let wrong = numbers(padded.clone().mean_dim(0).reshape([2])); // over 8 places, 6 of them padding
    let right = numbers((padded.sum_dim(0) / 2.0).reshape([2]));
    // ANCHOR_END: padding
    println!(
        "7. The mean of a sentence: {alone:?} alone, {wrong:?} over its padding,\n   {right:?} over its words"
    );

    // ANCHOR: loss
    let logits = Tensor::<2>::zeros([4, 100], &device); // equally probable, so ln(100) = 4.605 a word
    let targets = [7, 8, PAD, PAD];
    let sum = smoothed_loss(logits, &targets, 0.0)
        .objective
        .into_scalar::<f32>();
    let (right_loss, wrong_loss) = (sum / 2.0, sum / targets.len() as f32);
    // ANCHOR_END: loss
    println!(
        "   The loss of two words in four places: {right_loss:.3} a word;\n   divided by all places it is {wrong_loss:.3}, better the more padding there is"
    );
    ensure(alone == right && alone != wrong && wrong_loss < right_loss)
}

fn in_place() -> Result<(), String> {
    // ANCHOR: in_place
    // y = x * w, then x is doubled in place; the backward pass needs the x of before: dy/dw = x.
    let x = Rc::new(RefCell::new(3.0));
    let saved = Rc::clone(&x);
    let backward = move || *saved.borrow();
    *x.borrow_mut() *= 2.0;
    let wrong: f32 = backward();

    let device = Device::flex().autodiff();
    let x = Tensor::<1>::from_floats([3.0], &device);
    let w = Tensor::<1>::from_floats([5.0], &device).require_grad();
    let y = x.clone() * w.clone();
    let x = x * 2.0; // a new value; the old one stays what it was
    let right = w.grad(&y.backward()).map(numbers).unwrap_or_default();
    // ANCHOR_END: in_place
    println!(
        "8. A buffer that is changed in place: the gradient is {wrong} instead of {},\n   and nobody says so (x is {} by now)",
        right[0],
        numbers(x)[0]
    );
    ensure(wrong == 6.0 && right == [3.0])
}

/// The losses of 400 steps, after which a checkpoint is loaded, and of 200 more.
fn train(kept: bool) -> Vec<(f64, f64)> {
    let device = Device::flex().autodiff();
    let mut layer = Linear::new(16, 16, &mut Init::xavier_uniform(1), &device);
    let goal = Init::xavier_uniform(9).matrix(16, 16, &device);
    let settings = Settings::default();
    let mut optimizer = Optimizer::new(&settings, &[]);
    let mut losses = Vec::new();
    for number in 1..=600 {
        if number == 401 {
            // ANCHOR: checkpoint
            let moments = optimizer.moments().clone();
            optimizer = Optimizer::new(&settings, &[]); // a new process
            if kept {
                optimizer = optimizer.with_moments(moments);
            }
            // ANCHOR_END: checkpoint
        }
        let unit = |i: u64| (mix(number << 32 | i) >> 40) as f32 / 8_388_608.0 - 1.0;
        let x: Vec<f32> = (0..32 * 16).map(unit).collect();
        let x = Tensor::<2>::from_data(TensorData::new(x, [32, 16]), &device);
        let error = layer.forward(x.clone(), Precision::F32) - x.matmul(goal.clone());
        let loss = error.square().mean();
        losses.push((
            number as f64,
            f64::from(loss.clone().into_scalar::<f32>()).log10(),
        ));
        let step = Step {
            number,
            learning_rate: 1e-2,
            gradient_scale: 1.0,
            precision: Precision::F32,
        };
        layer = optimizer.step(
            layer.clone(),
            parameters::gradients(&layer, loss.backward()),
            &step,
        );
    }
    losses
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    padding()?;
    in_place()?;
    let (kept, lost) = (train(true), train(false));
    let at = |losses: &[(f64, f64)], step: usize| 10f64.powf(losses[step - 1].1);
    let worst = lost[400..]
        .iter()
        .map(|point| 10f64.powf(point.1))
        .fold(0.0, f64::max);
    println!(
        "9. A checkpoint without the optimizer's state, loaded after step 400:\n   the loss goes from {:.1e} up to {worst:.1e}; with it, {:.1e} at step 402",
        at(&lost, 400),
        at(&kept, 402)
    );
    ensure(worst > 2.0 * at(&kept, 400))?;
    let lines = vec![
        ("with moments".to_owned(), kept),
        ("without".to_owned(), lost),
    ];
    let panel = picture::curves(
        "Loaded after step 400",
        ["step", "log10 of the loss"],
        lines,
    );
    Ok(picture::show(
        "A checkpoint without the optimizer's state",
        vec![panel],
    )?)
}

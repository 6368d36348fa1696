//! Activations and their gradients: functions of one number, and those of several together.
//!
//! Run with `cargo run --release --example 08_activations [PICTURE.svg]`. Next: `09_optimizers`.

mod picture;

use attentive_nn::layers::activation::{Elementwise, Joint};
use burn::tensor::{Device, Tensor, TensorData};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex().autodiff();
    let xs: Vec<f32> = (-40..=40).map(|i| i as f32 / 10.0).collect();
    let (mut values, mut slopes) = (Vec::new(), Vec::new());
    println!(
        "{:>14} {:>8} {:>8} {:>8}   slope at -1",
        "", "f(-2)", "f(0)", "f(2)"
    );
    for (name, function) in Elementwise::ALL {
        // ANCHOR: elementwise
        let data = TensorData::new(xs.clone(), [xs.len()]);
        let x = Tensor::<1>::from_data(data, &device).require_grad();
        let y = function.apply(x.clone());
        let gradients = y.clone().sum().backward();
        let slope = x.grad(&gradients).ok_or("a gradient")?;
        // ANCHOR_END: elementwise
        let points = |y: Tensor<1>| -> Vec<(f64, f64)> {
            let y: Vec<f32> = y.into_data().iter::<f32>().collect();
            xs.iter()
                .zip(y)
                .map(|(x, y)| (f64::from(*x), f64::from(y)))
                .collect()
        };
        let (y, slope) = (points(y), points(slope));
        let [a, b, c] = [20, 40, 60].map(|i: usize| y[i].1);
        println!("{name:>14} {a:>8.3} {b:>8.3} {c:>8.3}   {:.3}", slope[30].1);
        if ["relu", "elu", "sigmoid", "tanh", "swish", "gelu"].contains(&name) {
            values.push((name.to_owned(), y));
            slopes.push((name.to_owned(), slope));
        }
    }
    println!();
    for (name, function) in Joint::ALL {
        // ANCHOR: joint
        let x = Tensor::<1>::from_floats([1.0, 2.0, 0.0, -1.0], &Device::flex());
        let y = function.apply(x);
        // ANCHOR_END: joint
        let y: Vec<f32> = y.into_data().iter::<f32>().collect();
        println!("{name:>14} of [1, 2, 0, -1]: {y:.3?}");
    }
    let panels = vec![
        picture::curves("Functions of one number", ["x", "f(x)"], values),
        picture::curves("Their gradients", ["x", "f'(x)"], slopes),
    ];
    Ok(picture::show("Activations", panels)?)
}

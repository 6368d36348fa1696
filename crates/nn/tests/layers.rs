//! Parity with PyTorch of normalizations, activations and convolution, outputs and gradients. `fixtures/make_layers.py` wrote the
//! references.

mod fixture;

use attentive_nn::{
    init::Init,
    layers::{
        activation::{Elementwise, Joint},
        convolution::Convolution,
        norm::{BatchNorm, GroupNorm, LayerNorm, RmsNorm, RunningMoments},
    },
    ops::Precision,
    parameters,
};
use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};
use fixture::Fixture;

const CHANNELS: usize = 6;
const EPSILON: f64 = 1e-5;

/// Runs a normalization with the reference's weights, and compares its output and all gradients.
fn check<M: Module>(
    fixture: &Fixture,
    name: &str,
    norm: M,
    run: impl FnOnce(&M, Tensor<3>) -> Tensor<3>,
) {
    let device = Device::flex().autodiff();
    let norm = parameters::replace(norm, |parameter, _| {
        let values = fixture.floats(&format!("weight.{parameter}"));
        Tensor::from_data(TensorData::new(values, [CHANNELS]), &Device::flex())
    });
    let x = fixture.tensor::<3>("input.x", &device).require_grad();
    let out = run(&norm, x.clone());
    fixture.compare(&format!("output.{name}"), out.clone());
    let weighted = out * fixture.tensor::<3>("input.out_weights", &device);
    let gradients = weighted.sum().backward();
    let of_x = x.grad(&gradients).expect("a gradient");
    fixture.compare(&format!("gradient.{name}.x"), of_x);
    let found = parameters::gradients(&norm, gradients);
    assert_eq!(found.len() + 1, fixture.count(&format!("gradient.{name}.")));
    for (parameter, gradient) in found {
        fixture.compare(&format!("gradient.{name}.{parameter}"), gradient);
    }
}

#[test]
fn every_normalization_matches_pytorch() {
    let fixture = Fixture::read("norms");
    let device = Device::flex().autodiff();
    let mut running = RunningMoments::new(CHANNELS, &Device::flex());
    let batch = || BatchNorm::new(CHANNELS, EPSILON, 0.1, &device);
    check(&fixture, "batch_train", batch(), |norm, x| {
        norm.forward_training(x, &mut running)
    });
    fixture.compare("output.running_mean", running.mean.clone());
    fixture.compare("output.running_variance", running.variance.clone());
    check(&fixture, "batch_eval", batch(), |norm, x| {
        norm.forward_evaluation(x, &running)
    });
    let layer = LayerNorm::new(CHANNELS, EPSILON, &device);
    check(&fixture, "layer", layer, |norm, x| norm.forward(x));
    let instance = GroupNorm::instance(CHANNELS, EPSILON, &device);
    check(&fixture, "instance", instance, |norm, x| norm.forward(x));
    let group = GroupNorm::new(2, CHANNELS, EPSILON, &device);
    check(&fixture, "group", group, |norm, x| norm.forward(x));
    let rms = RmsNorm::new(CHANNELS, EPSILON, &device);
    check(&fixture, "rms", rms, |norm, x| norm.forward(x));
}

#[test]
fn a_convolution_matches_pytorch() {
    let fixture = Fixture::read("convolution");
    let device = Device::flex().autodiff();
    let layer = Convolution::new(3, 4, 5, &mut Init::zeros(), &device);
    let layer = parameters::replace(layer, |name, _| {
        let values = fixture.floats(&format!("weight.{name}"));
        let count = values.len();
        Tensor::from_data(TensorData::new(values, [count]), &Device::flex())
    });
    let x = fixture.tensor::<3>("input.x", &device).require_grad();
    let out = layer.forward(x.clone(), Precision::F32);
    fixture.compare("output.y", out.clone());
    let weighted = out * fixture.tensor::<3>("input.out_weights", &device);
    let gradients = weighted.sum().backward();
    fixture.compare("gradient.x", x.grad(&gradients).expect("a gradient"));
    for (name, gradient) in parameters::gradients(&layer, gradients) {
        fixture.compare(&format!("gradient.{name}"), gradient);
    }
}

#[test]
fn every_activation_matches_pytorch() {
    let fixture = Fixture::read("activations");
    let device = Device::flex().autodiff();
    let check = |name: &str, function: &dyn Fn(Tensor<2>) -> Tensor<2>| {
        let x = fixture.tensor::<2>("input.x", &device).require_grad();
        let out = function(x.clone());
        fixture.compare(&format!("output.{name}"), out.clone());
        let weighted = out * fixture.tensor::<2>(&format!("input.{name}"), &device);
        let gradients = weighted.sum().backward();
        let gradient = x.grad(&gradients).expect("a gradient");
        fixture.compare(&format!("gradient.{name}"), gradient);
    };
    for (name, function) in Elementwise::ALL {
        check(name, &|x| function.apply(x));
    }
    for (name, function) in Joint::ALL {
        check(name, &|x| function.apply(x));
    }
    let functions = Elementwise::ALL.len() + Joint::ALL.len();
    assert_eq!(fixture.count("output."), functions);
}

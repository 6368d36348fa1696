//! ViT is Hugging Face's ViT: outputs, losses and every gradient; merging tokens is ToMe, and `tomesd` in a diffusion
//! model. From the fixtures that `fixtures/make_vit.py` wrote.

mod fixture;

use attentive_model::config::VitConfig;
use attentive_nn::{
    attention::merging::{Merging, Sides},
    models::vit::Vit,
    parameters,
    pass::Pass,
};
use burn::tensor::{Device, Int, Tensor, TensorData, activation::log_softmax};

use fixture::Fixture;

fn model(fixture: &Fixture, device: &Device) -> Vit {
    let mut keys = fixture.config.clone();
    keys.as_object_mut().expect("keys").remove("merge");
    let config: VitConfig = serde_json::from_value(keys).expect("a config");
    parameters::replace(Vit::zeros(&config, device), |name, _| {
        let values = fixture.floats(&format!("weight.{name}"));
        let count = values.len();
        Tensor::from_data(TensorData::new(values, [count]), &Device::flex())
    })
}

/// `Pass::inspection` runs the composed attention, `Pass::evaluation` the fused one.
#[test]
fn vit_is_the_vit_of_hugging_face() {
    let fixture = Fixture::read("vit");
    let device = Device::flex().autodiff();
    let model = model(&fixture, &device);
    for pass in [&mut Pass::inspection(), &mut Pass::evaluation()] {
        let images: Tensor<4> = fixture.tensor("input.images", &device);
        let output = model.forward(images, &[], pass);
        for (layer, weights) in output.weights.into_iter().enumerate() {
            fixture.compare(&format!("output.weights.{layer}"), weights);
        }
        let logits = model.logits(output.class, pass.precision);
        fixture.compare("output.logits", logits.clone());
        let classes = Tensor::<2, Int>::from_data([[2], [0]], &device);
        let loss = log_softmax(logits, 1).gather(1, classes).sum() / -2.0;
        fixture.compare("output.loss", loss.clone());
        let gradients = parameters::gradients(&model, loss.backward());
        assert_eq!(gradients.len(), fixture.count("gradient."));
        for (name, gradient) in gradients {
            fixture.compare(&format!("gradient.{name}"), gradient);
        }
    }
}

#[test]
fn merging_tokens_in_a_vit_matches_the_reference() {
    let fixture = Fixture::read("vit_merged");
    let device = Device::flex();
    let model = model(&fixture, &device);
    let merge = fixture.config["merge"].as_u64().expect("a number") as usize;
    let merge = vec![merge; model.layers.len()];
    for pass in [&mut Pass::inspection(), &mut Pass::evaluation()] {
        let images: Tensor<4> = fixture.tensor("input.images", &device);
        let output = model.forward(images, &merge, pass);
        fixture.compare("output.class", output.class.clone());
        fixture.compare("output.logits", model.logits(output.class, pass.precision));
        let expected = fixture.sizes("output.places");
        let rows = expected.chunks(expected.len() / 2).enumerate();
        for (row, expected) in rows {
            let mut places: Vec<usize> = (0..expected.len()).collect();
            for merging in &output.merged {
                places
                    .iter_mut()
                    .for_each(|place| *place = merging.places(row)[*place]);
            }
            assert_eq!(places, expected);
        }
    }
}

#[test]
fn merging_squares_of_an_image_and_copying_back_matches_the_reference() {
    let fixture = Fixture::read("squares");
    let size = |key: &str| fixture.config[key].as_u64().expect("a number") as usize;
    let x: Tensor<3> = fixture.tensor("input.tokens", &Device::flex());
    let [batch, len, _] = x.dims();
    let merging = Merging::of(x.clone(), &Sides::squares(size("side"), 0), size("count"));
    let (merged, _) = merging.merge(x, &vec![1.0; batch * len]);
    fixture.compare("output.merged", merged.clone());
    fixture.compare("output.back", merging.unmerge(merged));
}

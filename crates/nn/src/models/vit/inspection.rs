//! What a ViT makes of images, as plain numbers: classes, attention weights, merged tokens.
//!
//! For those who show or print it (`attentive-pictures`, the command line) and know no tensors.

use burn::tensor::{Tensor, TensorData, activation::softmax};

use super::Vit;
use crate::pass::Pass;

/// What one image did to a ViT.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspection {
    /// The probability of each class.
    pub probabilities: Vec<f32>,
    /// The attention weights of each head of each layer, row by row: queries are rows, and the class token is the
    /// first of both. Where tokens are merged there are fewer in each layer.
    pub layers: Vec<Vec<Vec<f32>>>,
    /// After each layer: which token every patch is a part of. Empty where none are merged.
    pub groups: Vec<Vec<usize>>,
}

impl Vit {
    /// The probabilities of the classes of each image: `values` are `[count, channels, size, size]`, normalized.
    pub fn classify(&self, values: Vec<f32>, shape: [usize; 4], merge: &[usize]) -> Vec<Vec<f32>> {
        let images = Tensor::<4>::from_data(TensorData::new(values, shape), &self.device());
        let pass = &mut Pass::evaluation();
        let class = self.forward(images, merge, pass).class;
        self.probabilities(class)
    }

    /// All that can be known about one image, `[channels, size, size]`.
    pub fn inspect(&self, values: Vec<f32>, shape: [usize; 3], merge: &[usize]) -> Inspection {
        let [channels, height, width] = shape;
        let data = TensorData::new(values, [1, channels, height, width]);
        let images = Tensor::<4>::from_data(data, &self.device());
        let output = self.forward(images, merge, &mut Pass::inspection());
        let layers = output.weights.iter().map(|weights| {
            let [_, heads, rows, columns] = weights.dims();
            let values: Vec<f32> = weights.clone().into_data().iter::<f32>().collect();
            let of_head = values.chunks(rows * columns).take(heads);
            of_head.map(<[f32]>::to_vec).collect()
        });
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for merging in &output.merged {
            let places = merging.places(0);
            groups.push(match groups.last() {
                None => places[1..].to_vec(),
                Some(before) => before.iter().map(|group| places[*group]).collect(),
            });
        }
        Inspection {
            layers: layers.collect(),
            groups,
            probabilities: self.probabilities(output.class).remove(0),
        }
    }

    fn probabilities(&self, class: Tensor<2>) -> Vec<Vec<f32>> {
        let logits = self.logits(class, Pass::evaluation().precision);
        let classes = logits.dims()[1];
        let all: Vec<f32> = softmax(logits, 1).into_data().iter::<f32>().collect();
        all.chunks(classes).map(<[f32]>::to_vec).collect()
    }
}

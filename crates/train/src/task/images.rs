//! Classifying images: images and classes, ViT, cross-entropy of the class, accuracy.
//!
//! Neighbors: [`crate::data::images`] reads the files, `attentive_nn::models::vit` computes, [`crate::trainer`] loops.

use std::path::Path;

use attentive_model::{
    config::{ModelConfig as _, VitConfig},
    directory::{AnyModelDir, ModelDir},
    tensors::TensorSpec,
};
use attentive_nn::{models::vit::Vit, ops::cross_entropy, parameters, pass::Pass};
use burn::tensor::{Device, Tensor, TensorData};

use super::{Epoch, Scores, Task};
use crate::{
    Recipe, Result,
    data::{
        corpus::refuse_missing_files,
        fingerprint::CorpusFingerprint,
        images::{ImageShape, Images, LabeledImages, normalized},
        random::SplitMix64,
    },
    distributed::Communicator,
    evaluation::share,
    events::{Event, Observer, Sample},
    recipe::LossKind,
};

/// Saying the class of an image.
#[derive(Debug)]
pub struct ImageClassification {
    recipe: Recipe,
    config: VitConfig,
    train: ClassifiedImages,
    val: ClassifiedImages,
}

/// The images that a recipe names.
#[derive(Debug, Clone, Default)]
pub struct ImageData {
    /// To learn from.
    pub train: LabeledImages,
    /// To validate on.
    pub val: LabeledImages,
    /// Tells them from any others.
    pub fingerprint: CorpusFingerprint,
}

/// Images with the number of each one's class among those of a model.
#[derive(Debug, Clone)]
pub struct ClassifiedImages {
    /// The images.
    pub images: Images,
    /// Their classes.
    pub labels: Vec<u32>,
}

/// Some images, normalized.
#[derive(Debug, Clone)]
pub struct ImageBatch {
    /// `[count, channels, size, size]`
    pub values: Vec<f32>,
    /// Their classes.
    pub labels: Vec<u32>,
}

/// The images of an epoch: where its random numbers come from.
#[derive(Debug, Clone, Copy)]
pub struct ImageEpoch {
    pub(super) epoch: u64,
}

impl ImageData {
    /// Reads the files that a recipe names, for a model that wants images of this shape.
    pub fn read(recipe: &Recipe, shape: ImageShape) -> Result<Self> {
        refuse_missing_files(recipe, |_| true)?;
        let data = &recipe.data;
        let mut fingerprint = CorpusFingerprint::default();
        let mut read = |images: &[String], labels: &[String], role, key| -> Result<_> {
            let (paths, labels) = (data.paths(images), data.paths(labels));
            let read = LabeledImages::read(&paths, &labels, shape, key)?;
            let classes = format!("{:?}", read.labels);
            let all = [read.images.pixels.as_slice(), classes.as_bytes()];
            fingerprint.add_bytes(&images.join(", "), role, read.images.count, &all);
            Ok(read)
        };
        let train = read(&data.images, &data.labels, "training images", "data.labels")?;
        let val = read(
            &data.val_images,
            &data.val_labels,
            "validation images",
            "data.val_labels",
        )?;
        Ok(Self {
            train,
            val,
            fingerprint,
        })
    }
}

impl ClassifiedImages {
    /// The images with their classes among those of a model.
    pub fn new(images: LabeledImages, classes: &[String]) -> Result<Self> {
        Ok(Self {
            labels: images.labels.among(classes)?,
            images: images.images,
        })
    }

    /// Accuracy (from 0 to 1) and mean cross-entropy of a model, each layer of which merges `merge` tokens.
    pub fn evaluate(
        &self,
        model: &Vit,
        config: &VitConfig,
        merge: &[usize],
        processes: &dyn Communicator,
    ) -> (f64, f64) {
        let shape = ImageShape::from(config);
        let all: Vec<usize> = (0..self.images.count).collect();
        let batches: Vec<&[usize]> = all.chunks(EVALUATED_TOGETHER).collect();
        let work = |indices: &&[usize]| {
            let batch =
                ImageBatch::collect(self, indices, shape, config, |_, image| image.to_vec());
            let pass = &mut Pass::evaluation();
            let output = model.forward(batch.tensor(shape, &model.device()), merge, pass);
            let logits = model.logits(output.class, pass.precision);
            let classes = logits.dims()[1];
            let loss = cross_entropy(logits.clone(), &batch.labels, 0.0).into_scalar::<f32>();
            let logits: Vec<f32> = logits.into_data().iter::<f32>().collect();
            let right = logits.chunks(classes).zip(&batch.labels);
            let right = right.filter(|(logits, label)| largest(logits) == **label as usize);
            // Bits, because JSON has no word for what is not a number.
            (right.count(), loss.to_bits())
        };
        let found = share(&batches, processes, work);
        let count = self.images.count.max(1) as f64;
        let right: usize = found.iter().map(|(right, _)| right).sum();
        let loss: f64 = found
            .iter()
            .map(|(_, bits)| f64::from(f32::from_bits(*bits)))
            .sum();
        (right as f64 / count, loss / count)
    }
}

/// Images of a batch when nothing is kept for a backward pass.
const EVALUATED_TOGETHER: usize = 128;

/// Where the largest number stands.
pub fn largest(values: &[f32]) -> usize {
    let places = values.iter().enumerate();
    places
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map_or(0, |(place, _)| place)
}

impl ImageBatch {
    /// These images, each as `changed` gives it.
    pub fn collect(
        all: &ClassifiedImages,
        indices: &[usize],
        shape: ImageShape,
        config: &VitConfig,
        changed: impl Fn(usize, &[u8]) -> Vec<u8>,
    ) -> Self {
        let images = indices.iter();
        let pixels: Vec<u8> = images
            .flat_map(|index| changed(*index, all.images.image(*index, shape)))
            .collect();
        Self {
            values: normalized(&pixels, shape.size, &config.mean, &config.deviation),
            labels: indices.iter().map(|index| all.labels[*index]).collect(),
        }
    }

    /// `[count, channels, size, size]`
    pub fn tensor(&self, shape: ImageShape, device: &Device) -> Tensor<4> {
        let ImageShape { size, channels, .. } = shape;
        let shape = [self.labels.len(), channels, size, size];
        Tensor::from_data(TensorData::new(self.values.clone(), shape), device)
    }
}

/// The image moved by up to `most` pixels in each direction, by chance; what comes in is black.
pub(super) fn shifted(image: &[u8], size: usize, most: usize, random: &mut SplitMix64) -> Vec<u8> {
    if most == 0 {
        return image.to_vec();
    }
    let [dy, dx] = [(); 2].map(|()| random.below(2 * most + 1) as isize - most as isize);
    let inside = |at: usize, by: isize| at.checked_add_signed(-by).filter(|from| *from < size);
    let mut moved = vec![0; image.len()];
    for (from, to) in image.chunks(size * size).zip(moved.chunks_mut(size * size)) {
        for y in 0..size {
            let Some(row) = inside(y, dy) else { continue };
            for x in 0..size {
                if let Some(column) = inside(x, dx) {
                    to[y * size + x] = from[row * size + column];
                }
            }
        }
    }
    moved
}

/// All images in a random order, in batches.
pub(super) fn shuffled(recipe: &Recipe, count: usize, epoch: u64) -> Epoch<ImageEpoch> {
    let training = &recipe.training;
    let mut order: Vec<usize> = (0..count).collect();
    SplitMix64::new(&[training.seed, epoch]).shuffle(&mut order);
    let batches = order.chunks(training.batch_size).map(<[usize]>::to_vec);
    Epoch {
        examples: ImageEpoch { epoch },
        plan: Box::new(batches.collect::<Vec<_>>()),
        padding: 0.0,
    }
}

/// The names of the classes: the recipe's, or those of the data.
pub(super) fn classes(given: &[String], data: &ImageData) -> Vec<String> {
    if given.is_empty() {
        data.train.labels.classes()
    } else {
        given.to_vec()
    }
}

impl Task for ImageClassification {
    type Model = Vit;
    type Data = ImageData;
    type Examples = ImageEpoch;
    type Batch = ImageBatch;

    fn read(recipe: &Recipe) -> Result<ImageData> {
        let config: VitConfig = super::any_config(recipe)?;
        ImageData::read(recipe, ImageShape::from(&config))
    }

    fn fingerprint(data: &ImageData) -> &CorpusFingerprint {
        &data.fingerprint
    }

    fn begin(
        recipe: &Recipe,
        data: ImageData,
        device: &Device,
        observer: &mut dyn Observer,
    ) -> Result<(Self, Vit)> {
        let folder = &recipe.training.start_from;
        if folder.is_empty() {
            let task = Self::new(recipe, data)?;
            let model = Vit::new(&task.config, recipe.training.seed, device);
            return Ok((task, model));
        }
        observer.event(&Event::Preparing("reading the model to start from"));
        let given = AnyModelDir::open(folder)?;
        let config: &VitConfig = given.config_of()?;
        let task = Self::new(recipe, data)?;
        super::refuse_other_sizes(&given.path, config, &task.config, &[])?;
        let model = Vit::load(&task.config, &ModelDir::weights_path(&given.path), device)?;
        Ok((task, model))
    }

    fn resume(
        recipe: &Recipe,
        data: ImageData,
        _checkpoint: &Path,
        _observer: &mut dyn Observer,
    ) -> Result<Self> {
        Self::new(recipe, data)
    }

    fn description(&self) -> Vec<(&'static str, String)> {
        let VitConfig {
            image_size,
            channels,
            ..
        } = self.config;
        let channels = if channels == 1 { "gray" } else { "color" };
        let mut lines = vec![(
            "training",
            format!(
                "{} images of {image_size} x {image_size} pixels, {channels}",
                self.train.images.count
            ),
        )];
        if self.validates() {
            lines.push(("validation", format!("{} images", self.val.images.count)));
        }
        let labels = &self.config.labels;
        let some = labels[..labels.len().min(10)].join(", ");
        lines.push(("classes", format!("{}: {some}", labels.len())));
        lines
    }

    fn d_model(&self) -> usize {
        self.config.d_model
    }

    fn tensors(&self) -> Vec<TensorSpec> {
        self.config.tensors()
    }

    fn epoch(&self, epoch: u64) -> Result<Epoch<ImageEpoch>> {
        Ok(shuffled(&self.recipe, self.train.images.count, epoch))
    }

    fn batch(&self, examples: &ImageEpoch, indices: &[usize]) -> Result<ImageBatch> {
        let (shape, most) = (self.shape(), self.recipe.augmentation.shift);
        let seed = self.recipe.training.seed;
        let moved = |index: usize, image: &[u8]| {
            let key = [seed, examples.epoch, 1 + index as u64];
            shifted(image, shape.size, most, &mut SplitMix64::new(&key))
        };
        Ok(ImageBatch::collect(
            &self.train,
            indices,
            shape,
            &self.config,
            moved,
        ))
    }

    fn targets(batch: &ImageBatch) -> usize {
        batch.labels.len()
    }

    fn loss(&self, model: &Vit, batch: &ImageBatch, _epoch: u64, pass: &mut Pass) -> Tensor<1> {
        let images = batch.tensor(self.shape(), &model.device());
        let class = model.forward(images, &[], pass).class;
        let training = &self.recipe.training;
        let smoothing = match training.loss {
            LossKind::LabelSmoothing => training.label_smoothing,
            LossKind::CrossEntropy => 0.0,
        };
        cross_entropy(
            model.logits(class, pass.precision),
            &batch.labels,
            smoothing,
        )
    }

    fn validates(&self) -> bool {
        self.val.images.count > 0
    }

    fn validate(&self, model: &Vit, processes: &dyn Communicator) -> Result<Scores> {
        let (accuracy, loss) = self.val.evaluate(model, &self.config, &[], processes);
        Ok(Scores {
            loss,
            metrics: vec![("accuracy", accuracy)],
            score: accuracy,
            samples: self.samples(model),
        })
    }

    fn load_model(&self, dir: &Path, device: &Device) -> Result<Vit> {
        Ok(Vit::load(
            &self.config,
            &ModelDir::weights_path(dir),
            device,
        )?)
    }

    fn save_model(&self, dir: &Path, model: &Vit) -> Result<()> {
        let tensors = parameters::export(model);
        let list = super::listed(&tensors);
        Ok(AnyModelDir::save(dir, &self.config, list)?)
    }
}

impl ImageClassification {
    fn new(recipe: &Recipe, data: ImageData) -> Result<Self> {
        let given: VitConfig = super::any_config(recipe)?;
        let labels = classes(&given.labels, &data);
        let config = super::checked(VitConfig { labels, ..given })?;
        Ok(Self {
            recipe: recipe.clone(),
            train: ClassifiedImages::new(data.train, &config.labels)?,
            val: ClassifiedImages::new(data.val, &config.labels)?,
            config,
        })
    }

    fn shape(&self) -> ImageShape {
        ImageShape::from(&self.config)
    }

    /// The first images of the validation data, and what the model makes of them.
    fn samples(&self, model: &Vit) -> Vec<Sample> {
        let count = self.recipe.validation.samples.min(self.val.images.count);
        let indices: Vec<usize> = (0..count).collect();
        if indices.is_empty() {
            return Vec::new();
        }
        let keep = |_: usize, image: &[u8]| image.to_vec();
        let batch = ImageBatch::collect(&self.val, &indices, self.shape(), &self.config, keep);
        let (size, channels) = (self.config.image_size, self.config.channels);
        let found = model.classify(batch.values, [count, channels, size, size], &[]);
        let name = |class: usize| &self.config.labels[class];
        let sample = |(index, probabilities): (usize, Vec<f32>)| {
            let class = largest(&probabilities);
            Sample {
                source: format!("validation image {}", index + 1),
                reference: name(batch.labels[index] as usize).clone(),
                output: format!("{} ({:.2})", name(class), probabilities[class]),
            }
        };
        found.into_iter().enumerate().map(sample).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shifted_image_moves_and_black_comes_in() {
        let image: Vec<u8> = (1..=9).collect();
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let moved = shifted(&image, 3, 1, &mut SplitMix64::new(&[seed]));
            // The middle stays within the image whatever the direction.
            assert!(moved.contains(&5), "{moved:?}");
            seen.insert(moved);
        }
        assert_eq!(seen.len(), 9);
        assert!(seen.contains(&vec![5, 6, 0, 8, 9, 0, 0, 0, 0]));
        assert_eq!(shifted(&image, 3, 0, &mut SplitMix64::new(&[1])), image);
    }
}

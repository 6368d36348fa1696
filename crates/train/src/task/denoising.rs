//! Learning to take noise out of images: DDPM (Ho et al. 2020), told the class of the image.
//!
//! Each image of a batch gets a random step and random noise, and the model is asked for the velocity, from which image
//! and noise follow (`attentive_nn::models::diffusion::noise`); the loss is the mean squared error. Some images lose their class, so that the model learns what any image looks like, which guidance
//! needs. Neighbors: [`super::images`] reads the same data, `attentive_nn::models::diffusion` computes.

use std::path::Path;

use attentive_model::{
    config::{DiffusionConfig, ModelConfig as _},
    directory::{AnyModelDir, ModelDir},
    tensors::TensorSpec,
};
use attentive_nn::{
    models::diffusion::{
        Diffusion,
        noise::{NoiseSchedule, gaussian},
    },
    parameters,
    pass::Pass,
};
use burn::tensor::{Device, Tensor, TensorData};

use super::{
    Epoch, Scores, Task,
    images::{ClassifiedImages, ImageData, ImageEpoch, classes, shifted, shuffled},
};
use crate::{
    Recipe, Result,
    data::{
        fingerprint::CorpusFingerprint,
        images::{ImageShape, normalized},
        random::SplitMix64,
    },
    distributed::Communicator,
    evaluation::share,
    events::{Event, Observer},
};

/// Finding image and noise in a noisy image.
#[derive(Debug)]
pub struct Denoising {
    recipe: Recipe,
    config: DiffusionConfig,
    schedule: NoiseSchedule,
    train: ClassifiedImages,
    val: ClassifiedImages,
}

/// Some images with noise.
#[derive(Debug, Clone)]
pub struct NoisyBatch {
    /// `[count, channels, size, size]`
    noisy: Vec<f32>,
    /// What is to be found.
    velocity: Vec<f32>,
    steps: Vec<usize>,
    classes: Vec<Option<usize>>,
}

/// What image values between 0 and 1 become: between -1 and 1.
const MIDDLE: f64 = 0.5;

impl Task for Denoising {
    type Model = Diffusion;
    type Data = ImageData;
    type Examples = ImageEpoch;
    type Batch = NoisyBatch;

    fn read(recipe: &Recipe) -> Result<ImageData> {
        let config: DiffusionConfig = super::any_config(recipe)?;
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
    ) -> Result<(Self, Diffusion)> {
        let task = Self::new(recipe, data)?;
        let folder = &recipe.training.start_from;
        if folder.is_empty() {
            let model = Diffusion::new(&task.config, recipe.training.seed, device);
            return Ok((task, model));
        }
        observer.event(&Event::Preparing("reading the model to start from"));
        let given = AnyModelDir::open(folder)?;
        super::refuse_other_sizes(
            &given.path,
            given.config_of::<DiffusionConfig>()?,
            &task.config,
            &[],
        )?;
        let model = task.load_model(&given.path, device)?;
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
        let size = self.config.image_size;
        let count = self.train.images.count;
        let mut lines = vec![(
            "training",
            format!("{count} images of {size} x {size} pixels"),
        )];
        if self.validates() {
            lines.push(("validation", format!("{} images", self.val.images.count)));
        }
        lines.push(("classes", self.config.labels.len().to_string()));
        lines
    }

    fn d_model(&self) -> usize {
        self.config.width()
    }

    fn tensors(&self) -> Vec<TensorSpec> {
        self.config.tensors()
    }

    fn epoch(&self, epoch: u64) -> Result<Epoch<ImageEpoch>> {
        Ok(shuffled(&self.recipe, self.train.images.count, epoch))
    }

    fn batch(&self, examples: &ImageEpoch, indices: &[usize]) -> Result<NoisyBatch> {
        let dropped = self.recipe.training.class_dropout;
        let most = self.recipe.augmentation.shift;
        Ok(self.noisy(&self.train, indices, examples.epoch, dropped, most))
    }

    fn targets(batch: &NoisyBatch) -> usize {
        batch.steps.len()
    }

    fn loss(
        &self,
        model: &Diffusion,
        batch: &NoisyBatch,
        _epoch: u64,
        pass: &mut Pass,
    ) -> Tensor<1> {
        self.squared_error(model, batch, pass)
    }

    fn validates(&self) -> bool {
        self.val.images.count > 0
    }

    /// Every image with one step and one noise that never change.
    fn validate(&self, model: &Diffusion, processes: &dyn Communicator) -> Result<Scores> {
        let all: Vec<usize> = (0..self.val.images.count).collect();
        let batches: Vec<&[usize]> = all.chunks(VALIDATED_TOGETHER).collect();
        let errors = share(&batches, processes, |indices| {
            let batch = self.noisy(&self.val, indices, u64::MAX, 0.0, 0);
            let error = self.squared_error(model, &batch, &mut Pass::evaluation());
            // Bits, because JSON has no word for what is not a number.
            error.into_scalar::<f32>().to_bits()
        });
        let sum: f64 = errors
            .iter()
            .map(|bits| f64::from(f32::from_bits(*bits)))
            .sum();
        let loss = sum / all.len().max(1) as f64;
        Ok(Scores {
            loss,
            metrics: Vec::new(),
            score: -loss,
            samples: Vec::new(),
        })
    }

    fn load_model(&self, dir: &Path, device: &Device) -> Result<Diffusion> {
        let file = ModelDir::weights_path(dir);
        Ok(Diffusion::load(&self.config, &file, device)?)
    }

    fn save_model(&self, dir: &Path, model: &Diffusion) -> Result<()> {
        let tensors = parameters::export(model);
        let list = super::listed(&tensors);
        Ok(AnyModelDir::save(dir, &self.config, list)?)
    }
}

/// Images of a batch when nothing is kept for a backward pass.
const VALIDATED_TOGETHER: usize = 64;

impl Denoising {
    fn new(recipe: &Recipe, data: ImageData) -> Result<Self> {
        let given: DiffusionConfig = super::any_config(recipe)?;
        let labels = classes(&given.labels, &data);
        let config = super::checked(DiffusionConfig { labels, ..given })?;
        Ok(Self {
            recipe: recipe.clone(),
            schedule: NoiseSchedule::cosine(config.timesteps),
            train: ClassifiedImages::new(data.train, &config.labels)?,
            val: ClassifiedImages::new(data.val, &config.labels)?,
            config,
        })
    }

    /// Images with noise: a pure function of recipe, epoch and image.
    fn noisy(
        &self,
        all: &ClassifiedImages,
        indices: &[usize],
        epoch: u64,
        dropped: f64,
        most: usize,
    ) -> NoisyBatch {
        let shape = ImageShape::from(&self.config);
        let channels = vec![MIDDLE; shape.channels];
        let mut batch = NoisyBatch {
            noisy: Vec::with_capacity(indices.len() * shape.values()),
            velocity: Vec::with_capacity(indices.len() * shape.values()),
            steps: Vec::new(),
            classes: Vec::new(),
        };
        for index in indices {
            let key = [self.recipe.training.seed, epoch, 1 + *index as u64];
            let mut random = SplitMix64::new(&key);
            let image = shifted(
                all.images.image(*index, shape),
                shape.size,
                most,
                &mut random,
            );
            let image = normalized(&image, shape.size, &channels, &channels);
            let step = random.below(self.schedule.steps());
            let told = !random.chance(dropped);
            let noise = gaussian(random.next_u64(), shape.values());
            let (noisy, velocity) = self.schedule.noisy(&image, &noise, step);
            batch.noisy.extend(noisy);
            batch.velocity.extend(velocity);
            batch.steps.push(step);
            batch
                .classes
                .push(told.then_some(all.labels[*index] as usize));
        }
        batch
    }

    /// The mean over the values of an image, summed over the images. `[1]`
    fn squared_error(&self, model: &Diffusion, batch: &NoisyBatch, pass: &mut Pass) -> Tensor<1> {
        let ImageShape { size, channels, .. } = ImageShape::from(&self.config);
        let shape = [batch.steps.len(), channels, size, size];
        let device = model.device();
        let tensor = |values: &Vec<f32>| -> Tensor<4> {
            Tensor::from_data(TensorData::new(values.clone(), shape), &device)
        };
        let found = model.forward(
            tensor(&batch.noisy),
            &batch.steps,
            &batch.classes,
            None,
            pass,
        );
        let difference = found - tensor(&batch.velocity);
        let sum = (difference.clone() * difference).sum();
        sum.div_scalar((channels * size * size) as f64)
    }
}

//! From noise to images: DDIM sampling (Song et al. 2021) with classifier-free guidance (Ho and Salimans 2022).
//!
//! A few steps of the schedule, evenly spaced, from the last to the first. In each, the predicted velocity says what
//! the image probably is; image and noise are mixed anew for the step before. Nothing is random but the first noise.

use burn::tensor::{Tensor, TensorData};

use super::{
    Diffusion, MergeRatio,
    noise::{NoiseSchedule, gaussian},
};
use crate::{pass::Pass, random::mix};

/// How images are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Steps, at most those of the schedule.
    pub steps: usize,
    /// How much the class counts: 1 is the model's own prediction, more goes further from what any class would be.
    pub guidance: f64,
    /// Share of the positions that are merged; 0 for none.
    pub merge: f64,
    /// Decides the first noise.
    pub seed: u64,
}

impl Sampling {
    /// Draws an image of each class, `first` of which were drawn before with this seed. Values are between -1 and 1,
    /// image by image: `[classes, channels, size, size]`.
    pub fn draw(
        &self,
        model: &Diffusion,
        schedule: &NoiseSchedule,
        classes: &[usize],
        first: usize,
    ) -> Vec<f32> {
        let size = model.side * model.patch_size;
        let values = model.channels * size * size;
        let count = classes.len();
        let key = |image: usize| mix(mix(self.seed) ^ (first + image) as u64);
        let mut x: Vec<f32> = (0..count)
            .flat_map(|image| gaussian(key(image), values))
            .collect();
        let steps = self.steps.clamp(1, schedule.steps());
        let place = |step: usize| (step + 1) * schedule.steps() / steps - 1;
        for step in (0..steps).rev() {
            let merge = (self.merge > 0.0).then_some(MergeRatio {
                ratio: self.merge,
                corner: step % 4,
            });
            let velocity = self.predict(model, &x, place(step), classes, merge);
            let now = schedule.kept(Some(place(step)));
            let before = schedule.kept(step.checked_sub(1).map(place));
            for (x, velocity) in x.iter_mut().zip(velocity) {
                let image = now.sqrt() * f64::from(*x) - (1.0 - now).sqrt() * f64::from(velocity);
                let image = image.clamp(-1.0, 1.0);
                // The noise that goes with the image after it was kept within its bounds.
                let noise = (f64::from(*x) - now.sqrt() * image) / (1.0 - now).sqrt();
                *x = (before.sqrt() * image + (1.0 - before).sqrt() * noise) as f32;
            }
        }
        x
    }

    /// The velocity of the images; with guidance, further from what it would be for any class.
    fn predict(
        &self,
        model: &Diffusion,
        x: &[f32],
        step: usize,
        classes: &[usize],
        merge: Option<MergeRatio>,
    ) -> Vec<f32> {
        let guided = self.guidance != 1.0;
        let count = classes.len();
        let mut told: Vec<Option<usize>> = classes.iter().copied().map(Some).collect();
        let mut images = x.to_vec();
        if guided {
            told.extend(vec![None; count]);
            images.extend_from_slice(x);
        }
        let size = model.side * model.patch_size;
        let shape = [told.len(), model.channels, size, size];
        let images = Tensor::<4>::from_data(TensorData::new(images, shape), &model.device());
        let steps = vec![step; told.len()];
        let found = model.forward(images, &steps, &told, merge, &mut Pass::evaluation());
        let mut found: Vec<f32> = found.into_data().iter::<f32>().collect();
        if guided {
            let any = found.split_off(x.len());
            for (found, any) in found.iter_mut().zip(any) {
                *found = any + self.guidance as f32 * (*found - any);
            }
        }
        found
    }
}

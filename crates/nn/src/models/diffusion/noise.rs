//! How an image becomes noise, step by step: the cosine schedule (Nichol and Dhariwal 2021).
//!
//! `noisy = sqrt(kept) * image + sqrt(1 - kept) * noise`, where `kept` falls from 1 to 0 over the steps. What the model
//! learns is the velocity `sqrt(kept) * noise - sqrt(1 - kept) * image` (Salimans and Ho 2022), from which image and
//! noise follow. Paper (Ho et al. 2020): the noise itself. Here: the velocity, because it asks for the image where there
//! is much noise, and only there does the class of the image matter. Neighbor: [`super::sampling`] takes noise out.

use crate::random::mix;

/// The shares of the image in each step.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseSchedule {
    kept: Vec<f64>,
}

impl NoiseSchedule {
    /// The schedule of so many steps.
    pub fn cosine(steps: usize) -> Self {
        let level = |step: usize| {
            let at = (step as f64 / steps as f64 + 0.008) / 1.008;
            (at * std::f64::consts::FRAC_PI_2).cos().powi(2)
        };
        // No step loses more than 0.999 of what is left, as in the paper.
        let mut kept = Vec::with_capacity(steps);
        let mut product = 1.0;
        for step in 0..steps {
            product *= (level(step + 1) / level(step)).max(0.001);
            kept.push(product);
        }
        Self { kept }
    }

    /// How many steps there are.
    pub fn steps(&self) -> usize {
        self.kept.len()
    }

    /// The share of the image's variance that is left after a step, counted from 0; before the first one, all of it.
    pub fn kept(&self, step: Option<usize>) -> f64 {
        step.map_or(1.0, |step| self.kept[step])
    }

    /// The image after a step, and its velocity there.
    pub fn noisy(&self, image: &[f32], noise: &[f32], step: usize) -> (Vec<f32>, Vec<f32>) {
        let kept = self.kept[step];
        let (signal, rest) = (kept.sqrt() as f32, (1.0 - kept).sqrt() as f32);
        let both = image.iter().zip(noise);
        both.map(|(image, noise)| (signal * image + rest * noise, signal * noise - rest * image))
            .unzip()
    }
}

/// Normally distributed numbers that depend on the key only.
pub fn gaussian(key: u64, count: usize) -> Vec<f32> {
    let unit = |i: u64| (mix(key.wrapping_add(i)) >> 11) as f64 / (1u64 << 53) as f64;
    let number = |i: u64| {
        // Box and Muller (1958): a radius and an angle.
        let radius = (-2.0 * (1.0 - unit(2 * i)).ln()).sqrt();
        (radius * (std::f64::consts::TAU * unit(2 * i + 1)).cos()) as f32
    };
    (0..count as u64).map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_goes_from_everything_to_nothing() {
        let schedule = NoiseSchedule::cosine(1000);
        assert!(schedule.kept(Some(0)) > 0.999 && schedule.kept(Some(999)) < 1e-4);
        assert!((schedule.kept(Some(499)) - 0.4924).abs() < 0.01);
        assert!(schedule.kept.windows(2).all(|pair| pair[1] < pair[0]));
        assert_eq!(schedule.kept(None), 1.0);
    }

    #[test]
    fn image_and_noise_follow_from_the_noisy_image_and_its_velocity() {
        let schedule = NoiseSchedule::cosine(10);
        let (image, noise) = ([0.5f32, -1.0], [1.5f32, 0.25]);
        for step in 0..10 {
            let (noisy, velocity) = schedule.noisy(&image, &noise, step);
            let kept = schedule.kept(Some(step));
            let (signal, rest) = (kept.sqrt() as f32, (1.0 - kept).sqrt() as f32);
            for i in 0..2 {
                let found = signal * noisy[i] - rest * velocity[i];
                assert!((found - image[i]).abs() < 1e-5, "{found}");
                let found = rest * noisy[i] + signal * velocity[i];
                assert!((found - noise[i]).abs() < 1e-5, "{found}");
            }
        }
    }

    #[test]
    fn noise_has_its_moments_and_depends_on_its_key() {
        let noise = gaussian(7, 20_000);
        let mean = noise.iter().sum::<f32>() / 20_000.0;
        let variance = noise.iter().map(|v| v * v).sum::<f32>() / 20_000.0;
        assert!(
            mean.abs() < 0.03 && (variance - 1.0).abs() < 0.03,
            "{mean} {variance}"
        );
        assert_eq!(gaussian(7, 9), noise[..9]);
        assert_ne!(gaussian(8, 9), noise[..9]);
    }
}

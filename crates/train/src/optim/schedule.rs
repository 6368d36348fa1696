//! The learning rate as a pure function of the step (§5.3).
//!
//! No state: a continued run asks for step 5001 and gets what an uninterrupted one got. The values
//! come from the recipe's `[schedule]`; the trainer asks once per step.

use crate::recipe::{ScheduleKind, ScheduleSection, ScheduleUnit};

/// A learning-rate curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    settings: ScheduleSection,
    d_model: usize,
    /// What one step counts for in the schedule's unit.
    stride: usize,
}

impl Schedule {
    /// The curve that a recipe describes; `noam` scales it by the width of the model.
    pub fn new(settings: &ScheduleSection, d_model: usize) -> Self {
        Schedule {
            settings: settings.clone(),
            d_model,
            stride: 1,
        }
    }

    /// The same curve for a run that makes a step of so many batches.
    pub fn accumulating(mut self, batches: usize) -> Self {
        self.stride = match self.settings.unit {
            ScheduleUnit::Steps => 1,
            ScheduleUnit::Batches => batches,
        };
        self
    }

    /// The last step that learns anything, if the curve comes down to nothing.
    pub fn last_step(&self) -> Option<usize> {
        let last = self.settings.total_steps.saturating_sub(1) / self.stride;
        match self.settings.kind {
            ScheduleKind::Cosine | ScheduleKind::Trapezoid => {
                (self.settings.min_learning_rate == 0.0).then_some(last)
            }
            ScheduleKind::OneCycle => Some(self.settings.total_steps / self.stride),
            _ => None,
        }
    }

    /// The rate of a step; the first step is 1, and 0 counts as 1.
    pub fn rate(&self, step: usize) -> f64 {
        let step = (step * self.stride).max(1) as f64;
        let warmup = self.settings.warmup as f64;
        let ScheduleSection {
            factor,
            learning_rate: peak,
            min_learning_rate: min,
            ..
        } = self.settings;
        match self.settings.kind {
            // ANCHOR: noam
            ScheduleKind::Noam => {
                let width = (self.d_model as f64).powf(-0.5);
                factor * width * step.powf(-0.5).min(step * warmup.powf(-1.5))
            }
            // ANCHOR_END: noam
            ScheduleKind::OneCycle => self.one_cycle(step),
            _ if step < warmup => peak * step / warmup,
            ScheduleKind::InverseSqrt => (peak * (warmup.max(1.0) / step).sqrt()).max(min),
            ScheduleKind::Cosine => {
                let total = self.settings.total_steps as f64;
                let progress = ((step - warmup) / (total - warmup)).min(1.0);
                min + (peak - min) * half_cosine(progress)
            }
            ScheduleKind::Trapezoid => {
                let left = (self.settings.total_steps as f64 - step).max(0.0);
                let falling = (left / self.settings.decay as f64).min(1.0);
                min + (peak - min) * falling
            }
            ScheduleKind::CosineRestarts => {
                let (within, length) = self.cycle(step - warmup.max(1.0));
                min + (peak - min) * half_cosine(within / length)
            }
            ScheduleKind::Step => {
                let falls = ((step - warmup.max(1.0)) / self.settings.decay as f64).floor();
                (peak * self.settings.decay_factor.powf(falls)).max(min)
            }
            ScheduleKind::Constant => peak,
        }
    }

    /// How far a step is in its cycle, and how long that is; each is `cycle_factor` times as long as the one before.
    fn cycle(&self, step: f64) -> (f64, f64) {
        let (mut within, mut length) = (step, self.settings.cycle as f64);
        while within >= length {
            within -= length;
            length *= self.settings.cycle_factor as f64;
        }
        (within, length)
    }

    /// Smith and Topin 2018, as PyTorch has it: up from a 25th in half a cosine, and down to a 10,000th of that.
    fn one_cycle(&self, step: f64) -> f64 {
        let ScheduleSection {
            learning_rate: peak,
            warmup,
            total_steps,
            ..
        } = self.settings;
        let first = peak / 25.0;
        let (top, end) = (warmup as f64, total_steps as f64);
        if step < top {
            peak + (first - peak) * half_cosine((step - 1.0) / (top - 1.0))
        } else {
            let last = first / 1e4;
            last + (peak - last) * half_cosine(((step - top) / (end - top)).min(1.0))
        }
    }
}

/// From 1 at 0 down to 0 at 1, flat at both ends.
fn half_cosine(progress: f64) -> f64 {
    0.5 * (1.0 + (std::f64::consts::PI * progress).cos())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(kind: ScheduleKind, change: impl FnOnce(&mut ScheduleSection)) -> Schedule {
        let mut settings = ScheduleSection {
            kind,
            ..ScheduleSection::default()
        };
        change(&mut settings);
        Schedule::new(&settings, 512)
    }

    #[test]
    fn noam_peaks_at_8_1e_4_at_step_3000_for_the_reproduction() {
        let noam = schedule(ScheduleKind::Noam, |s| s.warmup = 3000);
        assert!(
            (noam.rate(3000) - 8.1e-4).abs() < 0.05e-4,
            "{}",
            noam.rate(3000)
        );
        let highest = (0..20_000).max_by(|&a, &b| noam.rate(a).total_cmp(&noam.rate(b)));
        assert_eq!(highest, Some(3000));
    }

    #[test]
    fn a_schedule_of_batches_runs_faster_than_its_steps() {
        let by_steps = schedule(ScheduleKind::Noam, |_| ());
        let by_batches = schedule(ScheduleKind::Noam, |s| s.unit = ScheduleUnit::Batches);
        assert_eq!(by_batches.clone().rate(30), by_steps.rate(30));
        assert_eq!(by_batches.accumulating(10).rate(30), by_steps.rate(300));
        assert_eq!(
            by_steps.clone().accumulating(10).rate(30),
            by_steps.rate(30)
        );
    }

    #[test]
    fn noam_is_the_formula_of_the_paper() {
        let noam = schedule(ScheduleKind::Noam, |s| s.factor = 2.0);
        for step in [1usize, 2, 100, 3999, 4000, 4001, 100_000] {
            let s = step as f64;
            let by_hand = 2.0 / 512f64.sqrt() * (1.0 / s.sqrt()).min(s / 4000f64.powf(1.5));
            assert!(
                (noam.rate(step) / by_hand - 1.0).abs() < 1e-12,
                "step {step}"
            );
        }
    }

    #[test]
    fn step_zero_counts_as_one() {
        for kind in [
            ScheduleKind::Noam,
            ScheduleKind::InverseSqrt,
            ScheduleKind::Constant,
        ] {
            let schedule = schedule(kind, |_| ());
            assert_eq!(schedule.rate(0), schedule.rate(1));
            assert!(schedule.rate(0) > 0.0);
        }
    }

    #[test]
    fn inverse_sqrt_reaches_its_peak_after_the_warmup_and_halves_at_four_times_that() {
        let curve = schedule(ScheduleKind::InverseSqrt, |s| s.warmup = 100);
        assert_eq!(curve.rate(50), 0.5e-3);
        assert_eq!(curve.rate(100), 1e-3);
        assert_eq!(curve.rate(400), 0.5e-3);
    }

    #[test]
    fn inverse_sqrt_does_not_fall_below_its_minimum() {
        let curve = schedule(ScheduleKind::InverseSqrt, |s| s.min_learning_rate = 1e-4);
        assert_eq!(curve.rate(100_000_000), 1e-4);
    }

    #[test]
    fn inverse_sqrt_without_warmup_starts_at_its_peak() {
        let curve = schedule(ScheduleKind::InverseSqrt, |s| s.warmup = 0);
        assert_eq!(curve.rate(1), 1e-3);
        assert_eq!(curve.rate(4), 0.5e-3);
    }

    #[test]
    fn cosine_goes_from_peak_over_half_to_minimum_and_stays_there() {
        let curve = schedule(ScheduleKind::Cosine, |s| {
            (s.warmup, s.total_steps, s.min_learning_rate) = (100, 300, 1e-5);
        });
        assert_eq!(curve.rate(100), 1e-3);
        assert!((curve.rate(200) - (1e-3 + 1e-5) / 2.0).abs() < 1e-12);
        assert!((curve.rate(300) - 1e-5).abs() < 1e-15);
        assert_eq!(curve.rate(300), curve.rate(5000));
    }

    #[test]
    fn trapezoid_rises_stays_and_falls_in_straight_lines() {
        let curve = schedule(ScheduleKind::Trapezoid, |s| {
            (s.warmup, s.decay, s.total_steps, s.min_learning_rate) = (10, 100, 300, 1e-4);
        });
        assert_eq!(curve.rate(5), 0.5e-3);
        assert_eq!(curve.rate(10), 1e-3);
        assert_eq!(curve.rate(200), 1e-3);
        assert!((curve.rate(250) - (1e-3 + 1e-4) / 2.0).abs() < 1e-12);
        assert!((curve.rate(300) - 1e-4).abs() < 1e-15);
        assert_eq!(curve.rate(300), curve.rate(5000));
    }

    #[test]
    fn a_curve_that_comes_down_to_nothing_has_a_last_step() {
        for kind in [ScheduleKind::Trapezoid, ScheduleKind::Cosine] {
            let down = |least| {
                schedule(kind, |s| {
                    (s.warmup, s.decay, s.total_steps) = (10, 100, 300);
                    (s.min_learning_rate, s.unit) = (least, ScheduleUnit::Batches);
                })
            };
            assert_eq!(down(0.0).last_step(), Some(299));
            assert!(down(0.0).rate(299) > 0.0 && down(0.0).rate(300) == 0.0);
            assert_eq!(down(0.0).accumulating(10).last_step(), Some(29));
            assert_eq!(down(1e-6).last_step(), None);
        }
        assert_eq!(schedule(ScheduleKind::Noam, |_| ()).last_step(), None);
    }

    /// `crates/nn/tests/fixtures/make_optimizers.py` wrote the references.
    #[test]
    fn restarts_steps_and_the_one_cycle_are_those_of_pytorch() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../nn/tests/fixtures/optimizers.json"
        );
        let fixture = std::fs::read_to_string(path).expect("the fixture");
        let fixture: serde_json::Value = serde_json::from_str(&fixture).expect("JSON");
        let curve = |kind| {
            schedule(kind, |s| {
                (s.learning_rate, s.warmup, s.total_steps) = (0.1, 0, 30);
                match kind {
                    ScheduleKind::CosineRestarts => {
                        (s.cycle, s.cycle_factor, s.min_learning_rate) = (4, 2, 0.01);
                    }
                    ScheduleKind::Step => (s.decay, s.decay_factor) = (5, 0.5),
                    _ => s.warmup = 9,
                }
            })
        };
        for (name, kind) in [
            ("cosine_restarts", ScheduleKind::CosineRestarts),
            ("step", ScheduleKind::Step),
            ("one_cycle", ScheduleKind::OneCycle),
        ] {
            let curve = curve(kind);
            let expected = fixture["schedules"][name].as_array().expect("rates");
            for (step, expected) in (1..).zip(expected) {
                let (got, expected) = (curve.rate(step), expected.as_f64().expect("a rate"));
                assert!(
                    (got - expected).abs() < 1e-7,
                    "{name} {step}: {got}, not {expected}"
                );
            }
        }
    }

    #[test]
    fn constant_is_constant_after_the_warmup() {
        let curve = schedule(ScheduleKind::Constant, |s| s.warmup = 10);
        assert_eq!(curve.rate(5), 0.5e-3);
        assert_eq!(curve.rate(10), 1e-3);
        assert_eq!(curve.rate(99_999), 1e-3);
        assert_eq!(
            schedule(ScheduleKind::Constant, |s| s.warmup = 0).rate(1),
            1e-3
        );
    }
}

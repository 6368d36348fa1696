//! Training at work: a bar where there is a terminal, plain lines in a log where there is none.
//!
//! [`TrainingProgress`] listens to the trainer's events and keeps no state that training needs.

use std::fmt;
use std::time::{Duration, Instant};

use attentive_nn::ops::Precision;
use attentive_train::Recipe;
use attentive_train::events::{Event, Observer, Sample, Started, StepReport, ValidationReport};
use indicatif::{ProgressBar, ProgressStyle};

use crate::terminal::{Look, Terminal};
use crate::wording::{count, duration};

/// Shows a run.
pub struct TrainingProgress<'t> {
    terminal: &'t Terminal,
    /// Hidden where it cannot be drawn.
    bar: ProgressBar,
    pace: Option<Pace>,
    /// What the speed counts.
    targets: &'static str,
    /// The recipe's `training.max_minutes`, in seconds.
    time_limit: Option<f64>,
}

/// From which the time left is told.
#[derive(Debug, Clone, Copy)]
struct Pace {
    began: Instant,
    first_step: u64,
    total_steps: u64,
}

/// The bar is divided into so many parts.
const PARTS: f64 = 1000.0;

impl<'t> TrainingProgress<'t> {
    /// Nothing is shown before the first event.
    pub fn new(terminal: &'t Terminal, recipe: &Recipe) -> Self {
        let minutes = recipe.training.max_minutes;
        Self {
            terminal,
            bar: ProgressBar::hidden(),
            pace: None,
            targets: match recipe.targets() {
                "texts" => "texts",
                "images" => "images",
                _ => "tok",
            },
            time_limit: (minutes > 0.0).then_some(minutes * 60.0),
        }
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn say(&self, line: impl fmt::Display) {
        self.bar.suspend(|| self.terminal.note(line));
    }

    fn draw(&mut self, length: Option<u64>, template: &str) {
        self.bar.finish_and_clear();
        if !self.terminal.can_draw() {
            return;
        }
        self.bar = match length {
            Some(length) => ProgressBar::new(length),
            None => ProgressBar::no_length(),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("━╸─"));
        }
        // So that a long validation does not look like a crash.
        self.bar.enable_steady_tick(Duration::from_millis(200));
    }

    fn preparing(&mut self, what: &str) {
        if self.terminal.can_draw() {
            self.draw(None, "{spinner} {msg}");
            self.bar.set_message(what.to_owned());
        } else {
            self.say(what);
        }
    }

    fn started(&mut self, started: &Started) {
        let (parameters, padding) = (count(started.parameters), 100.0 * started.padding);
        self.say(format_args!("run         {}", started.run.display()));
        for (name, line) in &started.description {
            self.say(format_args!("{name:<11} {line}"));
        }
        let precision = match started.precision {
            Precision::F32 => "f32",
            Precision::Bf16 => "bf16",
        };
        self.say(format_args!(
            "model       {parameters} parameters, matrix products in {precision}"
        ));
        self.say(format_args!(
            "epoch       {} batches, {padding:.1}% padding",
            count(started.batches)
        ));
        if let Some(step) = started.continued_from {
            self.say(format_args!("continuing from step {step}"));
        }
        self.pace = Some(Pace {
            began: Instant::now(),
            first_step: started.first_step,
            total_steps: started.total_steps,
        });
        self.draw(Some(PARTS as u64), "{bar:24} {percent:>3}% {wide_msg}");
    }

    fn step(&self, report: &StepReport) {
        if !self.bar.is_hidden() {
            self.bar.set_position((PARTS * self.done(report)) as u64);
            self.bar.set_message(self.line(report));
        }
    }

    /// How much of the run is done, 0 to 1.
    fn done(&self, report: &StepReport) -> f64 {
        let steps = match self.pace {
            Some(Pace { total_steps, .. }) if total_steps > 0 => {
                report.step as f64 / total_steps as f64
            }
            _ => 0.0,
        };
        let time = self.time_limit.map_or(0.0, |limit| report.seconds / limit);
        steps.max(time).min(1.0)
    }

    fn seconds_left(&self, report: &StepReport) -> Option<f64> {
        let by_steps = self.pace.and_then(|pace| {
            let made = report
                .step
                .checked_sub(pace.first_step)
                .filter(|made| *made > 0)?;
            let left = pace.total_steps.saturating_sub(report.step) as f64;
            let known = pace.total_steps > 0;
            known.then(|| pace.began.elapsed().as_secs_f64() / made as f64 * left)
        });
        let by_time = self
            .time_limit
            .map(|limit| (limit - report.seconds).max(0.0));
        match (by_steps, by_time) {
            (Some(steps), Some(time)) => Some(steps.min(time)),
            (steps, time) => steps.or(time),
        }
    }

    fn line(&self, report: &StepReport) -> String {
        let total = match self.pace {
            Some(Pace { total_steps, .. }) if total_steps > 0 => format!("/{total_steps}"),
            _ => String::new(),
        };
        let left = match self.seconds_left(report) {
            Some(seconds) => format!("  {} left", duration(seconds)),
            None => String::new(),
        };
        format!(
            "epoch {}  step {}{total}  loss {:.4}  {:.0} {}/s  lr {:.2e}{left}",
            report.epoch + 1,
            report.step,
            report.loss,
            report.tokens_per_second,
            self.targets,
            report.learning_rate,
        )
    }

    fn validated(&self, report: &ValidationReport) {
        let colors = self.terminal.colors();
        let metric = |(name, value): &(&str, f64)| match *name {
            "bleu" => format!("  BLEU {value:.2}"),
            "accuracy" => format!("  accuracy {:.2}%", 100.0 * value),
            name => format!("  {name} {value:.3}"),
        };
        let metrics: String = report.metrics.iter().map(metric).collect();
        let best = if report.improved {
            colors.paint(Look::Green, "  best so far")
        } else {
            String::new()
        };
        let seconds = duration(report.seconds);
        self.say(format_args!(
            "validation  loss {:.4}{metrics}  after {seconds}{best}",
            report.loss
        ));
        for Sample {
            source,
            reference,
            output,
        } in &report.samples
        {
            self.say(format_args!(
                "  {} {source}",
                colors.paint(Look::Dim, "source   ")
            ));
            self.say(format_args!(
                "  {} {reference}",
                colors.paint(Look::Dim, "reference")
            ));
            self.say(format_args!(
                "  {} {output}",
                colors.paint(Look::Dim, "output   ")
            ));
        }
    }
}

impl Observer for TrainingProgress<'_> {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Preparing(what) => self.preparing(what),
            Event::Started(started) => self.started(started),
            Event::Step(report) => self.step(report),
            // The bar shows the same numbers, and newer ones.
            Event::Logged(report) if self.bar.is_hidden() => self.say(self.line(report)),
            Event::Logged(_) => {}
            Event::Epoch(report) => self.say(format_args!(
                "epoch {} done  loss {:.4}  after {}",
                report.epoch + 1,
                report.loss,
                duration(report.seconds)
            )),
            Event::Validated(report) => self.validated(report),
            Event::Saved(path) if self.bar.is_hidden() => {
                self.say(format_args!("saved {}", path.display()));
            }
            Event::Saved(_) => {}
            Event::Warning(message) => self.bar.suspend(|| self.terminal.warn(message)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::Verbosity;

    fn report(step: u64, seconds: f64) -> StepReport {
        StepReport {
            step,
            epoch: 0,
            examples: 0,
            tokens: 0,
            loss: 1.25,
            learning_rate: 8.1e-4,
            gradient_norm: None,
            tokens_per_second: 4100.0,
            seconds,
        }
    }

    fn progress(terminal: &Terminal, minutes: f64, total_steps: u64) -> TrainingProgress<'_> {
        let mut recipe = Recipe::default();
        recipe.training.max_minutes = minutes;
        let mut progress = TrainingProgress::new(terminal, &recipe);
        progress.pace = Some(Pace {
            began: Instant::now(),
            first_step: 0,
            total_steps,
        });
        progress
    }

    #[test]
    fn a_line_has_what_the_user_wants_to_know() {
        let terminal = Terminal::new(Verbosity::Quiet);
        let line = progress(&terminal, 0.0, 200).line(&report(100, 50.0));
        let parts = [
            "epoch 1",
            "step 100/200",
            "loss 1.2500",
            "4100 tok/s",
            "lr 8.10e-4",
            "0:00 left",
        ];
        for part in parts {
            assert!(line.contains(part), "{part} is not in {line}");
        }
    }

    #[test]
    fn whichever_limit_comes_first_counts() {
        let terminal = Terminal::new(Verbosity::Quiet);
        let progress = progress(&terminal, 2.0, 1000);
        assert_eq!(progress.done(&report(100, 60.0)), 0.5);
        assert_eq!(progress.done(&report(900, 60.0)), 0.9);
        assert!(progress.seconds_left(&report(1, 119.0)).unwrap() <= 1.0);
    }

    #[test]
    fn an_unknown_end_is_not_guessed() {
        let terminal = Terminal::new(Verbosity::Quiet);
        let line = progress(&terminal, 0.0, 0).line(&report(7, 1.0));
        assert!(
            line.contains("step 7  ") && !line.contains("left"),
            "{line}"
        );
    }
}

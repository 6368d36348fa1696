//! `attentive plot`: what the paper draws, and how training went.

#[cfg(feature = "training")]
mod formulas;
mod lengths;
mod training;

use attentive_pictures::color::Theme;
use attentive_pictures::figure::Figure;
use clap::{Args, Subcommand};

use crate::picture::{DrawingFormat, PictureArgs};
use crate::terminal::Terminal;

/// Arguments of `plot`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PlotArgs {
    #[command(subcommand)]
    what: What,
}

const EXAMPLES: &str = "\
Examples:
  attentive plot training runs/de-en
  attentive plot schedule --out schedule.svg";

/// What to draw.
#[derive(Debug, Subcommand)]
enum What {
    /// Sinusoidal position encodings: the whole table, and a few dimensions as curves
    #[cfg(feature = "training")]
    Positions(formulas::PositionsArgs),
    /// Learning-rate schedules over the steps: the paper's for several sizes and warm-ups, or those of recipes
    #[cfg(feature = "training")]
    Schedule(formulas::ScheduleArgs),
    /// The label-smoothing target, and what it does to the loss
    #[cfg(feature = "training")]
    Smoothing(formulas::SmoothingArgs),
    /// BLEU by the length of the source, for the translations of several systems
    Lengths(lengths::LengthsArgs),
    /// Loss, BLEU, learning rate and speed of training runs, also while they run
    Training(training::TrainingArgs),
}

/// Where a plot goes.
#[derive(Debug, Args)]
struct PlotOutput {
    /// How to show it [default: by the ending of --out, else terminal]
    #[arg(long, value_enum)]
    format: Option<DrawingFormat>,
    #[command(flatten)]
    picture: PictureArgs,
}

impl PlotOutput {
    fn write(&self, figure: &Figure, terminal: &Terminal) -> anyhow::Result<()> {
        let theme = self.picture.theme(Theme::Light);
        match self.picture.format(self.format, DrawingFormat::Terminal)? {
            DrawingFormat::Terminal => {
                let text = figure.text(self.picture.screen());
                self.picture.write_text(&text)
            }
            DrawingFormat::Svg => self.picture.write_text(&figure.svg(theme)),
            DrawingFormat::Png => self.picture.write_png(&figure.svg(theme), terminal),
        }
    }
}

/// Draws.
pub fn run(args: PlotArgs, terminal: &Terminal) -> anyhow::Result<()> {
    match args.what {
        #[cfg(feature = "training")]
        What::Positions(args) => formulas::positions(args, terminal),
        #[cfg(feature = "training")]
        What::Schedule(args) => formulas::schedule(args, terminal),
        #[cfg(feature = "training")]
        What::Smoothing(args) => formulas::smoothing(args, terminal),
        What::Lengths(args) => lengths::run(args, terminal),
        What::Training(args) => training::run(args, terminal),
    }
}

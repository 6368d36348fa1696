//! What the paper draws: positions, learning rate, label smoothing. No model is needed.

use std::path::PathBuf;

use attentive_nn::layers::positions::sinusoids;
use attentive_pictures::plots;
use attentive_train::Recipe;
use attentive_train::optim::schedule::Schedule;
use attentive_train::recipe::{ScheduleKind, ScheduleSection};
use clap::Args;

use super::PlotOutput;
use crate::arguments::positive;
use crate::exit::Ending;
use crate::terminal::Terminal;

/// Arguments of `plot positions`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  attentive plot positions --d-model 128 --length 100 --out positions.svg"
)]
pub struct PositionsArgs {
    /// Width of the position vectors (d_model)
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = positive())]
    d_model: usize,
    /// Number of positions
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = positive())]
    length: usize,
    /// Dimensions to draw as curves, from 0 [default: four of them]
    #[arg(long, value_name = "DIM,DIM", value_delimiter = ',')]
    dims: Vec<usize>,
    #[command(flatten)]
    output: PlotOutput,
}

/// Arguments of `plot schedule`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  attentive plot schedule --curve 512:4000 --curve 512:8000 --curve 256:4000\n  attentive plot schedule recipes/base.toml recipes/reverse.toml --out rates.svg"
)]
pub struct ScheduleArgs {
    /// Recipes whose learning rates are drawn
    #[arg(value_name = "RECIPE")]
    recipes: Vec<PathBuf>,
    /// The paper's learning-rate schedule for this d_model and warm-up; can be repeated
    /// [default without recipes: 512:4000, 512:8000, 256:4000]
    #[arg(long, value_name = "D_MODEL:WARMUP", value_parser = width_and_warmup)]
    curve: Vec<(usize, usize)>,
    /// Factor that the paper's schedule is multiplied by
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = factor)]
    factor: f64,
    /// Number of steps
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = positive())]
    steps: usize,
    #[command(flatten)]
    output: PlotOutput,
}

/// Arguments of `plot smoothing`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  attentive plot smoothing --epsilon 0.1,0,0.3 --vocab 8 --out smoothing.svg"
)]
pub struct SmoothingArgs {
    /// Label smoothing: probability of all wrong words together; the first value is drawn as a map, all as
    /// curves
    #[arg(long, value_name = "EPS,EPS", value_delimiter = ',', default_values_t = [0.1, 0.0, 0.3])]
    epsilon: Vec<f64>,
    /// Vocabulary size of the picture
    #[arg(long, value_name = "N", default_value_t = 8)]
    vocab: usize,
    #[command(flatten)]
    output: PlotOutput,
}

/// More cells than this cannot be told apart, on paper or on a screen.
const MOST_CELLS: usize = 250_000;

/// Draws position vectors.
pub fn positions(args: PositionsArgs, terminal: &Terminal) -> anyhow::Result<()> {
    if args.length.saturating_mul(args.d_model) > MOST_CELLS {
        let (length, width) = (args.length, args.d_model);
        return Err(Ending::Usage(format!(
            "{length} positions of {width} numbers are too many to see: at most {MOST_CELLS} numbers fit"
        ))
        .into());
    }
    let device = attentive_nn::device::parse("cpu")?;
    let table = sinusoids(0, args.length, args.d_model, &device);
    let table: Vec<f32> = table.into_data().iter::<f32>().collect();
    let mut dims = args.dims.clone();
    if dims.is_empty() {
        // Beside each other and far apart.
        dims = [3, 5, 8, 12].map(|part| part * args.d_model / 32).to_vec();
        dims.dedup();
    }
    let figure = plots::positions::figure(&table, args.length, &dims).map_err(usage)?;
    args.output.write(&figure, terminal)
}

/// Draws learning rates.
pub fn schedule(args: ScheduleArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let mut curves = Vec::new();
    for path in &args.recipes {
        let recipe = Recipe::load(path, &[])?;
        let d_model = recipe.model.config.width();
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let schedule = Schedule::new(&recipe.schedule, d_model);
        curves.push((name, schedule.accumulating(recipe.training.accumulate)));
    }
    let mut pairs = args.curve.clone();
    if pairs.is_empty() && args.recipes.is_empty() {
        pairs = vec![(512, 4000), (512, 8000), (256, 4000)];
    }
    for (d_model, warmup) in pairs {
        let settings = ScheduleSection {
            kind: ScheduleKind::Noam,
            factor: args.factor,
            warmup,
            ..ScheduleSection::default()
        };
        let name = format!("width {d_model}, warm-up {warmup}");
        curves.push((name, Schedule::new(&settings, d_model)));
    }
    let steps = plots::schedule::steps(args.steps);
    let points = |(name, schedule): (String, Schedule)| {
        let points = steps.iter().map(|step| (*step, schedule.rate(*step)));
        (name, points.collect())
    };
    let figure = plots::schedule::figure(curves.into_iter().map(points).collect());
    args.output.write(&figure, terminal)
}

/// Draws the label-smoothing target.
pub fn smoothing(args: SmoothingArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let figure = plots::smoothing::figure(args.vocab, &args.epsilon).map_err(usage)?;
    args.output.write(&figure, terminal)
}

/// The numbers come from the command line.
fn usage(error: attentive_pictures::PictureError) -> Ending {
    Ending::Usage(error.to_string())
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if factor > 0.0 && factor.is_finite() => Ok(factor),
        _ => Err("expected a number above 0".to_owned()),
    }
}

fn width_and_warmup(text: &str) -> Result<(usize, usize), String> {
    let numbers = text
        .split_once(':')
        .and_then(|(width, warmup)| Some((width.parse().ok()?, warmup.parse().ok()?)));
    match numbers {
        Some((width, warmup)) if width > 0 && warmup > 0 => Ok((width, warmup)),
        _ => Err("expected width:warm-up, such as 512:4000".to_owned()),
    }
}

//! `attentive draw`: images of a class, by a diffusion model.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use attentive_model::config::DiffusionConfig;
use attentive_model::directory::{AnyModelDir, ModelDir};
use attentive_nn::models::diffusion::Diffusion;
use attentive_nn::models::diffusion::noise::NoiseSchedule;
use attentive_nn::models::diffusion::sampling::Sampling;
use attentive_pictures::image::contact_sheet;
use attentive_train::data::image_files::to_idx;
use clap::Args;

use crate::arguments::{DeviceArg, positive};
use crate::exit::Ending;
use crate::output::Output;
use crate::terminal::Terminal;
use crate::wording::plural;

/// Arguments of `draw`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DrawArgs {
    /// A directory of a diffusion model, or a training run (its best model)
    #[arg(long, short, value_name = "MODEL")]
    model: PathBuf,
    /// The class to draw [default: all of them, one row each]
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
    /// Images of each class
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = positive())]
    count: usize,
    /// Steps from noise to image (DDIM)
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = positive())]
    steps: usize,
    /// Token merging: share of the positions that are merged for attention; 0 for none
    #[arg(long, value_name = "RATIO", default_value_t = 0.0, value_parser = ratio)]
    merge: f64,
    /// How much the class counts (classifier-free guidance); 1 is the plain model, which takes half the time
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = guidance)]
    guidance: f64,
    /// Decides the images
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Where to write the sheet of images, a PNG file
    #[arg(long, short, value_name = "FILE", required_unless_present = "idx")]
    out: Option<PathBuf>,
    /// Write the images as NAME-images-idx3-ubyte and their classes as NAME-labels-idx1-ubyte, too
    #[arg(long, value_name = "NAME")]
    idx: Option<PathBuf>,
    /// Pixels of the sheet for each pixel of an image
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = positive())]
    zoom: usize,
    /// Images computed together
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = positive())]
    batch_size: usize,
    #[command(flatten)]
    device: DeviceArg,
}

const EXAMPLES: &str = "\
Examples:
  attentive draw --model runs/diffusion-mnist --out sheet.png
  attentive draw --model runs/diffusion-mnist --class 7 --steps 50 --merge 0.5 --seed 1 --out sevens.png
  attentive draw --model runs/diffusion-mnist --count 100 --idx drawn
  attentive evaluate --model runs/vit-mnist --images drawn-images-idx3-ubyte --labels drawn-labels-idx1-ubyte

The same seed gives the same images. Token merging (--merge) makes one position of those that are most alike before
each attention and feed-forward network of the finest resolution, and copies the result back.";

/// Draws.
pub fn run(args: DrawArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let device = attentive_nn::device::parse(&args.device.device)?;
    let opened = AnyModelDir::open(&args.model)?;
    let config: &DiffusionConfig = opened.config_of()?;
    let chosen = args.classes(config)?;
    if args.steps > config.timesteps {
        let problem = format!(
            "--steps {} is more than the {} that the model has learned",
            args.steps, config.timesteps
        );
        return Err(Ending::Usage(problem).into());
    }
    if args.idx.is_some() && (config.channels != 1 || config.labels.len() > 256) {
        let problem = "IDX files are for gray images of at most 256 classes: leave out --idx";
        return Err(Ending::Usage(problem.to_owned()).into());
    }
    let model = Diffusion::load(config, &ModelDir::weights_path(&opened.path), &device)
        .with_context(|| format!("cannot load the model {}", args.model.display()))?;
    let classes: Vec<usize> = chosen
        .iter()
        .flat_map(|class| std::iter::repeat_n(*class, args.count))
        .collect();
    let sampling = Sampling {
        steps: args.steps,
        guidance: args.guidance,
        merge: args.merge,
        seed: args.seed,
    };
    let schedule = NoiseSchedule::cosine(config.timesteps);
    let began = Instant::now();
    let mut pixels = Vec::new();
    for (number, classes) in classes.chunks(args.batch_size).enumerate() {
        let drawn = sampling.draw(&model, &schedule, classes, number * args.batch_size);
        let bytes = drawn.iter().map(|value| ((value + 1.0) * 127.5).round());
        pixels.extend(bytes.map(|value| value.clamp(0.0, 255.0) as u8));
    }
    let seconds = began.elapsed().as_secs_f64();
    terminal.note(format_args!(
        "{} in {seconds:.1} s",
        plural(classes.len(), "image", "images")
    ));
    let size = config.image_size;
    if let Some(path) = &args.out {
        let sheet = contact_sheet(&pixels, config.channels, size, args.count, args.zoom)?;
        write(path, &sheet)?;
    }
    if let Some(name) = &args.idx {
        let labels: Vec<u8> = classes.iter().map(|class| *class as u8).collect();
        let [images, labels] = to_idx(&pixels, size, &labels);
        let file = |end: &str| PathBuf::from(format!("{}-{end}", name.display()));
        write(&file("images-idx3-ubyte"), &images)?;
        write(&file("labels-idx1-ubyte"), &labels)?;
    }
    Ok(())
}

impl DrawArgs {
    /// The classes that are drawn.
    fn classes(&self, config: &DiffusionConfig) -> anyhow::Result<Vec<usize>> {
        let Some(name) = &self.class else {
            return Ok((0..config.labels.len()).collect());
        };
        let found = config.labels.iter().position(|label| label == name);
        let found = found.ok_or_else(|| {
            let known = config.labels.join(", ");
            Ending::Usage(format!("the model knows no class {name}; it knows {known}"))
        })?;
        Ok(vec![found])
    }
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let mut output = Output::open(Some(path))?;
    output.write_all(bytes)?;
    output.finish()
}

fn ratio(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ratio) if (0.0..=0.75).contains(&ratio) => Ok(ratio),
        _ => Err("expected a number from 0 to 0.75".to_owned()),
    }
}

fn guidance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(guidance) if (0.0..=20.0).contains(&guidance) => Ok(guidance),
        _ => Err("expected a number from 0 to 20".to_owned()),
    }
}

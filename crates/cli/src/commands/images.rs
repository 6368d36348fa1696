//! What the commands of image models have in common: the model, images as files, and what `classify`, `evaluate` and
//! `attention` do with them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use attentive_model::config::{Family, VitConfig};
use attentive_model::directory::ModelDir;
use attentive_nn::models::vit::Vit;
use attentive_pictures::color::Theme;
use attentive_pictures::image::{self, Image, Overlay};
use attentive_train::data::images::{ImageShape, Images, LabeledImages, normalized};
use attentive_train::distributed::SingleProcess;
use attentive_train::task::images::{ClassifiedImages, largest};
use serde_json::{Map, Value, json};

use crate::exit::Ending;
use crate::model;
use crate::output::Output;
use crate::picture::{DrawingFormat, PictureArgs};
use crate::terminal::Terminal;
use crate::wording::count;

/// A ViT on a device.
pub struct LoadedVit {
    config: VitConfig,
    network: Vit,
    /// Tokens that each layer merges; empty for none.
    merge: Vec<usize>,
}

/// Whether a model, of whichever program, classifies images; what is wrong with it is told by whoever opens it.
pub fn is_image_model(path: &Path, terminal: &Terminal) -> bool {
    let opened = model::of_any(path, terminal).and_then(|choice| Ok(choice.open_any()?));
    opened.is_ok_and(|model| model.config.family() == Family::Vit)
}

/// Which maps of attention are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Maps {
    /// One layer, from 1.
    pub layer: Option<usize>,
    /// Of each layer.
    pub heads: MapHeads,
}

/// Which maps of a layer are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapHeads {
    /// Every head, their mean, and rollout up to the layer.
    All,
    /// One head, from 1.
    One(usize),
    /// Their mean.
    Mean,
    /// Rollout up to the layer.
    Rollout,
}

impl LoadedVit {
    /// Loads the model; one of Hugging Face is imported into the cache the first time.
    pub fn open(
        path: &Path,
        device: &str,
        merge: &[usize],
        terminal: &Terminal,
    ) -> anyhow::Result<Self> {
        let device = attentive_nn::device::parse(device)?;
        let model = model::of_any(path, terminal)?.open_any()?;
        let config: &VitConfig = model.config_of()?;
        let network = Vit::load(config, &ModelDir::weights_path(&model.path), &device)
            .with_context(|| format!("cannot load the model {}", path.display()))?;
        let most = config.patches() / 2;
        if let Some(count) = merge.iter().find(|count| **count > most) {
            return Err(Ending::Usage(format!(
                "--merge {count} is more than half of the {} patches: at most {most}",
                config.patches()
            ))
            .into());
        }
        let merge = match merge {
            [] | [0] => Vec::new(),
            [count] => vec![*count; config.layers],
            all if all.len() == config.layers => all.to_vec(),
            some => {
                return Err(Ending::Usage(format!(
                    "--merge names {} layers, and the model has {}: one number for all of them, or one for each",
                    some.len(),
                    config.layers
                ))
                .into());
            }
        };
        Ok(Self {
            config: config.clone(),
            network,
            merge,
        })
    }

    /// Prints the class of each image of these files.
    pub fn classify(&self, files: &[PathBuf], batch_size: usize, json: bool) -> anyhow::Result<()> {
        if files.is_empty() {
            let problem = "there is no image: give PNG files, or an IDX file of images";
            return Err(Ending::Usage(problem.to_owned()).into());
        }
        let shape = ImageShape::from(&self.config);
        let mut output = Output::stdout();
        for file in files {
            let images = Images::read(file, shape)?;
            let batches = images.pixels.chunks(batch_size * shape.values());
            let classes = batches.flat_map(|pixels| self.probabilities(pixels));
            for (number, probabilities) in (1..).zip(classes) {
                let name = if images.count == 1 {
                    file.display().to_string()
                } else {
                    format!("{}[{number}]", file.display())
                };
                let best = largest(&probabilities);
                let label = &self.config.labels[best];
                if json {
                    let named = self.config.labels.iter().zip(&probabilities);
                    let all: Map<String, Value> = named
                        .map(|(label, probability)| (label.clone(), json!(probability)))
                        .collect();
                    let record = json!({"image": name, "label": label, "probabilities": all});
                    writeln!(output, "{record}")?;
                } else {
                    writeln!(output, "{name}\t{label}\t{:.4}", probabilities[best])?;
                }
            }
        }
        output.finish()
    }

    /// Prints accuracy, loss and speed on a test set.
    pub fn evaluate(
        &self,
        images: &Path,
        labels: Option<&PathBuf>,
        json: bool,
    ) -> anyhow::Result<()> {
        let labels: Vec<PathBuf> = labels.into_iter().cloned().collect();
        let shape = ImageShape::from(&self.config);
        let test = LabeledImages::read(&[images.to_owned()], &labels, shape, "--labels")?;
        let test = ClassifiedImages::new(test, &self.config.labels)?;
        let began = Instant::now();
        let (accuracy, loss) =
            test.evaluate(&self.network, &self.config, &self.merge, &SingleProcess);
        let speed = test.images.count as f64 / began.elapsed().as_secs_f64();
        let mut output = Output::stdout();
        if json {
            let record = json!({
                "images": test.images.count,
                "loss": loss,
                "accuracy": 100.0 * accuracy,
                "merge": self.merge,
                "images_per_second": speed,
            });
            writeln!(output, "{record}")?;
        } else {
            writeln!(output, "images      {}", count(test.images.count))?;
            writeln!(output, "loss        {loss:.4}")?;
            writeln!(output, "accuracy    {:.2}%", 100.0 * accuracy)?;
            writeln!(output, "speed       {speed:.0} images/s")?;
        }
        output.finish()
    }

    /// Draws what the class token of one image looks at, or with merging which tokens became one.
    pub fn attention(
        &self,
        file: &Path,
        maps: Maps,
        format: DrawingFormat,
        picture: &PictureArgs,
        terminal: &Terminal,
    ) -> anyhow::Result<()> {
        if format == DrawingFormat::Terminal {
            let problem =
                "the picture of an image is a file: name one with --out FILE.png or --out FILE.svg";
            return Err(Ending::Usage(problem.to_owned()).into());
        }
        let shape = ImageShape::from(&self.config);
        let images = Images::read(file, shape)?;
        let pixels = images.image(0, shape);
        let ImageShape { size, channels, .. } = shape;
        let found = self
            .network
            .inspect(self.values(pixels), [channels, size, size], &self.merge);
        let best = largest(&found.probabilities);
        let heading = format!(
            "{}: {} ({:.2})",
            file.file_name().unwrap_or_default().to_string_lossy(),
            self.config.labels[best],
            found.probabilities[best]
        );
        let shown = Image {
            pixels,
            channels,
            size,
        };
        let theme = picture.theme(Theme::Light);
        let svg = if !self.merge.is_empty() {
            image::draw_merged(shown, &found.groups, &heading, theme)
        } else {
            let rows = maps.of(image::class_attention(&found.layers)?)?;
            image::draw_attention(shown, &rows, &heading, theme)
        };
        if format == DrawingFormat::Svg {
            picture.write_text(&svg)
        } else {
            picture.write_png(&svg, terminal)
        }
    }

    fn probabilities(&self, pixels: &[u8]) -> Vec<Vec<f32>> {
        let ImageShape { size, channels, .. } = ImageShape::from(&self.config);
        let count = pixels.len() / (channels * size * size);
        let shape = [count, channels, size, size];
        self.network
            .classify(self.values(pixels), shape, &self.merge)
    }

    fn values(&self, pixels: &[u8]) -> Vec<f32> {
        let config = &self.config;
        normalized(pixels, config.image_size, &config.mean, &config.deviation)
    }
}

impl Maps {
    /// Those of all layers that were asked for.
    fn of(self, rows: Vec<Vec<Overlay>>) -> anyhow::Result<Vec<Vec<Overlay>>> {
        let heads = rows.first().map_or(0, |row| row.len() - 2);
        let place = match self.heads {
            MapHeads::All => None,
            MapHeads::One(head) if (1..=heads).contains(&head) => Some(head - 1),
            MapHeads::One(head) => return Err(missing("head", head, heads)),
            MapHeads::Mean => Some(heads),
            MapHeads::Rollout => Some(heads + 1),
        };
        let last = rows.len();
        let rows = match self.layer {
            None => rows,
            Some(layer) if (1..=last).contains(&layer) => vec![rows[layer - 1].clone()],
            Some(layer) => return Err(missing("layer", layer, last)),
        };
        Ok(match place {
            None => rows,
            // One map of each layer: all of them in one row.
            Some(place) => vec![rows.into_iter().map(|row| row[place].clone()).collect()],
        })
    }
}

fn missing(what: &str, asked: usize, last: usize) -> anyhow::Error {
    Ending::Usage(format!(
        "there is no {what} {asked} in this model: they are 1 to {last}"
    ))
    .into()
}

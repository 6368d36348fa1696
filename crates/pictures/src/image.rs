//! Pictures of images: what a ViT's class token looks at, which tokens were merged, and sheets of drawn images.
//!
//! An image is drawn as squares of one color, so that it needs nothing but SVG. Neighbors: [`crate::rollout`] follows
//! attention through the layers, [`crate::svg`] writes shapes, [`crate::png`] makes pixels of them.

use crate::color::{Color, ColorMap, Palette, Theme};
use crate::error::{PictureError, Result};
use crate::map::Map;
use crate::rollout;
use crate::svg::{Anchor, Style, Svg};

/// An image: `[channels, size, size]`, 1 or 3 channels.
#[derive(Debug, Clone, Copy)]
pub struct Image<'a> {
    /// Its bytes.
    pub pixels: &'a [u8],
    /// 1 or 3.
    pub channels: usize,
    /// Height and width.
    pub size: usize,
}

/// A picture with what each of its patches weighs, the heaviest of which is 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Overlay {
    /// What is written above it.
    pub title: String,
    /// Of the patches, row by row.
    pub weights: Vec<f32>,
}

/// What the class token looks at, in rows: the heads of each layer and their mean, and attention rollout over all layers
/// up to it. `layers` holds the weights of each head, `[1 + patches, 1 + patches]`.
pub fn class_attention(layers: &[Vec<Vec<f32>>]) -> Result<Vec<Vec<Overlay>>> {
    let mut means: Vec<Map> = Vec::new();
    let mut rows = Vec::new();
    for (number, heads) in (1..).zip(layers) {
        let mut row = Vec::new();
        let tokens = heads.first().map_or(0, |head| head.len().isqrt());
        let mut mean = vec![0.0; tokens * tokens];
        for (head, weights) in (1..).zip(heads) {
            let map = Map::new(tokens, tokens, weights.clone())?;
            row.push(of_class_token(format!("layer {number}, head {head}"), &map));
            let share = 1.0 / heads.len() as f32;
            mean.iter_mut()
                .zip(weights)
                .for_each(|(sum, weight)| *sum += share * weight);
        }
        means.push(Map::new(tokens, tokens, mean)?);
        row.push(of_class_token(
            format!("layer {number}, mean"),
            &means[means.len() - 1],
        ));
        let rolled = rollout::within(&means);
        row.push(of_class_token(
            format!("rollout to layer {number}"),
            &rolled,
        ));
        rows.push(row);
    }
    Ok(rows)
}

/// The first row without its first column: what the class token sees of the patches.
fn of_class_token(title: String, map: &Map) -> Overlay {
    let weights = map.weights().get(1..map.cols()).unwrap_or_default();
    let most = weights.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    Overlay {
        title,
        weights: weights.iter().map(|weight| weight / most).collect(),
    }
}

/// The image once for each overlay, in rows.
pub fn draw_attention(image: Image, rows: &[Vec<Overlay>], heading: &str, theme: Theme) -> String {
    let heat = |weight: f32, under: Color| {
        let hot = ColorMap::sequential(Theme::Dark).at(0.4 + 0.6 * weight);
        mixed(under, hot, 0.85 * weight.max(0.0).powf(0.7))
    };
    let drawings = rows.iter().map(|row| {
        let overlays = row.iter().map(|overlay| {
            let grid = overlay.weights.len().isqrt();
            let colors = move |x: usize, y: usize, under| {
                let weight = overlay.weights.get(y * grid + x);
                heat(weight.copied().unwrap_or(0.0), under)
            };
            Drawing {
                title: overlay.title.clone(),
                grid,
                color: Box::new(colors),
            }
        });
        overlays.collect()
    });
    sheet(image, drawings.collect(), heading, theme)
}

/// The image once for each layer, in which the patches of a token that stands for several have one color; the patches
/// of a token alone stay as they are. `groups` holds the token of every patch.
pub fn draw_merged(image: Image, groups: &[Vec<usize>], heading: &str, theme: Theme) -> String {
    let drawings = (1..).zip(groups).map(|(number, groups)| {
        let mut sizes = vec![0; groups.iter().max().map_or(0, |most| most + 1)];
        groups.iter().for_each(|group| sizes[*group] += 1);
        let left = sizes.iter().filter(|size| **size > 0).count();
        let grid = groups.len().isqrt();
        let colors = move |x: usize, y: usize, under| match groups.get(y * grid + x) {
            Some(group) if sizes[*group] > 1 => mixed(under, hue(*group), 0.6),
            _ => under,
        };
        Drawing {
            title: format!("layer {number}: {left} tokens"),
            grid,
            color: Box::new(colors),
        }
    });
    let plain = Drawing {
        title: format!(
            "{} patches",
            groups.first().map_or(0, |groups| groups.len())
        ),
        grid: 1,
        color: Box::new(|_, _, under| under),
    };
    let all: Vec<Drawing> = std::iter::once(plain).chain(drawings).collect();
    let mut rows: Vec<Vec<Drawing>> = Vec::new();
    for (number, drawing) in all.into_iter().enumerate() {
        if number % 4 == 0 {
            rows.push(Vec::new());
        }
        rows.last_mut().expect("just pushed").push(drawing);
    }
    sheet(image, rows, heading, theme)
}

/// A PNG file of many images `[count, channels, size, size]` in rows of `columns`, each pixel `zoom` x `zoom` large.
pub fn contact_sheet(
    pixels: &[u8],
    channels: usize,
    size: usize,
    columns: usize,
    zoom: usize,
) -> Result<Vec<u8>> {
    let failed = |error: png::EncodingError| PictureError::Raster(error.to_string());
    let values = channels * size * size;
    let count = pixels.len() / values.max(1);
    let (columns, cell) = (columns.clamp(1, count.max(1)), size * zoom + GAP);
    let rows = count.div_ceil(columns);
    let (width, height) = (columns * cell + GAP, rows * cell + GAP);
    let mut sheet = vec![64u8; width * height * channels];
    for (number, image) in pixels.chunks_exact(values).enumerate() {
        let (left, top) = (GAP + number % columns * cell, GAP + number / columns * cell);
        for y in 0..size * zoom {
            for x in 0..size * zoom {
                for channel in 0..channels {
                    let from = (channel * size + y / zoom) * size + x / zoom;
                    sheet[((top + y) * width + left + x) * channels + channel] = image[from];
                }
            }
        }
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(if channels == 1 {
        png::ColorType::Grayscale
    } else {
        png::ColorType::Rgb
    });
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&sheet).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(bytes)
}

/// Pixels between the images of a sheet.
const GAP: usize = 4;
/// The side of a drawing, and the space around it.
const SIDE: f64 = 140.0;
const AROUND: f64 = 16.0;
const TITLE: f64 = 20.0;
/// An image is drawn with at most so many squares in a row.
const MOST_SQUARES: usize = 64;

/// One picture of the image.
struct Drawing<'a> {
    title: String,
    /// Patches in a row.
    grid: usize,
    /// The color of a patch, by its column, its row, and what is under it.
    color: Box<dyn Fn(usize, usize, Color) -> Color + 'a>,
}

fn sheet(image: Image, rows: Vec<Vec<Drawing>>, heading: &str, theme: Theme) -> String {
    let palette = Palette::of(theme);
    let mut svg = Svg::default();
    let style = Style::new(15.0, palette.foreground).bold();
    svg.text(AROUND, AROUND + 12.0, style, heading, None);
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cell = (SIDE + AROUND, SIDE + TITLE + AROUND);
    let top = AROUND + 24.0;
    for (row, drawings) in rows.iter().enumerate() {
        for (column, drawing) in drawings.iter().enumerate() {
            let (x, y) = (AROUND + column as f64 * cell.0, top + row as f64 * cell.1);
            let style = Style::new(11.0, palette.muted).anchored(Anchor::Middle);
            svg.text(x + SIDE / 2.0, y + 13.0, style, &drawing.title, None);
            paint(&mut svg, image, drawing, x, y + TITLE);
        }
    }
    let width = (AROUND + columns as f64 * cell.0).max(320.0);
    let height = top + rows.len() as f64 * cell.1;
    svg.finish(width, height, palette.background, heading)
}

/// Runs of squares of one color.
fn paint(svg: &mut Svg, image: Image, drawing: &Drawing, left: f64, top: f64) {
    let squares = image.size.clamp(1, MOST_SQUARES.max(drawing.grid));
    let step = SIDE / squares as f64;
    svg.open("shape-rendering=\"crispEdges\"");
    for y in 0..squares {
        let color = |x: usize| {
            let patch = |at: usize| at * drawing.grid / squares;
            (drawing.color)(patch(x), patch(y), image.at(x, y, squares))
        };
        let mut start = 0;
        while start < squares {
            let found = color(start);
            let end = (start..squares).find(|x| color(*x) != found);
            let end = end.unwrap_or(squares);
            let (x, width) = (left + start as f64 * step, (end - start) as f64 * step);
            svg.rect(x, top + y as f64 * step, width, step, found);
            start = end;
        }
    }
    svg.close();
}

impl Image<'_> {
    /// The mean color of one of `squares` x `squares` parts.
    fn at(&self, x: usize, y: usize, squares: usize) -> Color {
        let range = |at: usize| {
            let first = at * self.size / squares;
            first..((at + 1) * self.size / squares).max(first + 1)
        };
        let mean = |channel: usize| {
            let (mut sum, mut count) = (0usize, 0usize);
            for row in range(y) {
                for column in range(x) {
                    let at = (channel * self.size + row) * self.size + column;
                    sum += usize::from(self.pixels.get(at).copied().unwrap_or_default());
                    count += 1;
                }
            }
            (sum / count) as u8
        };
        if self.channels == 1 {
            let gray = mean(0);
            Color(gray, gray, gray)
        } else {
            Color(mean(0), mean(1), mean(2))
        }
    }
}

fn mixed(under: Color, over: Color, share: f32) -> Color {
    let mix = |a: u8, b: u8| (f32::from(a) * (1.0 - share) + f32::from(b) * share).round() as u8;
    Color(
        mix(under.0, over.0),
        mix(under.1, over.1),
        mix(under.2, over.2),
    )
}

/// Colors that differ as much as they can for neighboring numbers: steps of the golden ratio around the circle.
fn hue(number: usize) -> Color {
    let at = (number as f32 * 0.618_034).fract() * 6.0;
    let rise = |shift: f32| {
        let distance = ((at + shift) % 6.0 - 3.0).abs() - 1.0;
        (distance.clamp(0.0, 1.0) * 255.0) as u8
    };
    Color(rise(0.0), rise(4.0), rise(2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_token_sees_the_patches_and_rollout_ends_each_row() {
        // Two heads of one layer over a class token and four patches.
        let one = |patch: usize| {
            let mut weights = vec![0.2; 25];
            weights[..5].fill(0.0);
            weights[1 + patch] = 1.0;
            weights
        };
        let rows = class_attention(&[vec![one(0), one(3)]]).unwrap();
        let titles: Vec<&str> = rows[0].iter().map(|overlay| &*overlay.title).collect();
        assert_eq!(
            titles,
            [
                "layer 1, head 1",
                "layer 1, head 2",
                "layer 1, mean",
                "rollout to layer 1"
            ]
        );
        assert_eq!(rows[0][1].weights, [0.0, 0.0, 0.0, 1.0]);
        assert_eq!(rows[0][2].weights, [1.0, 0.0, 0.0, 1.0]);
        let image = Image {
            pixels: &[0, 50, 100, 200],
            channels: 1,
            size: 2,
        };
        let svg = draw_attention(image, &rows, "a <digit>", Theme::Light);
        assert!(svg.contains("a &lt;digit&gt;") && svg.contains("layer 1, mean"));
        assert!(class_attention(&[vec![vec![0.0; 3]]]).is_err());
    }

    #[test]
    fn merged_patches_have_one_color_and_others_keep_theirs() {
        let image = Image {
            pixels: &[10, 20, 30, 40],
            channels: 1,
            size: 2,
        };
        let svg = draw_merged(image, &[vec![0, 1, 2, 2]], "merged", Theme::Dark);
        assert!(svg.contains("layer 1: 3 tokens") && svg.contains("4 patches"));
        // Alone, so drawn twice as it is: once in the plain picture.
        assert_eq!(svg.matches(&Color(10, 10, 10).to_string()).count(), 2);
        assert_eq!(svg.matches(&Color(40, 40, 40).to_string()).count(), 1);
    }

    #[test]
    fn a_contact_sheet_is_a_png_with_a_cell_for_each_image() {
        let png = contact_sheet(&[255; 3 * 4], 1, 2, 2, 3).unwrap();
        let reader = png::Decoder::new(std::io::Cursor::new(&png))
            .read_info()
            .unwrap();
        let info = reader.info();
        assert_eq!((info.width, info.height), (2 * 10 + 4, 2 * 10 + 4));
    }
}

//! A drawing as pixels: SVG to PNG, with fonts that are always there.
//!
//! Drawn by resvg. Large sheets get fewer pixels for each unit, so that memory stays within bounds.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use crate::error::{PictureError, Result};
use crate::fonts::{self, Covering};

/// A PNG file.
#[derive(Debug)]
pub struct Png {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Characters that no font here has; they are drawn as boxes.
    pub missing: Vec<char>,
    /// Pixels for each unit of the drawing.
    pub scale: f32,
}

/// More pixels than this are never drawn (300 MB while drawing).
const MOST_PIXELS: f32 = 40e6;

/// Draws a drawing of ours with `scale` pixels for each unit, or fewer if it is very large.
pub fn draw(svg: &str, scale: f32) -> Result<Png> {
    let Covering { fonts, missing } = fonts::covering(svg);
    // Our markup is ASCII, so whatever is replaced here is text.
    let svg = if missing.is_empty() {
        svg.to_owned()
    } else {
        svg.replace(missing.as_slice(), &fonts::BOX.to_string())
    };
    let options = Options {
        fontdb: fonts,
        font_family: "DejaVu Sans".to_owned(),
        ..Options::default()
    };
    let failed = |what: String| PictureError::Raster(what);
    let tree = Tree::from_str(&svg, &options).map_err(|error| failed(error.to_string()))?;
    let (width, height) = (tree.size().width(), tree.size().height());
    let scale = scale.min((MOST_PIXELS / (width * height)).sqrt());
    let pixels = |length: f32| ((length * scale).round() as u32).max(1);
    let mut pixmap = Pixmap::new(pixels(width), pixels(height))
        .ok_or_else(|| failed(format!("{width} x {height} is no size")))?;
    resvg::render(
        &tree,
        Transform::from_scale(scale, scale),
        &mut pixmap.as_mut(),
    );
    let bytes = encoded(&pixmap).map_err(|error| failed(error.to_string()))?;
    Ok(Png {
        bytes,
        missing,
        scale,
    })
}

/// Our pictures are opaque, so no alpha channel is written; large sheets are compressed quickly rather than
/// well.
fn encoded(pixmap: &Pixmap) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, pixmap.width(), pixmap.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::Fast);
    let opaque = pixmap
        .data()
        .chunks_exact(4)
        .flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]);
    let opaque: Vec<u8> = opaque.collect();
    encoder.write_header()?.write_image_data(&opaque)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::color::Color;
    use crate::svg::{Style, Svg};

    /// A picture of this text, and its pixels that are not white.
    fn drawn(text: &str) -> (Png, usize) {
        let mut svg = Svg::default();
        svg.text(5.0, 30.0, Style::new(20.0, Color(0, 0, 0)), text, None);
        let png = draw(&svg.finish(200.0, 40.0, Color(255, 255, 255), "t"), 1.0).unwrap();
        let pixels = Pixmap::decode_png(&png.bytes).unwrap();
        let dark = pixels
            .pixels()
            .iter()
            .filter(|pixel| pixel.red() < 200)
            .count();
        (png, dark)
    }

    #[test]
    fn every_script_leaves_ink() {
        for text in ["Hund", "▁", "שלום", "مرحبا", "👍", "Собака", "◌\u{0301}"]
        {
            assert!(drawn(text).1 > 10, "{text} is invisible");
        }
        assert_eq!(drawn(" ").1, 0);
    }

    #[test]
    fn a_character_without_a_font_is_a_box_and_is_reported() {
        let (png, dark) = drawn("\u{10FFFD}");
        assert_eq!(png.missing, ['\u{10FFFD}']);
        assert_eq!(dark, drawn("□").1);
    }

    #[test]
    fn very_large_drawings_get_fewer_pixels() {
        let svg = Svg::default().finish(20_000.0, 20_000.0, Color(255, 255, 255), "t");
        let png = draw(&svg, 2.0).unwrap();
        assert!(png.scale < 0.4, "{}", png.scale);
        assert_eq!(
            draw(&Svg::default().finish(10.0, 10.0, Color(0, 0, 0), "t"), 2.0)
                .unwrap()
                .scale,
            2.0
        );
    }
}

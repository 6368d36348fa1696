//! Perceptually uniform color maps: equal steps in a number are equal steps to the eye.
//!
//! Color maps run through a few anchors in OKLab, the color space in which distance is what the eye sees,
//! at constant speed; lightness only rises or only falls, so the order survives every kind of color
//! blindness and a gray printer. Zero has the color of the background.

use std::sync::LazyLock;

/// Light or dark background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// Dark text on white.
    Light,
    /// Light text on black.
    Dark,
}

/// Red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Color(pub u8, pub u8, pub u8);

impl std::fmt::Display for Color {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

/// A color map: from a number to a color.
#[derive(Debug)]
pub struct ColorMap(Vec<Color>);

/// Colors of a color map, or of each half of one.
const STEPS: usize = 256;

impl ColorMap {
    /// For shares from 0 to 1.
    pub fn sequential(theme: Theme) -> &'static ColorMap {
        static LIGHT: LazyLock<ColorMap> = LazyLock::new(|| {
            ColorMap::through(&[
                0xffffff, 0xd5ecc9, 0x7cc8bd, 0x3590bd, 0x2e58a6, 0x33277a, 0x1e0b45,
            ])
        });
        static DARK: LazyLock<ColorMap> = LazyLock::new(|| {
            ColorMap::through(&[
                0x15171e, 0x34286a, 0x2f579f, 0x2089a8, 0x2fb590, 0x93d765, 0xfcf4a8,
            ])
        });
        match theme {
            Theme::Light => &LIGHT,
            Theme::Dark => &DARK,
        }
    }

    /// For numbers from -1 to 1, given as 0 to 1: two hues that everyone can tell apart.
    pub fn diverging(theme: Theme) -> &'static ColorMap {
        static LIGHT: LazyLock<ColorMap> = LazyLock::new(|| {
            ColorMap::between(
                &[0xffffff, 0x7aa6d8, 0x1b4f9c],
                &[0xffffff, 0xe79b5e, 0xa4430c],
            )
        });
        static DARK: LazyLock<ColorMap> = LazyLock::new(|| {
            ColorMap::between(
                &[0x15171e, 0x2e69b3, 0x8fc4ff],
                &[0x15171e, 0xa9551c, 0xffb26b],
            )
        });
        match theme {
            Theme::Light => &LIGHT,
            Theme::Dark => &DARK,
        }
    }

    /// The color of a number from 0 to 1; whatever is outside gets the nearer end.
    pub fn at(&self, value: f32) -> Color {
        let last = (self.0.len() - 1) as f32;
        // NaN survives until it becomes an index, which is then 0.
        self.0[(value.clamp(0.0, 1.0) * last).round() as usize]
    }

    /// Two halves that meet in one color.
    fn between(below: &[u32], above: &[u32]) -> Self {
        let mut colors = Self::through(below).0;
        colors.reverse();
        colors.extend(&Self::through(above).0[1..]);
        Self(colors)
    }

    /// At constant speed through these colors.
    fn through(anchors: &[u32]) -> Self {
        let anchors: Vec<[f64; 3]> = anchors.iter().map(|hex| oklab(color(*hex))).collect();
        let mut reached = vec![0.0];
        for pair in anchors.windows(2) {
            reached.push(reached[reached.len() - 1] + distance(pair[0], pair[1]));
        }
        let whole = reached[reached.len() - 1];
        let step = |i: usize| {
            let at = whole * i as f64 / (STEPS - 1) as f64;
            let after = reached[1..reached.len() - 1].partition_point(|&end| end < at) + 1;
            let (from, to) = (anchors[after - 1], anchors[after]);
            let share = (at - reached[after - 1]) / (reached[after] - reached[after - 1]);
            srgb(std::array::from_fn(|k| from[k] + share * (to[k] - from[k])))
        };
        Self((0..STEPS).map(step).collect())
    }
}

/// The colors around a picture.
#[derive(Debug)]
pub struct Palette {
    /// The page.
    pub background: Color,
    /// Text.
    pub foreground: Color,
    /// Text of less importance.
    pub muted: Color,
    /// Frames and grid lines.
    pub line: Color,
    /// Curves: Okabe and Ito's colors, which color-blind people can tell apart.
    pub curves: [Color; 6],
}

impl Palette {
    /// The palette of a theme.
    pub fn of(theme: Theme) -> &'static Palette {
        const LIGHT: Palette = Palette {
            background: color(0xffffff),
            foreground: color(0x1c1e26),
            muted: color(0x646a7a),
            line: color(0xd4d7de),
            curves: [
                color(0x0072b2),
                color(0xd55e00),
                color(0x009e73),
                color(0xb5558c),
                color(0xb88100),
                color(0x3a9bd4),
            ],
        };
        const DARK: Palette = Palette {
            background: color(0x15171e),
            foreground: color(0xe9ebf1),
            muted: color(0x9aa1b2),
            line: color(0x363b48),
            curves: [
                color(0x56b4e9),
                color(0xff8c42),
                color(0x2fc49a),
                color(0xe79ac6),
                color(0xf0d442),
                color(0x8f9bff),
            ],
        };
        match theme {
            Theme::Light => &LIGHT,
            Theme::Dark => &DARK,
        }
    }
}

const fn color(hex: u32) -> Color {
    Color((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    let squares: f64 = (0..3).map(|k| (a[k] - b[k]).powi(2)).sum();
    squares.sqrt()
}

/// Björn Ottosson's OKLab: lightness, green to red, blue to yellow.
fn oklab(Color(r, g, b): Color) -> [f64; 3] {
    let linear = |byte: u8| {
        let value = f64::from(byte) / 255.0;
        if value <= 0.04045 {
            value / 12.92
        } else {
            ((value + 0.055) / 1.055).powf(2.4)
        }
    };
    let (r, g, b) = (linear(r), linear(g), linear(b));
    let l = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b).cbrt();
    let m = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b).cbrt();
    let s = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b).cbrt();
    [
        0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
        1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
        0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s,
    ]
}

/// The way back; between colors of a screen, every color is one of the screen's, or nearly.
fn srgb([lightness, a, b]: [f64; 3]) -> Color {
    let l = (lightness + 0.3963377774 * a + 0.2158037573 * b).powi(3);
    let m = (lightness - 0.1055613458 * a - 0.0638541728 * b).powi(3);
    let s = (lightness - 0.0894841775 * a - 1.2914855480 * b).powi(3);
    let byte = |linear: f64| {
        let value = if linear <= 0.0031308 {
            12.92 * linear
        } else {
            1.055 * linear.powf(1.0 / 2.4) - 0.055
        };
        (value * 255.0).round().clamp(0.0, 255.0) as u8
    };
    Color(
        byte(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
        byte(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
        byte(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEMES: [Theme; 2] = [Theme::Light, Theme::Dark];

    #[test]
    fn equal_steps_look_equal() {
        for theme in THEMES {
            for map in [ColorMap::sequential(theme), ColorMap::diverging(theme)] {
                // Sixteenths: single steps are so small that rounding to bytes would drown them.
                let at = |i: usize| oklab(map.at(i as f32 / 16.0));
                let steps: Vec<f64> = (0..16).map(|i| distance(at(i), at(i + 1))).collect();
                let mean = steps.iter().sum::<f64>() / 16.0;
                for step in &steps {
                    assert!((step / mean - 1.0).abs() < 0.15, "{theme:?}: {steps:?}");
                }
            }
        }
    }

    #[test]
    fn lightness_alone_tells_the_order() {
        for theme in THEMES {
            let lightness = |i: usize| oklab(ColorMap::sequential(theme).at(i as f32 / 32.0))[0];
            for i in 0..32 {
                let rise = lightness(i + 1) - lightness(i);
                let rise = if theme == Theme::Dark { rise } else { -rise };
                assert!(
                    rise > 0.01,
                    "{theme:?}: step {i} changes lightness by {rise}"
                );
            }
        }
    }

    #[test]
    fn nothing_is_the_paper_and_numbers_outside_are_at_the_ends() {
        for theme in THEMES {
            let map = ColorMap::sequential(theme);
            assert_eq!(map.at(0.0), Palette::of(theme).background);
            assert_eq!(map.at(f32::NAN), map.at(0.0));
            assert_eq!(map.at(-3.0), map.at(0.0));
            assert_eq!(map.at(7.0), map.at(1.0));
            assert_eq!(
                ColorMap::diverging(theme).at(0.5),
                Palette::of(theme).background
            );
        }
    }

    #[test]
    fn colors_survive_the_way_to_oklab_and_back() {
        for hex in [0x000000, 0xffffff, 0x123456, 0xfedcba, 0x00ff80] {
            assert_eq!(srgb(oklab(color(hex))), color(hex));
        }
    }

    #[test]
    fn text_can_be_read_on_its_paper() {
        for theme in THEMES {
            let palette = Palette::of(theme);
            for color in [palette.foreground, palette.muted]
                .iter()
                .chain(&palette.curves)
            {
                let contrast = (oklab(*color)[0] - oklab(palette.background)[0]).abs();
                assert!(
                    contrast > 0.3,
                    "{theme:?}: {color} on {}",
                    palette.background
                );
            }
        }
    }
}

//! Where a picture goes: its format, its colors, the terminal or a file.
//!
//! Used by the commands that draw: [`crate::commands`] `attention` and `plot`.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::bail;
use attentive_pictures::color::Theme;
use attentive_pictures::png;
use attentive_pictures::terminal::{Depth, Screen};
use clap::{Args, ValueEnum};

use crate::exit::Ending;
use crate::output::Output;
use crate::terminal::{Colors, Terminal};

/// Where a picture goes, and how it looks.
#[derive(Debug, Args)]
pub struct PictureArgs {
    /// Where to write; the name's ending gives the format [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Dark or light background [default: light in files, dark in the terminal]
    #[arg(long, value_enum)]
    theme: Option<ThemeName>,
    /// Pixels of a PNG for each unit of the drawing; 2 prints well
    #[arg(long, value_name = "N", default_value_t = 2.0, value_parser = scale)]
    scale: f32,
}

/// Light or dark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ThemeName {
    Light,
    Dark,
}

/// Formats of a drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DrawingFormat {
    /// Text, in color where the terminal has colors
    Terminal,
    /// Vector graphics
    Svg,
    /// Pixels
    Png,
}

impl PictureArgs {
    /// The theme for files, or for the terminal.
    pub fn theme(&self, otherwise: Theme) -> Theme {
        match self.theme {
            Some(ThemeName::Light) => Theme::Light,
            Some(ThemeName::Dark) => Theme::Dark,
            None => otherwise,
        }
    }

    /// The format that was asked for, or that the file's name says, or the terminal's.
    pub fn format<F: ValueEnum + Copy>(&self, asked: Option<F>, otherwise: F) -> anyhow::Result<F> {
        if let Some(format) = asked {
            return Ok(format);
        }
        let Some(path) = self.out.as_deref().filter(|path| *path != Path::new("-")) else {
            return Ok(otherwise);
        };
        let ending = path
            .extension()
            .map(|ending| ending.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            None | Some("txt") => Ok(otherwise),
            Some("htm") => F::from_str("html", true).or_else(|_| self.unknown_ending::<F>(path)),
            Some(ending) => F::from_str(ending, true).or_else(|_| self.unknown_ending::<F>(path)),
        }
    }

    fn unknown_ending<F: ValueEnum>(&self, path: &Path) -> anyhow::Result<F> {
        let names: Vec<String> = F::value_variants()
            .iter()
            .filter_map(|format| Some(format.to_possible_value()?.get_name().to_owned()))
            .collect();
        bail!(Ending::Usage(format!(
            "the ending of {} is no format of this picture; say --format {}",
            path.display(),
            names.join(", --format ")
        )))
    }

    /// What the terminal can show; a file gets plain text.
    pub fn screen(&self) -> Screen {
        let to_terminal = self.out.is_none() && io::stdout().is_terminal();
        let set = |name| std::env::var(name).unwrap_or_default();
        let depth = if !to_terminal || Colors::of_stdout() == Colors::Off {
            Depth::Plain
        } else if ["truecolor", "24bit"].contains(&set("COLORTERM").as_str()) {
            Depth::True
        } else {
            Depth::Indexed
        };
        let width = to_terminal.then(terminal_size::terminal_size).flatten();
        let columns = set("COLUMNS").parse().ok();
        Screen {
            columns: width
                .map(|(width, _)| width.0.into())
                .or(columns)
                .unwrap_or(100)
                .max(30),
            depth,
            theme: self.theme(Theme::Dark),
        }
    }

    /// Writes text to the file or to standard output.
    pub fn write_text(&self, text: &str) -> anyhow::Result<()> {
        self.write(text.as_bytes())
    }

    /// Writes a drawing of ours as PNG; says what could not be drawn as it is.
    pub fn write_png(&self, svg: &str, terminal: &Terminal) -> anyhow::Result<()> {
        self.refuse_binary_on_terminal()?;
        let png = png::draw(svg, self.scale)?;
        if !png.missing.is_empty() {
            let named: Vec<String> = png
                .missing
                .iter()
                .take(8)
                .map(|c| format!("U+{:04X}", *c as u32))
                .collect();
            let more = if png.missing.len() > named.len() {
                " and others"
            } else {
                ""
            };
            terminal.warn(format_args!(
                "no font here has {}{more}: drawn as boxes; install a font that has them, or use --format \
                 svg or html and a viewer that has one",
                named.join(", ")
            ));
        }
        if png.scale < self.scale {
            terminal.note(format_args!(
                "the picture is very large: drawn with {:.1} pixels for each unit and not {}; \
                 --kind, --layer or --head make it smaller, and SVG has no limit",
                png.scale, self.scale
            ));
        }
        self.write(&png.bytes)
    }

    /// Pixels on a terminal help nobody; known before any work is done.
    pub fn refuse_binary_on_terminal(&self) -> anyhow::Result<()> {
        let to_stdout = self
            .out
            .as_deref()
            .is_none_or(|path| path == Path::new("-"));
        if to_stdout && io::stdout().is_terminal() {
            bail!(Ending::Usage(
                "a PNG cannot be shown in a terminal: name a file with --out FILE.png".to_owned()
            ));
        }
        Ok(())
    }

    fn write(&self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut output = Output::open(self.out.as_deref())?;
        output.write_all(bytes)?;
        output.finish()
    }
}

fn scale(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(scale) if (0.1..=10.0).contains(&scale) => Ok(scale),
        _ => Err("expected a number from 0.1 to 10".to_owned()),
    }
}

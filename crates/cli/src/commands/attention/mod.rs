//! `attentive attention`: what the heads of a model look at in a sentence, as a picture.
//!
//! [`record`] runs the model; `attentive-pictures` draws.

mod record;

use std::path::PathBuf;

use anyhow::bail;
use attentive_pictures::color::Theme;
use attentive_pictures::record::Kind;
use attentive_pictures::selection::{Heads, Selection, Unit};
use attentive_pictures::sheet::Heading;
use attentive_pictures::{PictureError, json, page, sheet, terminal as text};
use clap::{Args, ValueEnum};

use crate::arguments::{DeviceArg, positive};
use crate::exit::Ending;
use crate::model::LoadedModel;
use crate::picture::PictureArgs;
use crate::terminal::Terminal;

/// Arguments of `attention`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct AttentionArgs {
    /// The sentence to look at
    sentence: String,
    /// A model directory, or a training run (its best model)
    #[arg(long, short, value_name = "DIR")]
    model: PathBuf,
    /// Make the model write this translation [default: its own]
    #[arg(long, value_name = "TEXT")]
    target: Option<String>,
    /// How to show it [default: by the ending of --out, else terminal]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Which attention [default: all in files, cross in the terminal]
    #[arg(long, value_enum)]
    kind: Option<KindName>,
    /// One layer, from 1 [default: all]
    #[arg(long, value_name = "N")]
    layer: Option<usize>,
    /// One head, from 1 [default: all in files, their mean in the terminal]
    #[arg(long, value_name = "N", group = "heads")]
    head: Option<usize>,
    /// The mean over the heads of each layer
    #[arg(long, group = "heads")]
    mean: bool,
    /// Attention rolled out over the layers (Abnar and Zuidema, 2020)
    #[arg(long, group = "heads")]
    rollout: bool,
    /// Merge the pieces of words
    #[arg(long)]
    words: bool,
    /// Beginnings that are followed side by side when the model translates; 1 is greedy search
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = positive(), conflicts_with = "target")]
    beam: usize,
    #[command(flatten)]
    picture: PictureArgs,
    #[command(flatten)]
    device: DeviceArg,
}

const EXAMPLES: &str = "\
Examples:
  attentive attention --model runs/multi30k \"Ein Hund rennt.\"
  attentive attention --model runs/multi30k \"Ein Hund rennt.\" --out page.html
  attentive attention --model runs/multi30k \"Ein Hund rennt.\" --out heads.svg --kind cross
  attentive attention --model runs/multi30k \"Ein Hund rennt.\" --out one.png --kind cross --layer 3 --head 2
  attentive attention --model runs/multi30k \"Ein Hund rennt.\" --target \"A dog runs.\" --format json

Rows look at columns. In cross-attention the rows are the tokens that are written; in the decoder's
self-attention they are the tokens that were read, `<s>` first. The HTML page needs no network.";

/// Formats of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text, coloured where the terminal has colours
    Terminal,
    /// A sheet that can be enlarged
    Svg,
    /// The same sheet as pixels
    Png,
    /// A page to look around in
    Html,
    /// Tokens and weights for other programs
    Json,
}

/// Which attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KindName {
    /// All three
    All,
    /// The source looks at itself
    Encoder,
    /// The target looks at its past
    Decoder,
    /// The target looks at the source
    Cross,
}

/// Draws.
pub fn run(args: AttentionArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let format = args.picture.format(args.format, Format::Terminal)?;
    if format == Format::Png {
        args.picture.refuse_binary_on_terminal()?;
    }
    let selection = args.selection(format);
    let model = LoadedModel::open(&args.model, &args.device.device)?;
    let record = record::make(
        &model,
        &args.sentence,
        args.target.as_deref(),
        args.beam,
        terminal,
    )?;
    let heading = Heading {
        source: record.source_text.clone(),
        target: record.target_text.clone(),
        model: args.model.display().to_string(),
    };
    let theme = args.picture.theme(Theme::Light);
    let sections = selection.of(&record).map_err(usage)?;
    match format {
        Format::Terminal => {
            let maps = text::print(&sections, args.picture.screen());
            let translation = attentive_pictures::label::visible(&record.target_text);
            args.picture.write_text(&format!("{translation}\n\n{maps}"))
        }
        Format::Svg => args
            .picture
            .write_text(&sheet::draw(&heading, &sections, theme)),
        Format::Png => {
            let svg = sheet::draw(&heading, &sections, theme);
            args.picture.write_png(&svg, terminal)
        }
        Format::Html => {
            let page = page::write(&record, &heading, &selection)?;
            args.picture.write_text(&page)
        }
        Format::Json => {
            let json = json::write(&record, &sections, &heading.model);
            args.picture.write_text(&json)
        }
    }
}

impl AttentionArgs {
    fn selection(&self, format: Format) -> Selection {
        let in_terminal = format == Format::Terminal;
        let kind = self.kind.unwrap_or(match in_terminal {
            true => KindName::Cross,
            false => KindName::All,
        });
        let heads = match (self.head, self.mean, self.rollout) {
            (Some(head), _, _) => Heads::One(head),
            (_, true, _) => Heads::Mean,
            (_, _, true) => Heads::Rollout,
            // A terminal has no room for every head of every layer.
            _ if in_terminal && self.layer.is_none() => Heads::Mean,
            _ => Heads::All,
        };
        Selection {
            kinds: match kind {
                KindName::All => Kind::ALL.to_vec(),
                KindName::Encoder => vec![Kind::Encoder],
                KindName::Decoder => vec![Kind::Decoder],
                KindName::Cross => vec![Kind::Cross],
            },
            layer: self.layer,
            heads,
            unit: if self.words {
                Unit::Words
            } else {
                Unit::Tokens
            },
        }
    }
}

/// Layers and heads that are not there are wrong usage.
fn usage(error: PictureError) -> anyhow::Error {
    match error {
        PictureError::NoSuchLayer { .. } | PictureError::NoSuchHead { .. } => {
            Ending::Usage(error.to_string()).into()
        }
        other => other.into(),
    }
}

/// Refuses what cannot be drawn, with the number of tokens that could be.
fn refuse_long(what: &str, tokens: usize, limit: usize) -> anyhow::Result<()> {
    if tokens > limit {
        bail!("{what} has {tokens} tokens, and a picture holds at most {limit}: take a part of it");
    }
    Ok(())
}

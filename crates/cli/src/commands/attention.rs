//! `attentive attention`: the attention weights of a model for a sentence, as a picture.
//!
//! `attentive-pictures` runs the model ([`Record::of`]) and draws; [`crate::picture`] writes.

use std::path::{Path, PathBuf};

#[cfg(feature = "training")]
use attentive_hub::StoredModel;
use attentive_hub::route::Route;
#[cfg(feature = "training")]
use attentive_model::{AnyModelDir, Family};
#[cfg(feature = "training")]
use attentive_nn::models::{recurrent::Recurrent, transformer::Transformer};
use attentive_pictures::color::Theme;
use attentive_pictures::from_model::Target;
#[cfg(feature = "training")]
use attentive_pictures::pruned::Pruned;
use attentive_pictures::record::{Kind, Record, Side};
use attentive_pictures::selection::{Heads, Selection, Unit};
use attentive_pictures::sheet::Heading;
use attentive_pictures::{PictureError, json, label, page, sheet, terminal as text};
use attentive_runtime::cpu::{Compute, CpuModel};
use attentive_runtime::search::SearchOptions;
use attentive_text::sentences;
use attentive_text::special::UNK;
use clap::{Args, ValueEnum};

#[cfg(feature = "training")]
use super::images::{LoadedVit, MapHeads, Maps};
use crate::arguments::{DeviceArg, positive};
#[cfg(feature = "training")]
use crate::commands::bert_input::LoadedBert;
use crate::direction::DirectionArgs;
use crate::exit::Ending;
use crate::model::{Choice, only_for_the_cpu};
#[cfg(feature = "training")]
use crate::network::{self, LoadedGpt, LoadedModel};
#[cfg(feature = "training")]
use crate::picture::DrawingFormat;
use crate::picture::PictureArgs;
use crate::terminal::Terminal;
use crate::wording::plural;

/// Arguments of `attention`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct AttentionArgs {
    /// The source sentence, or the text for a language model (GPT, BERT; a tab separates the texts of a pair)
    #[arg(required_unless_present = "image")]
    sentence: Option<String>,
    /// An image for a ViT, a PNG file: what its class token looks at
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sentence", "target", "kind", "words"], requires = "model")]
    image: Option<PathBuf>,
    /// Token merging: so many tokens of the image become one with another in each layer, which is then shown; several
    /// numbers are those of the layers
    #[arg(
        long,
        value_name = "R",
        value_delimiter = ',',
        requires = "image",
        conflicts_with = "heads"
    )]
    merge: Vec<usize>,
    /// A model directory, a training run (its best model), or a built-in model (de-en, en-de)
    /// [default: the built-in model for the language of the sentence]
    #[arg(long, short, value_name = "MODEL")]
    model: Option<PathBuf>,
    #[command(flatten)]
    direction: DirectionArgs,
    /// Force the model to write this translation [default: its own]
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
    /// Attention rollout over the layers (Abnar and Zuidema, 2020)
    #[arg(long, group = "heads")]
    rollout: bool,
    /// Show which tokens leave in which layer, of a BERT with learned token pruning (terminal, svg or png)
    #[cfg(feature = "training")]
    #[arg(long, requires = "model", conflicts_with_all = ["heads", "kind", "layer", "target"])]
    pruned: bool,
    /// Merge subwords into words
    #[arg(long)]
    words: bool,
    /// Beam size; 1 is greedy search
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = positive(), conflicts_with = "target")]
    beam: usize,
    #[command(flatten)]
    picture: PictureArgs,
    #[command(flatten)]
    device: DeviceArg,
}

const EXAMPLES: &str = "\
Examples:
  attentive attention \"Ein kleines Mädchen klettert.\"
  attentive attention \"A dog runs.\" --out page.html
  attentive attention --model runs/multi30k \"Ein Hund rennt.\"
  attentive attention --model runs/multi30k \"Ein Hund rennt.\" --out heads.svg --kind cross
  attentive attention --model runs/multi30k \"Ein Hund rennt.\" --out one.png --kind cross --layer 3 --head 2
  attentive attention --model runs/multi30k \"Ein Hund rennt.\" --target \"A dog runs.\" --format json
  attentive attention --model runs/gpt-shakespeare \"ROMEO: What light\" --out heads.svg
  attentive attention --model runs/bert-sst2 \"A film of rare beauty.\" --out heads.svg
  attentive attention --model runs/vit-mnist --image digit.png --out heads.png
  attentive attention --model runs/vit-mnist --image digit.png --merge 0,12,12,12 --out merged.svg

Rows are queries, columns are keys. In cross-attention the rows are the tokens that are written; in the
decoder's self-attention they are the tokens that were read, `<s>` first. The sentence goes to the model
as it stands, as a single sentence. The HTML page needs no network.";

/// Formats of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text, in color where the terminal has colors
    Terminal,
    /// Heat maps as vector graphics
    Svg,
    /// The same as pixels
    Png,
    /// An interactive page
    Html,
    /// Tokens and weights for other programs
    Json,
}

/// Which attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KindName {
    /// All three
    All,
    /// Encoder self-attention
    Encoder,
    /// Decoder self-attention
    Decoder,
    /// Cross-attention, from the target to the source
    Cross,
}

/// Draws.
pub fn run(args: AttentionArgs, terminal: &Terminal) -> anyhow::Result<()> {
    if let Some(image) = &args.image {
        return args.of_image(image, terminal);
    }
    let format = args.picture.format(args.format, Format::Terminal)?;
    if format == Format::Png {
        args.picture.refuse_binary_on_terminal()?;
    }
    #[cfg(feature = "training")]
    if args.pruned {
        return args.draw_pruned(format, terminal);
    }
    let mut selection = args.selection(format);
    let choice = args.choice(terminal)?;
    let record = args.record(&choice, terminal)?;
    warn_unknown("the sentence", &record.source, terminal);
    if args.target.is_some() {
        warn_unknown("the translation", &record.written, terminal);
    }
    let heading = Heading {
        source: record.source_text.clone(),
        target: record.target_text.clone(),
        model: choice.name(),
    };
    let encoder_alone = record.decoder.is_empty() && record.cross.is_empty();
    if encoder_alone && args.kind.is_none() {
        selection.kinds = vec![Kind::Encoder];
    }
    if record.decoder.is_empty() && selection.kinds.len() > 1 {
        terminal.note("the decoder is recurrent: there is no self-attention of its own");
    }
    if record.cross.is_empty() && !record.decoder.is_empty() && args.kind.is_none() {
        selection.kinds = vec![Kind::Decoder];
    }
    let theme = args.picture.theme(Theme::Light);
    let sections = selection.of(&record).map_err(usage)?;
    match format {
        Format::Terminal => {
            let maps = text::print(&sections, args.picture.screen());
            let translation = label::visible(&record.target_text);
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
    fn sentence(&self) -> &str {
        self.sentence.as_deref().unwrap_or_default()
    }

    /// What a ViT sees in an image.
    #[cfg(feature = "training")]
    fn of_image(&self, image: &Path, terminal: &Terminal) -> anyhow::Result<()> {
        let format = match self.picture.format(self.format, Format::Terminal)? {
            Format::Svg => DrawingFormat::Svg,
            Format::Png => DrawingFormat::Png,
            Format::Terminal => DrawingFormat::Terminal,
            Format::Html | Format::Json => {
                let problem = "images are shown as PNG or SVG: choose another --format or ending";
                return Err(Ending::Usage(problem.to_owned()).into());
            }
        };
        let maps = Maps {
            layer: self.layer,
            heads: match (self.head, self.mean, self.rollout) {
                (Some(head), ..) => MapHeads::One(head),
                (_, true, _) => MapHeads::Mean,
                (_, _, true) => MapHeads::Rollout,
                _ => MapHeads::All,
            },
        };
        let model = self.model.as_deref().unwrap_or(Path::new(""));
        let model = LoadedVit::open(model, &self.device.device, &self.merge, terminal)?;
        model.attention(image, maps, format, &self.picture, terminal)
    }

    /// It needs the networks.
    #[cfg(not(feature = "training"))]
    fn of_image(&self, _image: &Path, _terminal: &Terminal) -> anyhow::Result<()> {
        Err(only_for_the_cpu("this build has no ViT, and is"))
    }

    /// The model, named or by the language of the sentence.
    fn choice(&self, terminal: &Terminal) -> anyhow::Result<Choice> {
        let route = match self.direction.asked(self.model.as_deref(), terminal)? {
            Some(route) => route,
            None => self.direction.detect(self.sentence(), terminal)?,
        };
        let choice = match route {
            Route::Direct(choice) => choice,
            Route::ThroughEnglish(first, second) => {
                let (first, second) = (first.name(), second.name());
                let problem = format!(
                    "attention is that of one model: choose --model {first} or --model {second}"
                );
                return Err(Ending::Usage(problem).into());
            }
        };
        let language = choice.source_language();
        let sentences = sentences::split(self.sentence(), language.as_deref()).into_iter();
        let count = sentences.filter(|part| !part.text.is_empty()).count();
        if !matches!(choice, Choice::Directory(_)) && count > 1 {
            terminal.warn(format_args!(
                "these are {count} sentences: they are shown as one, while `attentive translate` \
                 translates each by itself"
            ));
        }
        Ok(choice)
    }

    /// Runs the model: the runtime's on the CPU, that of `attentive-nn` on other devices.
    #[cfg_attr(not(feature = "training"), expect(unused_variables))]
    fn record(&self, choice: &Choice, terminal: &Terminal) -> anyhow::Result<Record> {
        let search = match self.beam {
            1 => SearchOptions::greedy(),
            size => SearchOptions::beam(size),
        };
        let target = |shortlist| match &self.target {
            Some(text) => Target::Given(text),
            None => Target::Translation(&search, shortlist),
        };
        #[cfg(feature = "training")]
        if let Some(folder) = network::recurrent(choice) {
            let model = LoadedModel::<Recurrent>::open(folder, &self.device.device)?;
            let LoadedModel {
                network,
                tokenizers,
                ..
            } = &model;
            return Ok(Record::of(
                network,
                tokenizers,
                self.sentence(),
                target(None),
            )?);
        }
        let record = match (self.device.device.as_str(), choice) {
            #[cfg(feature = "training")]
            (device, Choice::Directory(folder)) if family_of(folder) == Some(Family::Gpt) => {
                let model = LoadedGpt::open(folder, device)?;
                let context = model.network.context();
                Record::of_text(&model.tokenizer, self.sentence(), context, |ids, top| {
                    model.network.inspect(ids, top)
                })
            }
            #[cfg(feature = "training")]
            (device, Choice::Directory(folder)) if family_of(folder) == Some(Family::Bert) => {
                let model = LoadedBert::open(folder, device, terminal)?;
                let framed = model.framed_line(self.sentence(), terminal);
                let weights = model.network.inspect(&framed);
                Record::of_encoder(&model.tokenizer, self.sentence(), &framed.tokens, weights)
            }
            ("cpu", _) => {
                let dir = choice.open()?;
                let model = CpuModel::open(&dir, Compute::Auto)?;
                let shortlist = dir.shortlist()?;
                let target = target(shortlist.as_ref());
                Record::of(&model, &dir.tokenizers, self.sentence(), target)
            }
            (_, Choice::BuiltIn(_)) => return Err(only_for_the_cpu("built-in models are")),
            (_, Choice::Into(..)) => return Err(only_for_the_cpu("--model with --to is")),
            #[cfg(not(feature = "training"))]
            _ => return Err(only_for_the_cpu("this build is")),
            #[cfg(feature = "training")]
            (device, Choice::Directory(folder) | Choice::Pulled(StoredModel { folder, .. })) => {
                let model = LoadedModel::<Transformer>::open(folder, device)?;
                Record::of(
                    &model.network,
                    &model.tokenizers,
                    self.sentence(),
                    target(None),
                )
            }
        };
        Ok(record?)
    }

    /// The picture of tokens that leave.
    #[cfg(feature = "training")]
    fn draw_pruned(&self, format: Format, terminal: &Terminal) -> anyhow::Result<()> {
        let folder = self.model.as_deref().unwrap_or(Path::new(""));
        let model = LoadedBert::open(folder, &self.device.device, terminal)?;
        if model.network.pruning.is_none() {
            anyhow::bail!(
                "no tokens leave in this model: it was trained without `model.pruning` = \"learned_thresholds\""
            );
        }
        let framed = model.framed_line(self.sentence(), terminal);
        let texts = std::slice::from_ref(&framed);
        let layers = model.network.encode(texts).layers.into_iter();
        let classes = model.network.classify(texts).unwrap_or_default();
        let best = classes.iter().flatten().zip(&model.labels);
        let best = best.max_by(|(a, _), (b, _)| a.total_cmp(b));
        let caption = best.map_or(String::new(), |(probability, label)| {
            format!(
                "{}: {label} ({:.1}%)",
                folder.display(),
                100.0 * probability
            )
        });
        let tokens = framed.tokens.iter().map(|id| model.tokenizer.label(*id));
        let pruned = Pruned {
            tokens: tokens.collect(),
            layers: layers
                .filter_map(|texts| texts.into_iter().next())
                .collect(),
            caption,
        };
        let theme = self.picture.theme(Theme::Light);
        match format {
            Format::Terminal => self.picture.write_text(&pruned.print()),
            Format::Svg => self.picture.write_text(&pruned.draw(theme)),
            Format::Png => self.picture.write_png(&pruned.draw(theme), terminal),
            Format::Html | Format::Json => {
                let problem = "--pruned is drawn as terminal, svg or png";
                Err(Ending::Usage(problem.to_owned()).into())
            }
        }
    }

    fn selection(&self, format: Format) -> Selection {
        let in_terminal = format == Format::Terminal;
        let default = if in_terminal {
            KindName::Cross
        } else {
            KindName::All
        };
        let heads = match (self.head, self.mean, self.rollout) {
            (Some(head), _, _) => Heads::One(head),
            (_, true, _) => Heads::Mean,
            (_, _, true) => Heads::Rollout,
            // A terminal has no room for every head of every layer.
            _ if in_terminal && self.layer.is_none() => Heads::Mean,
            _ => Heads::All,
        };
        Selection {
            kinds: match self.kind.unwrap_or(default) {
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

/// The family of a directory's model; whatever else is wrong with it is told by whoever opens it.
#[cfg(feature = "training")]
fn family_of(folder: &Path) -> Option<Family> {
    let model = AnyModelDir::open(folder).ok()?;
    Some(model.config.family())
}

/// Layers and heads that are not there are wrong usage.
fn usage(error: PictureError) -> anyhow::Error {
    match error {
        PictureError::NoSuchLayer { .. }
        | PictureError::NoSuchHead { .. }
        | PictureError::NoSuchAttention { .. } => Ending::Usage(error.to_string()).into(),
        other => other.into(),
    }
}

/// Warns of words that the model does not know.
fn warn_unknown(what: &str, side: &Side, terminal: &Terminal) {
    let unknown = side.tokens.iter().filter(|token| token.id == UNK).count();
    if unknown > 0 {
        let words = plural(unknown, "word", "words");
        terminal.warn(format_args!(
            "{what} has {words} that the model does not know: it sees <unk>"
        ));
    }
}

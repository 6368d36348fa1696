//! `attentive translate -i FILE` for documents: the same file in another language, with its layout.
//!
//! [`Document`] finds the texts, the translator moves their tags to the words that they belong to. Plain text is no
//! document here: it is translated line by line, in constant memory. What was not translated is told at the end.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use attentive_hub::route::Route;
use attentive_runtime::translator::{MarkedTranslation, TranslatorOptions};
use attentive_text::TextError;
use attentive_text::documents::{Document, Format, Reason};
use attentive_text::markup::Marked;
use clap::Args;

use super::TranslateArgs;
use super::progress::Progress;
use crate::decoding::notices::Notices;
use crate::exit::Ending;
use crate::model::{self, Choice, only_for_the_cpu};
use crate::output::Output;
use crate::terminal::Terminal;
use crate::wording::plural;

/// What is said about documents.
#[derive(Debug, Args)]
pub struct DocumentArgs {
    /// The format of the input: text, markdown, html, xml, srt, vtt, po, json, yaml, xliff, docx, odt [default: that of the
    /// file's name or content; text is translated line by line]
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<Format>,
    /// Where to write several documents, under their own names
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    out_dir: Option<PathBuf>,
}

fn format(name: &str) -> Result<Format, String> {
    Format::named(name).ok_or_else(|| {
        let names: Vec<&str> = Format::all().map(Format::name).collect();
        format!("known formats are {}", names.join(", "))
    })
}

/// Documents to translate.
#[derive(Debug)]
pub struct Documents {
    sources: Vec<Source>,
    out_dir: Option<PathBuf>,
}

/// A document that is to be read.
#[derive(Debug)]
enum Source {
    /// A file; `-` is standard input.
    File(PathBuf, Format),
    /// A sentence of the command line.
    Sentence(String, Format),
}

/// So many texts are translated between two moves of the progress bar.
const TEXTS_AT_ONCE: usize = 256;

/// So much text is enough to tell its language.
const ENOUGH: usize = 1 << 16;

/// So many lines are named one by one.
const NAMED: usize = 5;

impl DocumentArgs {
    /// The documents, if these inputs are some; nothing if they are lines of plain text.
    pub fn documents(
        &self,
        sentences: &[String],
        files: &[PathBuf],
    ) -> anyhow::Result<Option<Documents>> {
        let usage = |problem: &str| Err(Ending::Usage(problem.to_owned()).into());
        if files.len() > 1 && self.out_dir.is_none() {
            return usage("several documents need --out-dir, a folder to write them to");
        }
        let standard_input = [PathBuf::from("-")];
        let files = if files.is_empty() && self.format.is_some() {
            &standard_input
        } else {
            files
        };
        let sources: Vec<Source> = if sentences.is_empty() {
            let file = |path: &PathBuf| {
                let format = self
                    .format
                    .map_or_else(|| Format::of_file(path), |format| Ok(Some(format)))?;
                Ok(Source::File(path.clone(), format.unwrap_or(Format::Text)))
            };
            files.iter().map(file).collect::<anyhow::Result<_>>()?
        } else {
            let format = self.format.unwrap_or(Format::Text);
            let sentence = |text: &String| Source::Sentence(text.clone(), format);
            sentences.iter().map(sentence).collect()
        };
        if self.out_dir.is_none() && sources.iter().all(|source| source.format() == Format::Text) {
            return Ok(None);
        }
        if self.out_dir.is_some() && !sentences.is_empty() {
            return usage("--out-dir is for files: give them with -i");
        }
        let out_dir = self.out_dir.clone();
        Ok(Some(Documents { sources, out_dir }))
    }
}

fn unreadable(path: &Path, source: io::Error) -> TextError {
    let path = path.to_owned();
    TextError::Open { path, source }
}

impl Source {
    fn format(&self) -> Format {
        match self {
            Self::File(_, format) | Self::Sentence(_, format) => *format,
        }
    }

    /// What it is called in messages.
    fn name(&self) -> PathBuf {
        match self {
            Self::File(path, _) if path == Path::new("-") => PathBuf::from("standard input"),
            Self::File(path, _) => path.clone(),
            Self::Sentence(..) => PathBuf::from("the sentence"),
        }
    }

    fn read(&self) -> anyhow::Result<Document> {
        let mut bytes = Vec::new();
        match self {
            Self::File(path, _) if path == Path::new("-") => {
                let read = io::stdin().read_to_end(&mut bytes);
                read.map_err(|source| unreadable(&self.name(), source))?;
            }
            Self::File(path, _) => {
                bytes = fs::read(path).map_err(|source| unreadable(path, source))?;
            }
            Self::Sentence(text, _) => bytes.extend_from_slice(text.as_bytes()),
        }
        Ok(Document::read(&self.name(), bytes, self.format())?)
    }
}

/// Translates documents.
pub fn run(
    args: &TranslateArgs,
    documents: &Documents,
    asked: Option<Route<Choice>>,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    check(args, documents)?;
    let outputs = documents.outputs(args)?;
    let mut read = Vec::new();
    for (source, output) in documents.sources.iter().zip(outputs) {
        read.push((source, source.read()?, output));
    }
    let route = match asked {
        Some(route) => route,
        None => {
            let texts = read.iter().flat_map(|(_, document, _)| document.texts());
            let mut beginning = String::new();
            for text in texts {
                if beginning.len() > ENOUGH {
                    break;
                }
                beginning.push_str(&text.text());
                beginning.push('\n');
            }
            args.direction.detect(&beginning, terminal)?
        }
    };
    let translate = args.marked_translator(&route)?;
    let language = match &route {
        Route::Direct(choice) | Route::ThroughEnglish(_, choice) => choice.target_language(),
    };
    for (source, document, output) in read {
        let name = source.name();
        let opened = Output::open(output.as_deref())?;
        let mut progress = Progress::new(&opened, Some(bytes(document.texts())), "texts", terminal);
        let mut report = Report::default();
        let mut translated = Vec::with_capacity(document.texts().len());
        for texts in document.texts().chunks(TEXTS_AT_ONCE) {
            for (old, new) in texts.iter().zip(translate(texts)) {
                report.add(old, &new, |warning| {
                    progress.suspend(|| terminal.warn(warning))
                });
                progress.add(&old.text());
                translated.push(new.marked);
            }
        }
        progress.finish();
        let written = document.write(&translated, language.as_deref())?;
        let mut opened = opened;
        opened.write_all(&written)?;
        if matches!(source, Source::Sentence(..)) {
            opened.write_all(b"\n")?;
        }
        opened.finish()?;
        report.tell(&name, &document, terminal);
    }
    Ok(())
}

/// How much text there is.
fn bytes(texts: &[Marked]) -> u64 {
    texts.iter().map(|text| text.text().len() as u64 + 1).sum()
}

/// Refuses what only lines have.
fn check(args: &TranslateArgs, documents: &Documents) -> anyhow::Result<()> {
    let usage = |problem: String| Err(Ending::Usage(problem).into());
    let format = documents
        .sources
        .first()
        .map_or(Format::Text, Source::format);
    let of_lines = [
        ("--json", args.json),
        ("--scores", args.scores),
        ("--alignments", args.alignments),
        ("--alternatives", args.alternatives.is_some()),
        ("--draft", args.draft.is_some()),
    ];
    let given = of_lines
        .into_iter()
        .filter(|(_, given)| *given)
        .map(|(name, _)| name);
    let given: Vec<&str> = given.chain(args.input.options_of_lines()).collect();
    if !given.is_empty() {
        return usage(format!(
            "{} belong to lines of text, and this is a document ({format}): leave them out, or use --format text",
            given.join(", ")
        ));
    }
    let archive = documents
        .sources
        .iter()
        .find(|source| source.format().is_archive());
    if let Some(source) = archive {
        let format = source.format();
        if matches!(source, Source::Sentence(..)) {
            return usage(format!("a {format} document is a file: give it with -i"));
        }
        if args.output.is_none() && documents.out_dir.is_none() && io::stdout().is_terminal() {
            return usage(format!(
                "a {format} document is not for a terminal: name a file with -o"
            ));
        }
    }
    if args.device.device != "cpu" {
        return Err(only_for_the_cpu("documents are"));
    }
    Ok(())
}

impl Documents {
    /// Where each document is written; nothing is standard output.
    fn outputs(&self, args: &TranslateArgs) -> anyhow::Result<Vec<Option<PathBuf>>> {
        let Some(folder) = &self.out_dir else {
            return Ok(vec![args.output.clone(); self.sources.len()]);
        };
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let mut outputs: Vec<Option<PathBuf>> = Vec::new();
        for source in &self.sources {
            let path = source.name();
            let name = path.file_name().unwrap_or_default();
            let output = folder.join(name);
            let same =
                |other: &PathBuf| fs::canonicalize(other).ok() == fs::canonicalize(&path).ok();
            let problem = if outputs.contains(&Some(output.clone())) {
                "is the name of two of the documents: translate them one by one"
            } else if output.exists() && same(&output) {
                "is the document itself: choose another folder for --out-dir"
            } else {
                outputs.push(Some(output));
                continue;
            };
            return Err(Ending::Usage(format!("{} {problem}", output.display())).into());
        }
        Ok(outputs)
    }
}

/// Translates texts with markup.
type Translate = Box<dyn Fn(&[Marked]) -> Vec<MarkedTranslation>>;

impl TranslateArgs {
    fn marked_translator(&self, route: &Route<Choice>) -> anyhow::Result<Translate> {
        let window = TranslatorOptions::default().window;
        match route {
            Route::Direct(choice) => {
                let directory = choice.open()?;
                let options = self.options(choice, TranslatorOptions::of(&directory)?, window)?;
                let translator = model::translator(directory, self.decoding.compute, options)?;
                Ok(Box::new(move |texts| translator.translate_marked(texts)))
            }
            Route::ThroughEnglish(first, second) => {
                let chain = self.chain(first, second, window)?;
                Ok(Box::new(move |texts| chain.translate_marked(texts)))
            }
        }
    }
}

/// What there is to say about a document.
#[derive(Debug, Default)]
struct Report {
    notices: Notices,
    texts: usize,
    /// Texts that came back as they were.
    same: Vec<String>,
    /// Tags without a counterpart.
    unplaced: usize,
}

impl Report {
    fn add(&mut self, old: &Marked, new: &MarkedTranslation, say: impl FnOnce(String)) {
        self.texts += 1;
        self.unplaced += new.unplaced.len();
        if *old == new.marked {
            self.same.push(old.text());
        }
        if let Some(warning) = self.notices.add(self.texts, &new.translation) {
            say(warning);
        }
    }

    fn tell(&self, name: &Path, document: &Document, terminal: &Terminal) {
        let name = name.display();
        self.notices.tell(terminal);
        if self.unplaced > 0 {
            let tags = plural(self.unplaced, "tag stands", "tags stand");
            terminal.warn(format_args!(
                "{name}: {tags} beside the nearest word, as the translation has no words for what was in it"
            ));
        }
        let translated = self.texts - self.same.len();
        terminal.note(format_args!(
            "{name}: {} translated",
            plural(translated, "text", "texts")
        ));
        if !self.same.is_empty() {
            let few: Vec<String> = self
                .same
                .iter()
                .take(NAMED)
                .map(|text| format!("{:?}", shortened(text)))
                .collect();
            let more = if self.same.len() > NAMED { ", ..." } else { "" };
            let texts = plural(self.same.len(), "text", "texts");
            terminal.note(format_args!(
                "{name}: {texts} came back unchanged: {}{more}",
                few.join(", ")
            ));
        }
        let mut reasons: BTreeMap<Reason, Vec<usize>> = BTreeMap::new();
        for skipped in document.skipped() {
            reasons
                .entry(skipped.reason)
                .or_default()
                .push(skipped.line);
        }
        for (reason, lines) in reasons {
            let few: Vec<String> = lines.iter().take(NAMED).map(usize::to_string).collect();
            let more = if lines.len() > NAMED { ", ..." } else { "" };
            let places = if document.format().is_archive() {
                String::new()
            } else {
                format!(" (line {}{more})", few.join(", "))
            };
            terminal.note(format_args!(
                "{name}: not translated: {} x {reason}{places}",
                lines.len()
            ));
        }
    }
}

fn shortened(text: &str) -> String {
    const LENGTH: usize = 40;
    let mut short: String = text.chars().take(LENGTH).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

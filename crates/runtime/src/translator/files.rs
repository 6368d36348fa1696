//! Files to files: documents with their layout, and lines of plain text in constant memory.
//!
//! For programs in other languages; the binary does the same with its own reports. The output appears when it is complete,
//! or not at all. Neighbors: [`attentive_text::documents`] finds the texts, [`super::marked`] translates them.

use std::fs;
use std::io::Write;
use std::path::Path;

use attentive_model::durable::{self, DurableFile};
use attentive_text::documents::{Document, Format};
use attentive_text::lines::LineReader;
use attentive_text::markup::Marked;
use attentive_text::wrapped::{Paragraph, Paragraphs, Wrapping};

use super::{Line, Lines, Translator};
use crate::error::{Result, RuntimeError};
use crate::search::SearchModel;

/// How to translate a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileOptions {
    /// The format; that of the file's name or content if none is given, and else plain text.
    pub format: Option<Format>,
    /// Which lines of plain text are joined; those of `.txt` files that were broken at a width if it is not given. Lines that
    /// are translated as they stand ([`Lines::Whole`]) are never joined.
    pub wrapping: Option<Wrapping>,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// Its format.
    pub format: Format,
    /// How many texts it has: lines or paragraphs of plain text, blocks of documents.
    pub texts: usize,
    /// How many of them came back as they were.
    pub unchanged: usize,
    /// What holds words and was not translated: the line, and why.
    pub skipped: Vec<(usize, String)>,
}

/// So many texts are translated between two reports of progress.
const TEXTS_AT_ONCE: usize = 256;

impl<M: SearchModel + Send + Sync> Translator<M> {
    /// Translates a file. `progress` gets the bytes that are done, and how many there are if that is known.
    pub fn translate_file(
        &self,
        input: &Path,
        output: &Path,
        options: FileOptions,
        progress: impl FnMut(u64, Option<u64>),
    ) -> Result<FileReport> {
        let format = match options.format {
            Some(format) => format,
            None => Format::of_file(input)?.unwrap_or(Format::Text),
        };
        if format == Format::Text {
            self.translate_lines(input, output, options, progress)
        } else {
            self.translate_document(input, output, format, progress)
        }
    }

    fn translate_document(
        &self,
        input: &Path,
        output: &Path,
        format: Format,
        mut progress: impl FnMut(u64, Option<u64>),
    ) -> Result<FileReport> {
        let bytes = fs::read(input).map_err(failed("read", input))?;
        let document = Document::read(input, bytes, format)?;
        let size = |text: &Marked| text.text().len() as u64 + 1;
        let all = document.texts().iter().map(size).sum();
        let mut translated = Vec::with_capacity(document.texts().len());
        let mut done = 0;
        for texts in document.texts().chunks(TEXTS_AT_ONCE) {
            let found = self.translate_marked(texts);
            self.go_on()?;
            translated.extend(found.into_iter().map(|one| one.marked));
            done += texts.iter().map(size).sum::<u64>();
            progress(done, Some(all));
        }
        let language = self.options.target_language.as_deref();
        let written = document.write(&translated, language)?;
        durable::write(output, &written).map_err(failed("write", output))?;
        let pairs = document.texts().iter().zip(&translated);
        Ok(FileReport {
            format,
            texts: translated.len(),
            unchanged: pairs.filter(|(old, new)| old == new).count(),
            skipped: document
                .skipped()
                .iter()
                .map(|skipped| (skipped.line, skipped.reason.to_string()))
                .collect(),
        })
    }

    fn translate_lines(
        &self,
        input: &Path,
        output: &Path,
        options: FileOptions,
        mut progress: impl FnMut(u64, Option<u64>),
    ) -> Result<FileReport> {
        let ends_in = |end: &str| {
            let own = input.extension();
            own.is_some_and(|own| own.eq_ignore_ascii_case(end))
        };
        let wrapping = match (self.options.lines, options.wrapping) {
            (Lines::Whole, _) => Wrapping::Lines,
            (Lines::RawText, Some(wrapping)) => wrapping,
            (Lines::RawText, None) if ends_in("txt") => Wrapping::Detect,
            (Lines::RawText, None) => Wrapping::Lines,
        };
        let reader = LineReader::open(input)?;
        let all = fs::metadata(input).map(|file| file.len()).ok();
        let all = all.filter(|_| !ends_in("gz"));
        let mut file = DurableFile::create(output).map_err(failed("write", output))?;
        let mut report = FileReport {
            format: Format::Text,
            texts: 0,
            unchanged: 0,
            skipped: Vec::new(),
        };
        let mut done = 0;
        let lines = reader.map(|line| line.map_err(RuntimeError::from));
        let paragraphs = Paragraphs::new(lines, wrapping).map(|one| one.map(Unit));
        self.translate_stream(paragraphs, |Unit(source), translation| {
            self.go_on()?;
            let text = match &source.layout {
                Some(layout) => layout.wrap(&translation.text),
                // A line break would shift all lines after it.
                None => translation.text.replace(['\n', '\r'], " "),
            };
            writeln!(file, "{text}").map_err(failed("write", output))?;
            report.texts += 1;
            report.unchanged += usize::from(translation.text == source.text);
            done += source.text.len() as u64 + 1;
            if report.texts.is_multiple_of(TEXTS_AT_ONCE) {
                progress(done, all);
            }
            Ok(())
        })?;
        file.commit().map_err(failed("write", output))?;
        progress(done, Some(done));
        Ok(report)
    }

    /// An error if the call was asked to stop: what was found since is incomplete.
    fn go_on(&self) -> Result<()> {
        if self.stop.is_asked() {
            Err(RuntimeError::Stopped)
        } else {
            Ok(())
        }
    }
}

/// A line, or several that were joined.
struct Unit(Paragraph);

impl Line for Unit {
    fn text(&self) -> &str {
        &self.0.text
    }
}

fn failed(action: &'static str, path: &Path) -> impl Fn(std::io::Error) -> RuntimeError {
    let path = path.to_owned();
    move |source| RuntimeError::Io {
        action,
        path: path.clone(),
        source,
    }
}

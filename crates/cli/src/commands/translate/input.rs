//! The lines to translate: sentences on the command line, a file, or standard input; and what their
//! translations must start with.
//!
//! Lines of a document that are one paragraph can be joined ([`Input::paragraphs`]): a text that someone broke at a width.
//!
//! The first lines can be looked at before they are read ([`Input::look_ahead`]), to find out their language.
//!
//! Lines typed on a terminal are answered one by one. Everything else is read in windows: large enough that lines
//! of similar length find each other, small enough that an endless pipe needs no endless memory.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::bail;
use attentive_runtime::translator::{Line, WithPrefix};
use attentive_text::TextError;
use attentive_text::lines::LineReader;
use attentive_text::wrapped::{Layout, Paragraphs, Wrapping};
use clap::{Args, ValueEnum};

use super::shard::Shard;
use crate::exit::Ending;
use crate::terminal::Terminal;

/// Where lines come from.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// Sentences to translate
    #[arg(value_name = "SENTENCE")]
    sentences: Vec<String>,
    /// Translate a document, or the lines of a text file, plain or gzip'd; - is standard input, and the default. Several
    /// documents need --out-dir
    #[arg(long, short, value_name = "FILE", conflicts_with = "sentences")]
    input: Vec<PathBuf>,
    /// Answer each line as soon as it comes, for a pipe that waits for the answer
    #[arg(long)]
    unbuffered: bool,
    /// Lines that are one paragraph, broken at a width: auto joins them in .txt files and in sentences with line breaks,
    /// where a paragraph looks like that; join joins all lines up to a blank one; lines joins none. Translations are
    /// broken at the same width. Lines that are translated as they stand (--whole-lines) are never joined
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Wrapped::Auto)]
    pub wrapped: Wrapped,
    /// What every translation must start with, in whole words
    #[arg(long, value_name = "TEXT", conflicts_with = "prefix_file")]
    prefix: Option<String>,
    /// What each translation must start with: line N of this file is for line N of the input
    #[arg(long, value_name = "FILE")]
    prefix_file: Option<PathBuf>,
    /// Translate only part K, from 1, of N parts of a text file, for N processes or machines: contiguous lines, about as
    /// much work each. The outputs of all parts, one after the other, are what one process writes
    #[arg(long, value_name = "K/N", requires = "input", conflicts_with_all = ["sentences", "unbuffered"])]
    shard: Option<Shard>,
}

/// Which lines are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Wrapped {
    /// Those of a document that look as if they were broken at a width
    Auto,
    /// All up to a blank line
    Join,
    /// None
    Lines,
}

/// A line, or several that were joined.
pub struct Unit {
    pub text: String,
    prefix: String,
    /// How it was laid out, if it was several lines.
    pub layout: Option<Layout>,
}

impl Line for Unit {
    fn text(&self) -> &str {
        &self.text
    }

    fn prefix(&self) -> &str {
        &self.prefix
    }
}

/// The lines, one at a time.
pub struct Input {
    lines: Box<dyn Iterator<Item = Result<String, TextError>>>,
    /// Lines that were looked at but not read yet.
    ahead: VecDeque<Result<String, TextError>>,
    prefixes: Prefixes,
    /// Lines of the input that were read, or belong to an earlier shard.
    pub read: usize,
    /// The beginning of the whole input, if this is a shard of it: all shards must find the same language.
    beginning: Option<Box<Input>>,
    /// When lines are answered.
    pub pace: Pace,
    /// How many bytes all lines have together, if that is known.
    pub bytes: Option<u64>,
    /// Whether it is a text for people to read, as far as one can tell: a .txt file, or a sentence with line breaks.
    pub is_document: bool,
}

/// When lines are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// When there are many.
    Window,
    /// Each at once.
    Line,
}

enum Prefixes {
    /// The same for every line.
    All(String),
    /// One for each line.
    Each(PathBuf, LineReader),
}

impl InputArgs {
    /// Opens the input; someone in front of a silent terminal is told what it waits for.
    pub fn open(&self, terminal: &Terminal) -> Result<Input, TextError> {
        let prefixes = match &self.prefix_file {
            Some(path) => Prefixes::Each(path.clone(), LineReader::open(path)?),
            None => Prefixes::All(self.prefix.clone().unwrap_or_default()),
        };
        if !self.sentences.is_empty() {
            let mut input = Input::new(sentences(&self.sentences), prefixes);
            input.is_document = self.sentences.iter().any(|text| text.contains('\n'));
            return Ok(input);
        }
        let path = self.input.first();
        let path = path.map_or(Path::new("-"), |path| path.as_path());
        let interactive = path == Path::new("-") && io::stdin().is_terminal();
        if interactive {
            terminal.note("type a sentence and press Enter; Ctrl-D ends (--help shows other ways)");
            // Not a reader of files, which looks for gzip before it gives a line.
            let lines = io::stdin().lines().map(|line| line.map_err(unreadable));
            let mut input = Input::new(lines, prefixes);
            input.pace = Pace::Line;
            return Ok(input);
        }
        let mut input = match self.shard {
            Some(shard) => Input::of_shard(shard, path, prefixes)?,
            None => {
                let mut input = Input::new(LineReader::open(path)?, prefixes);
                input.bytes = plain_size(path);
                input
            }
        };
        input.is_document = is_text_for_people(path);
        if self.unbuffered {
            input.pace = Pace::Line;
        }
        Ok(input)
    }
}

impl InputArgs {
    /// Refuses a shard of what cannot be cut into lines that are translated each for itself.
    pub fn check_shard(&self) -> Result<(), Ending> {
        let Some(path) = self.input.first().filter(|_| self.shard.is_some()) else {
            return Ok(());
        };
        if !path.is_file() && path.exists() || path == Path::new("-") {
            return Err(Ending::Usage(format!(
                "--shard needs a file, which is read twice, and {} is none: write it to a file first",
                path.display()
            )));
        }
        let joins = match self.wrapped {
            Wrapped::Auto => is_text_for_people(path),
            Wrapped::Join => true,
            Wrapped::Lines => false,
        };
        if joins {
            return Err(Ending::Usage(format!(
                "lines of {} may be joined to paragraphs, and a shard could begin within one: add --wrapped lines, \
                 which translates each line for itself",
                path.display()
            )));
        }
        Ok(())
    }

    /// Sentences and files, of which at most one kind is there.
    pub fn given(&self) -> (&[String], &[PathBuf]) {
        (&self.sentences, &self.input)
    }

    /// The options that were given and mean something for lines only.
    pub fn options_of_lines(&self) -> impl Iterator<Item = &'static str> {
        let options = [
            ("--unbuffered", self.unbuffered),
            ("--prefix", self.prefix.is_some()),
            ("--prefix-file", self.prefix_file.is_some()),
            ("--shard", self.shard.is_some()),
        ];
        options
            .into_iter()
            .filter(|(_, given)| *given)
            .map(|(name, _)| name)
    }
}

impl Input {
    fn new(
        lines: impl Iterator<Item = Result<String, TextError>> + 'static,
        prefixes: Prefixes,
    ) -> Self {
        Self {
            // After its end, a terminal would be asked again.
            lines: Box::new(lines.fuse()),
            ahead: VecDeque::new(),
            prefixes,
            read: 0,
            beginning: None,
            pace: Pace::Window,
            bytes: None,
            is_document: false,
        }
    }

    /// The lines of a shard, each with the number and the prefix that it has in the whole file.
    fn of_shard(shard: Shard, path: &Path, mut prefixes: Prefixes) -> Result<Self, TextError> {
        let lines = shard.open(path)?;
        let (skipped, bytes) = (lines.skipped, lines.bytes());
        prefixes.skip(skipped)?;
        let mut input = Self::new(lines, prefixes);
        input.read = skipped;
        input.bytes = Some(bytes);
        let none = Prefixes::All(String::new());
        input.beginning = Some(Box::new(Self::new(LineReader::open(path)?, none)));
        Ok(input)
    }

    /// The text of the first lines, which stay to be read. Whoever waits for an answer to each line
    /// has written one line.
    pub fn look_ahead(&mut self) -> String {
        if let Some(beginning) = &mut self.beginning {
            return beginning.look_ahead();
        }
        let lines = match self.pace {
            Pace::Line => 1,
            Pace::Window => usize::MAX,
        };
        let mut text = String::new();
        while self.ahead.len() < lines && text.len() < BYTES_AHEAD {
            let Some(line) = self.lines.next() else { break };
            let is_last = line.is_err();
            if let Ok(line) = &line {
                text.push_str(line);
                text.push('\n');
            }
            self.ahead.push_back(line);
            if is_last {
                break;
            }
        }
        text
    }
}

impl Input {
    /// The lines, joined to paragraphs. Where each line has a prefix of its own, none are joined.
    pub fn paragraphs(self, wrapping: Wrapping) -> Box<dyn Iterator<Item = anyhow::Result<Unit>>> {
        match (&self.prefixes, wrapping) {
            (Prefixes::All(prefix), Wrapping::Detect | Wrapping::Join) => {
                let prefix = prefix.clone();
                let lines = self.map(|line| line.map(|line| line.text));
                let unit = move |one: anyhow::Result<attentive_text::wrapped::Paragraph>| {
                    one.map(|one| Unit {
                        text: one.text,
                        prefix: prefix.clone(),
                        layout: one.layout,
                    })
                };
                Box::new(Paragraphs::new(lines, wrapping).map(unit))
            }
            _ => Box::new(self.map(|line| {
                line.map(|WithPrefix { text, prefix }| Unit {
                    text,
                    prefix,
                    layout: None,
                })
            })),
        }
    }
}

/// So much text is enough to tell its language.
const BYTES_AHEAD: usize = 1 << 16;

impl Iterator for Input {
    type Item = anyhow::Result<WithPrefix>;

    fn next(&mut self) -> Option<Self::Item> {
        let text = match self.ahead.pop_front().or_else(|| self.lines.next())? {
            Ok(text) => text,
            Err(error) => return Some(Err(error.into())),
        };
        self.read += 1;
        let prefix = self.prefixes.next(self.read);
        Some(prefix.map(|prefix| WithPrefix { text, prefix }))
    }
}

impl Prefixes {
    fn skip(&mut self, lines: usize) -> Result<(), TextError> {
        if let Prefixes::Each(_, reader) = self {
            for _ in 0..lines {
                reader.next_bytes()?;
            }
        }
        Ok(())
    }

    fn next(&mut self, line: usize) -> anyhow::Result<String> {
        match self {
            Prefixes::All(prefix) => Ok(prefix.clone()),
            Prefixes::Each(path, lines) => match lines.next() {
                Some(prefix) => Ok(prefix?),
                None => bail!(
                    "{} has {} lines, but the input has more; give each input line its own, \
                     empty where nothing is to be prescribed",
                    path.display(),
                    line - 1
                ),
            },
        }
    }
}

/// One line for each line of each sentence; an empty sentence is an empty line.
fn sentences(
    sentences: &[String],
) -> impl Iterator<Item = Result<String, TextError>> + use<> + 'static {
    let lines: Vec<_> = sentences
        .iter()
        .flat_map(|sentence| sentence.split('\n'))
        .map(|line| Ok(line.to_owned()))
        .collect();
    lines.into_iter()
}

/// Whether it is a text for people to read, as far as its name tells.
fn is_text_for_people(path: &Path) -> bool {
    path.extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("txt"))
}

/// The size of a file whose bytes are its lines: a file, and not a gzip'd one.
fn plain_size(path: &Path) -> Option<u64> {
    let mut file = File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let mut head = [0; 2];
    let compressed = file.read_exact(&mut head).is_ok() && head == [0x1f, 0x8b];
    (metadata.is_file() && !compressed).then_some(metadata.len())
}

fn unreadable(source: io::Error) -> TextError {
    let path = PathBuf::from("standard input");
    TextError::Open { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(input: Input) -> Vec<(String, String)> {
        let lines = input.map(|line| line.unwrap());
        lines.map(|line| (line.text, line.prefix)).collect()
    }

    #[test]
    fn every_line_of_every_sentence_is_a_line() {
        let given = ["a b".to_owned(), String::new(), "c\nd".to_owned()];
        let input = Input::new(sentences(&given), Prefixes::All("x".to_owned()));
        let expected = ["a b", "", "c", "d"].map(|text| (text.to_owned(), "x".to_owned()));
        assert_eq!(texts(input), expected);
    }

    #[test]
    fn lines_that_were_looked_at_are_still_read() {
        let given = ["a".to_owned(), "b\nc".to_owned()];
        for (pace, seen) in [(Pace::Window, "a\nb\nc\n"), (Pace::Line, "a\n")] {
            let mut input = Input::new(sentences(&given), Prefixes::All(String::new()));
            input.pace = pace;
            assert_eq!(input.look_ahead(), seen);
            let read: Vec<String> = texts(input).into_iter().map(|(text, _)| text).collect();
            assert_eq!(read, ["a", "b", "c"]);
        }
    }

    #[test]
    fn a_pipe_without_an_end_is_looked_at_for_a_while_only() {
        let mut read = 0;
        let endless = std::iter::repeat_with(move || {
            read += 1;
            assert!(read < 10_000, "it should have seen enough");
            Ok("many words".to_owned())
        });
        let mut input = Input::new(endless, Prefixes::All(String::new()));
        assert!(input.look_ahead().len() >= BYTES_AHEAD);
    }

    #[test]
    fn prefixes_of_a_file_go_with_the_lines_and_must_suffice() {
        let prefixes = || {
            let reader = LineReader::from_read(&b"x\n\n"[..], Path::new("p")).unwrap();
            Prefixes::Each("p".into(), reader)
        };
        let two = ["a".to_owned(), "b".to_owned()];
        let expected = [("a", "x"), ("b", "")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(texts(Input::new(sentences(&two), prefixes())), expected);
        let three = ["a\nb\nc".to_owned()];
        let last = Input::new(sentences(&three), prefixes()).last().unwrap();
        let message = last.unwrap_err().to_string();
        assert!(message.starts_with("p has 2 lines"), "{message}");
    }

    #[test]
    fn only_plain_files_have_a_known_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "abc\n").unwrap();
        assert_eq!(plain_size(&path), Some(4));
        std::fs::write(&path, [0x1f, 0x8b, 8, 0]).unwrap();
        assert_eq!(plain_size(&path), None);
        assert_eq!(plain_size(Path::new("/dev/null")), None);
    }
}

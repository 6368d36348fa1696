//! Glossaries: which terms of a text must be translated in which way.
//!
//! A file has a line for each term: the source term, a tab, the target term, and if need be another tab and options.
//!
//! ```text
//! # Lines that begin with a number sign are comments.
//! Rechner    computer
//! Zug    train | railway train    exact      either target will do; no other form of the source is matched
//! IT    IT    case                     capital letters count
//! ```
//!
//! A `.csv` file has commas instead of tabs, quotes where needed, and its third and fourth columns, if it has them, are
//! languages, as in the glossaries of DeepL. [`Glossary::find`] says which terms occur in a sentence (`matching`,
//! by words and with the simple `inflection` of their language). How they get into a translation is the business
//! of `attentive-runtime`: its search requires them, and the model chooses the place.

mod inflection;
mod matching;

use std::collections::HashMap;
use std::path::Path;

use crate::error::{Result, TextError};
use crate::lines::LineReader;

pub use inflection::forms as inflected_forms;
pub use matching::{Match, ends_word};

/// Terms and their translations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Glossary {
    entries: Vec<Entry>,
    /// The entries by the beginning of their sources.
    index: HashMap<String, Vec<usize>>,
    left_out: Vec<String>,
}

/// A term and its translation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The term in the source.
    pub source: String,
    /// Its translations, of which any will do; at least one.
    pub targets: Vec<String>,
    /// Whether capital letters count when the source term is matched.
    pub case: Case,
    /// Which forms of the source term are matched.
    pub forms: Forms,
    /// The words of the source term.
    words: Vec<String>,
}

/// Whether capital letters count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Case {
    /// `Hund` matches `HUND`.
    #[default]
    Ignored,
    /// `IT` does not match `it`.
    Kept,
}

/// Which forms of a term are matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Forms {
    /// Also those with a common ending of the language: `Hund` matches `Hunde`.
    #[default]
    Inflected,
    /// The term as it stands.
    Exact,
}

impl Glossary {
    /// Reads a file: with commas if its name ends in `.csv`, with tabs otherwise. Terms that are empty are left out
    /// ([`Glossary::left_out`]).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut glossary = Self::default();
        let ending = path.extension().unwrap_or_default();
        let is_csv = ending.eq_ignore_ascii_case("csv");
        for (number, line) in (1..).zip(LineReader::open(path)?) {
            let line = line?;
            let problem = |problem| TextError::Glossary {
                path: path.to_owned(),
                line: number,
                problem,
            };
            let left_out = glossary.add_line(&line, is_csv).map_err(problem)?;
            if let Some(reason) = left_out {
                let message = format!("{}, line {number}: {reason}", path.display());
                glossary.left_out.push(message);
            }
        }
        Ok(glossary)
    }

    /// A glossary of terms and their translations. Terms that are empty are left out.
    pub fn of_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut glossary = Self::default();
        for (source, target) in pairs {
            let entry = Entry::new(source, vec![target.to_owned()]);
            if let Err(reason) = glossary.add(entry) {
                glossary.left_out.push(reason.to_owned());
            }
        }
        glossary
    }

    /// Adds an entry. One with the source and options of another gives that one further translations, of which any
    /// will do.
    pub fn add(&mut self, mut entry: Entry) -> std::result::Result<(), &'static str> {
        let trimmed = entry.targets.iter().map(|target| target.trim().to_owned());
        entry.targets = trimmed.filter(|target| !target.is_empty()).collect();
        entry.words = matching::words(&entry.source, entry.case);
        if entry.words.is_empty() {
            return Err("the source term is empty, so it was left out");
        }
        if entry.targets.is_empty() {
            return Err("the target term is empty, so it was left out");
        }
        let known = self
            .index
            .entry(matching::key(&entry.words[0]))
            .or_default();
        let alike = |other: &Entry| {
            other.words == entry.words && (other.case, other.forms) == (entry.case, entry.forms)
        };
        match known.iter().find(|&&place| alike(&self.entries[place])) {
            Some(&place) => {
                let targets = &mut self.entries[place].targets;
                entry.targets.retain(|target| !targets.contains(target));
                targets.append(&mut entry.targets);
            }
            None => {
                known.push(self.entries.len());
                self.entries.push(entry);
            }
        }
        Ok(())
    }

    /// The entries, in the order of their sources' first occurrence.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether it has no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What was left out when it was made, each a sentence.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Adds the entry of a line of a file. The error says what is wrong with it, the answer why it was left out.
    fn add_line(
        &mut self,
        line: &str,
        is_csv: bool,
    ) -> std::result::Result<Option<&'static str>, String> {
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        let columns = if is_csv {
            csv_columns(line)
        } else {
            line.split('\t').map(str::to_owned).collect()
        };
        let (source, target, rest) = match &columns[..] {
            [source, target, rest @ ..] if rest.len() <= 2 => (source, target, rest),
            [_] => return Err("there is no target term".to_owned()),
            more => return Err(format!("there are {} columns", more.len())),
        };
        let mut entry = Entry::new(source, target.split('|').map(str::to_owned).collect());
        // The other columns of CSV are languages.
        for option in rest
            .iter()
            .filter(|_| !is_csv)
            .flat_map(|rest| rest.split([',', ' ']))
        {
            match option.trim() {
                "" => {}
                "case" => entry.case = Case::Kept,
                "exact" => entry.forms = Forms::Exact,
                other => return Err(format!("{other:?} is no option; there are case and exact")),
            }
        }
        Ok(self.add(entry).err())
    }
}

impl Entry {
    /// An entry without options.
    pub fn new(source: &str, targets: Vec<String>) -> Self {
        Self {
            source: source.trim().to_owned(),
            targets,
            case: Case::default(),
            forms: Forms::default(),
            words: Vec::new(),
        }
    }
}

/// The columns of a line of CSV; a quote within quotes is doubled.
pub fn csv_columns(line: &str) -> Vec<String> {
    let mut columns = Vec::new();
    let mut column = String::new();
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => column.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => columns.push(std::mem::take(&mut column)),
            c => column.push(c),
        }
    }
    columns.push(column);
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(name: &str, content: &str) -> Result<Glossary> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, content).expect("written");
        Glossary::open(path)
    }

    fn shown(glossary: &Glossary) -> Vec<String> {
        let entries = glossary.entries().iter();
        let shown = |entry: &Entry| {
            let targets = entry.targets.join("|");
            format!(
                "{}={targets} {:?} {:?}",
                entry.source, entry.case, entry.forms
            )
        };
        entries.map(shown).collect()
    }

    #[test]
    fn a_file_has_terms_alternatives_options_and_comments() {
        let text = "\u{FEFF}# comment\r\nHund\tdog | hound \r\n\r\nIT\tIT\tcase, exact\nHund\tdog\n\
                    hund\tcur\nHund\tpooch\texact\n";
        let glossary = opened("terms.tsv", text).expect("sound");
        let expected = [
            "Hund=dog|hound|cur Ignored Inflected",
            "IT=IT Kept Exact",
            "Hund=pooch Ignored Exact",
        ];
        assert_eq!(shown(&glossary), expected);
        assert!(glossary.left_out().is_empty());
        let csv = "Hund,\"dog, big\"\n\"a \"\"b\"\"\",c,de,en\n";
        let glossary = opened("terms.CSV", csv).expect("sound");
        let expected = [
            "Hund=dog, big Ignored Inflected",
            "a \"b\"=c Ignored Inflected",
        ];
        assert_eq!(shown(&glossary), expected);
    }

    #[test]
    fn empty_terms_are_left_out_and_told() {
        let glossary = opened("t.tsv", "\tdog\n \t \nHund\t\nKatze\t | \nMaus\tmouse\n");
        let glossary = glossary.expect("sound");
        assert_eq!(shown(&glossary), ["Maus=mouse Ignored Inflected"]);
        assert_eq!(glossary.left_out().len(), 3);
        assert!(
            glossary.left_out()[1]
                .ends_with("line 3: the target term is empty, so it was left out")
        );
        let pairs = Glossary::of_pairs([("", "x"), ("a", "b")]);
        assert_eq!((pairs.entries().len(), pairs.left_out().len()), (1, 1));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_the_remedy() {
        for (content, problem) in [
            ("a\tb\nHund dog\n", "line 2: there is no target term"),
            ("a\tb\tc\td\te\n", "line 1: there are 5 columns"),
            ("a\tb\tcsae\n", "line 1: \"csae\" is no option"),
        ] {
            let message = opened("t.tsv", content).expect_err("wrong").to_string();
            assert!(message.contains(problem), "{message}");
            assert!(message.contains("a source term, a tab"), "{message}");
        }
        let missing = Glossary::open("/nowhere/t.tsv").expect_err("missing");
        assert!(missing.to_string().contains("cannot open"), "{missing}");
    }

    #[test]
    fn csv_may_quote() {
        assert_eq!(
            csv_columns("a,\"b, \"\"c\"\"\",de,en"),
            ["a", "b, \"c\"", "de", "en"]
        );
    }
}

//! The vocabulary files of other programs: tokens and the ids that those programs give them.
//!
//! [`json`] reads Hugging Face's and CTranslate2's files, [`yml`] Marian's, [`txt`] those with one token on each
//! line, [`fairseq_dict`] fairseq's. All give tokens in the order of their ids, which are 0, 1, 2 and so
//! on: a gap, an id or a token that stands there twice and text that is not UTF-8 are errors that name the line.
//! Whoever converts a model brings them into the order of our ids and makes a [`super::Tokenizer`].

mod yaml;

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserializer;
use serde::de::{self, MapAccess, SeqAccess, Visitor};

use crate::error::{Result, TextError};

/// The largest file that is read; the largest vocabularies take a few megabytes.
const LARGEST: u64 = 256 << 20;

const JSON: &str = "a JSON object of tokens and ids, or a JSON array of tokens";
const YML: &str = "a line `token: id` for each token";
const TXT: &str = "one token on each line";
const DICT: &str = "a line `token count` for each token";

/// A problem and its line, if it has one.
type Problem = (Option<usize>, String);

/// Reads a JSON object of tokens and ids (Hugging Face's `vocab.json`), or a JSON array of tokens in the order of
/// their ids (CTranslate2's `shared_vocabulary.json`).
pub fn json(path: impl AsRef<Path>) -> Result<Vec<(String, u32)>> {
    read(path.as_ref(), JSON, from_json)
}

/// Reads Marian's `vocab.yml`, lines of `token: id`. Tokens may be quoted and escaped, and may stand behind a `?` on a
/// line before their id. JSON, which is YAML, is read as well.
pub fn yml(path: impl AsRef<Path>) -> Result<Vec<(String, u32)>> {
    read(path.as_ref(), YML, |text| {
        if text.trim_start().starts_with('{') {
            from_json(text)
        } else {
            yaml::entries(text)
        }
    })
}

/// Reads a file with one token on each line, in the order of their ids.
pub fn txt(path: impl AsRef<Path>) -> Result<Vec<(String, u32)>> {
    read(path.as_ref(), TXT, |text| {
        let mut tokens = Tokens::default();
        for (line, token) in lines(text) {
            let added = if token.is_empty() {
                Err("found an empty line".to_owned())
            } else {
                tokens.push(token.to_owned())
            };
            added.map_err(|problem| (Some(line), problem))?;
        }
        Ok(tokens.entries)
    })
}

/// Reads fairseq's `dict.LANGUAGE.txt`, lines of `token count` behind which `#fairseq:overwrite` may stand. The ids
/// begin at 0 with the first line; fairseq puts its special tokens, which are not in the file, before them.
pub fn fairseq_dict(path: impl AsRef<Path>) -> Result<Vec<(String, u32)>> {
    read(path.as_ref(), DICT, |text| {
        let mut tokens = Tokens::default();
        for (line, entry) in lines(text) {
            let entry = entry.strip_suffix(" #fairseq:overwrite").unwrap_or(entry);
            let token = entry
                .rsplit_once(' ')
                .filter(|(token, count)| !token.is_empty() && count.parse::<i64>().is_ok());
            let added = match token {
                Some((token, _)) => tokens.push(token.to_owned()),
                None => Err(format!("found {entry:?}")),
            };
            added.map_err(|problem| (Some(line), problem))?;
        }
        Ok(tokens.entries)
    })
}

/// Reads a file as text and brings its tokens into the order of their ids.
fn read(
    path: &Path,
    expected: &'static str,
    entries: impl Fn(&str) -> std::result::Result<Vec<(String, u32)>, Problem>,
) -> Result<Vec<(String, u32)>> {
    let damaged = |(line, problem): Problem| TextError::VocabularyFile {
        path: path.to_owned(),
        line,
        problem,
        expected,
    };
    let mut bytes = Vec::new();
    let file = File::open(path);
    let length = file.and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
    let length = length.map_err(|source| TextError::Open {
        path: path.to_owned(),
        source,
    })?;
    if length as u64 > LARGEST {
        let problem = format!("it is larger than {} MiB", LARGEST >> 20);
        return Err(damaged((None, problem)));
    }
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let start = before.iter().rposition(|byte| *byte == b'\n');
        TextError::NotUtf8 {
            path: path.to_owned(),
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
            column: before.len() - start.map_or(0, |newline| newline + 1) + 1,
        }
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut entries = entries(text).map_err(damaged)?;
    entries.sort_by_key(|(_, id)| *id);
    let gap = (0..).zip(&entries).find(|(id, entry)| *id != entry.1);
    let problem = match gap {
        _ if entries.is_empty() => "it holds no token".to_owned(),
        Some((id, (token, next))) => {
            format!("no token has the id {id}; the next one is {token:?} with {next}")
        }
        None => return Ok(entries),
    };
    Err(damaged((None, problem)))
}

/// The lines and their numbers. Only if all lines end in `\r`, it is a part of the line ends.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let split = || (1..).zip(text.split('\n')).filter(|_| !text.is_empty());
    let from_windows = split().all(|(_, line)| line.ends_with('\r'));
    split().map(move |(number, line)| {
        let end = if from_windows {
            line.len() - 1
        } else {
            line.len()
        };
        (number, &line[..end])
    })
}

/// The tokens so far; each token and each id may come once.
#[derive(Default)]
struct Tokens {
    entries: Vec<(String, u32)>,
    seen: HashSet<String>,
    ids: HashSet<u32>,
}

impl Tokens {
    /// Adds a token with its id; the error is a phrase that says what is wrong.
    fn insert(&mut self, token: String, id: u32) -> std::result::Result<(), String> {
        if !self.ids.insert(id) {
            return Err(format!("the id {id} of {token:?} stands there twice"));
        }
        if !self.seen.insert(token.clone()) {
            return Err(format!("the token {token:?} stands there twice"));
        }
        self.entries.push((token, id));
        Ok(())
    }

    /// Adds a token with the next id.
    fn push(&mut self, token: String) -> std::result::Result<(), String> {
        let id = u32::try_from(self.entries.len()).map_err(|error| error.to_string())?;
        self.insert(token, id)
    }
}

fn from_json(text: &str) -> std::result::Result<Vec<(String, u32)>, Problem> {
    let mut json = serde_json::Deserializer::from_str(text);
    let tokens = json.deserialize_any(TokensVisitor);
    let tokens = tokens.and_then(|tokens| json.end().map(|()| tokens));
    tokens.map(|tokens| tokens.entries).map_err(|error| {
        let problem = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let problem = problem.strip_suffix(&place).unwrap_or(&problem);
        (
            Some(error.line()).filter(|line| *line > 0),
            problem.to_owned(),
        )
    })
}

/// Sees every key, where a map would keep one of several equal ones. What is wrong gets the line from the parser.
struct TokensVisitor;

impl<'de> Visitor<'de> for TokensVisitor {
    type Value = Tokens;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(JSON)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Tokens, A::Error> {
        let mut tokens = Tokens::default();
        while let Some(token) = map.next_key()? {
            let id = map.next_value()?;
            tokens.insert(token, id).map_err(de::Error::custom)?;
        }
        Ok(tokens)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Tokens, A::Error> {
        let mut tokens = Tokens::default();
        while let Some(token) = list.next_element()? {
            tokens.push(token).map_err(de::Error::custom)?;
        }
        Ok(tokens)
    }
}

//! Language detection and sentence splitting of `attentive` beside other libraries: `benchmarks/run languages`.
//!
//! ```text
//! languages quality FOLDER...              the share of texts whose language is found
//! languages speed FOLDER                   texts per second and memory, of the libraries that this was built with
//! languages sentences RULES FIXTURES FOLDER...    texts cut into sentences; RULES is an SRX file
//! ```
//!
//! A FOLDER holds `CODE.txt` for each language, a sentence on each line; `collect.py` makes one. `detectors` has the
//! libraries, `splitting` the sentences.

mod detectors;
mod splitting;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use detectors::LANGUAGES;

type Texts = BTreeMap<&'static str, Vec<String>>;

/// The languages of whichlang, which cannot be told to leave some out.
const SIXTEEN: &str = "ar de en es fr hi it ja ko nl pt ru sv tr vi zh";

/// Languages that do not put spaces between words: no texts of so many words can be cut out of them.
const TIGHT: [&str; 2] = ["ja", "zh"];

/// No more sentences of a language than this.
const MOST: usize = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["quality", ref folders @ ..] if !folders.is_empty() => {
            for folder in folders {
                quality(Path::new(folder))?;
            }
        }
        ["speed", folder] => speed(&read(Path::new(folder))?),
        ["sentences", rules, fixtures, ref folders @ ..] => splitting::compare(
            Path::new(rules),
            Path::new(fixtures),
            &folders.iter().map(Path::new).collect::<Vec<_>>(),
        )?,
        _ => return Err("usage: languages quality|speed|sentences ... (see src/main.rs)".into()),
    }
    Ok(())
}

/// The sentences of each language that is known here, spread evenly if there are too many.
fn read(folder: &Path) -> Result<Texts, Box<dyn Error>> {
    let mut texts = Texts::new();
    for (code, _) in LANGUAGES {
        let path = folder.join(format!("{code}.txt"));
        if !path.exists() {
            continue;
        }
        let lines: Vec<String> = fs::read_to_string(path)?
            .lines()
            .map(str::to_owned)
            .collect();
        let step = lines.len().div_ceil(MOST).max(1);
        texts.insert(code, lines.into_iter().step_by(step).collect());
    }
    if texts.is_empty() {
        return Err(format!("{} has no CODE.txt of a known language", folder.display()).into());
    }
    Ok(texts)
}

/// Prints a table for each set of languages: German and English alone, those of whichlang, all.
fn quality(folder: &Path) -> Result<(), Box<dyn Error>> {
    let texts = read(folder)?;
    let name = folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let all: Vec<&'static str> = texts.keys().copied().collect();
    let both = ["de", "en"];
    let sixteen: Vec<&'static str> = LANGUAGES
        .iter()
        .map(|(code, _)| *code)
        .filter(|code| SIXTEEN.split(' ').any(|other| other == *code))
        .collect();
    table(&name, "German and English", &texts, &both, &both);
    if all.len() > 2 {
        table(
            &name,
            "the languages of whichlang",
            &texts,
            &sixteen,
            &sixteen,
        );
        table(&name, "all languages", &texts, &all, &all);
    } else {
        table(
            &name,
            "German and English, with the languages of whichlang in play",
            &texts,
            &both,
            &sixteen,
        );
    }
    Ok(())
}

/// What each library says of texts in the languages `asked` when those `in_play` are possible.
fn table(
    folder: &str,
    title: &str,
    texts: &Texts,
    asked: &[&'static str],
    in_play: &[&'static str],
) {
    println!("\n{folder}: {title} ({} in play)\n", in_play.len());
    println!(
        "| | 1 word | 2 | 3 | 4 | 5 | sentences | knows |\n| --- | --- | --- | --- | --- | --- | --- | --- |"
    );
    for library in detectors::all() {
        let detect = library.detector(in_play);
        let mut cells = Vec::new();
        for words in [Some(1), Some(2), Some(3), Some(4), Some(5), None] {
            let mut shares = Vec::new();
            for code in asked {
                let Some(lines) = texts.get(code) else {
                    continue;
                };
                let pieces = pieces(lines, code, words);
                if !pieces.is_empty() {
                    let right = pieces.iter().filter(|piece| detect(piece) == Some(code));
                    shares.push(right.count() as f64 / pieces.len() as f64);
                }
            }
            cells.push(format!(
                "{:.1}",
                100.0 * shares.iter().sum::<f64>() / shares.len() as f64
            ));
        }
        let known = asked.iter().filter(|code| library.knows(code)).count();
        println!(
            "| {} | {} | {known} of {} |",
            library.name(),
            cells.join(" | "),
            asked.len()
        );
    }
}

/// So many words in sequence out of each sentence that has them, without punctuation at the ends; or whole sentences.
fn pieces(lines: &[String], code: &str, words: Option<usize>) -> Vec<String> {
    let Some(count) = words else {
        return lines.to_vec();
    };
    if TIGHT.contains(&code) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.len() < count {
            continue;
        }
        // Anywhere in the sentence, but at the same place in every run.
        let start = index.wrapping_mul(7919) % (words.len() - count + 1);
        let piece = words[start..start + count].join(" ");
        let piece = piece.trim_matches(|c: char| !c.is_alphanumeric());
        if piece.chars().any(char::is_alphabetic) {
            found.push(piece.to_owned());
        }
    }
    found
}

/// One thread; the second pass over all texts counts, because some libraries load their tables in the first.
fn speed(texts: &Texts) {
    let codes: Vec<&'static str> = texts.keys().copied().collect();
    let sentences: Vec<String> = texts.values().flatten().cloned().collect();
    let single = |(code, lines): (&&str, &Vec<String>)| pieces(lines, code, Some(1));
    let words: Vec<String> = texts.iter().flat_map(single).collect();
    for library in detectors::all() {
        let detect = library.detector(&codes);
        let began = Instant::now();
        std::hint::black_box(detect(&sentences[0]));
        let first = began.elapsed().as_secs_f64() * 1e3;
        let rate = |texts: &[String]| {
            let pass = || texts.iter().filter(|text| detect(text).is_some()).count();
            std::hint::black_box(pass());
            let began = Instant::now();
            std::hint::black_box(pass());
            texts.len() as f64 / began.elapsed().as_secs_f64()
        };
        let (sentence_rate, word_rate) = (rate(&sentences), rate(&words));
        println!(
            "{}: {sentence_rate:.0} sentences/s, {word_rate:.0} single words/s, first answer after {first:.1} ms, {} in memory at most",
            library.name(),
            peak()
        );
    }
}

/// The most memory that this process had, as Linux knows it.
fn peak() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or("?".to_owned(), |size| size.trim().to_owned())
}

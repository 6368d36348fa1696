//! Texts cut into sentences, by `attentive` and by the rules of an SRX file.
//!
//! Texts are those of the tests of `attentive-text` (hard ones, written along with its rules), and three sentences of
//! a corpus at a time, joined by spaces. A text counts if it is cut at all the right places and nowhere else.

use std::error::Error;
use std::path::Path;

/// Without both libraries there is nothing to compare.
#[cfg(not(all(feature = "attentive", feature = "srx")))]
pub fn compare(_: &Path, _: &Path, _: &[&Path]) -> Result<(), Box<dyn Error>> {
    Err("this was built without `attentive` or `srx`".into())
}

#[cfg(all(feature = "attentive", feature = "srx"))]
pub fn compare(rules: &Path, fixtures: &Path, folders: &[&Path]) -> Result<(), Box<dyn Error>> {
    comparison::compare(rules, fixtures, folders)
}

#[cfg(all(feature = "attentive", feature = "srx"))]
mod comparison {
    use std::error::Error;
    use std::fs;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use attentive_text::sentences::split;
    use srx::{Rules, SRX};

    /// How many sentences of a corpus make one text.
    const JOINED: usize = 3;

    /// No more texts of a corpus than this.
    const MOST: usize = 1000;

    struct Counts {
        texts: usize,
        right: [usize; 2],
        time: [Duration; 2],
        bytes: usize,
    }

    pub fn compare(rules: &Path, fixtures: &Path, folders: &[&Path]) -> Result<(), Box<dyn Error>> {
        let rules: SRX = fs::read_to_string(rules)?.parse()?;
        let refused: usize = rules.errors().values().map(Vec::len).sum();
        println!("the crate srx cannot read {refused} of the rules\n");
        println!(
            "| | texts | attentive | srx | attentive, MB/s | srx, MB/s |\n| --- | --- | --- | --- | --- | --- |"
        );
        let mut all = Vec::new();
        for file in files(fixtures)? {
            let texts = fs::read_to_string(&file)?;
            // `|` is where a sentence ends, `§` stands for something that is kept from the model.
            let texts: Vec<Vec<String>> = texts
                .lines()
                .filter(|line| !line.contains('§'))
                .map(|line| line.split('|').map(str::to_owned).collect())
                .collect();
            let code = code(&file);
            all.push(row(&format!("fixtures, {code}"), &texts, &code, &rules));
        }
        let sum = |part: fn(&Counts) -> usize| all.iter().map(part).sum::<usize>();
        println!(
            "| fixtures, all | {} | {} | {} | | |",
            sum(|c| c.texts),
            sum(|c| c.right[0]),
            sum(|c| c.right[1])
        );
        for folder in folders {
            for file in files(folder)? {
                let lines = fs::read_to_string(&file)?;
                let lines: Vec<&str> = lines
                    .lines()
                    .map(str::trim)
                    .filter(|line| !line.is_empty())
                    .collect();
                let texts: Vec<Vec<String>> =
                    lines.chunks_exact(JOINED).take(MOST).map(joined).collect();
                let name = folder.file_name().unwrap_or_default().to_string_lossy();
                row(
                    &format!("{name}, {}", code(&file)),
                    &texts,
                    &code(&file),
                    &rules,
                );
            }
        }
        Ok(())
    }

    /// Sentences that are one text when they are put together, with spaces between them.
    fn joined(lines: &[&str]) -> Vec<String> {
        let space = |(index, line): (usize, &&str)| {
            if index == 0 {
                (*line).to_owned()
            } else {
                format!(" {line}")
            }
        };
        lines.iter().enumerate().map(space).collect()
    }

    fn row(name: &str, texts: &[Vec<String>], code: &str, rules: &SRX) -> Counts {
        let rules: Rules = rules.language_rules(code);
        let mut counts = Counts {
            texts: texts.len(),
            right: [0; 2],
            time: [Duration::ZERO; 2],
            bytes: 0,
        };
        for sentences in texts {
            let text = sentences.concat();
            let expected: Vec<&str> = sentences.iter().map(|sentence| sentence.trim()).collect();
            counts.bytes += text.len();
            for (way, time) in counts.time.iter_mut().enumerate() {
                let began = Instant::now();
                let found: Vec<&str> = if way == 0 {
                    let found = split(&text, Some(code));
                    found.iter().map(|sentence| sentence.text).collect()
                } else {
                    let found = rules.split(&text).map(str::trim);
                    found.filter(|text| !text.is_empty()).collect()
                };
                *time += began.elapsed();
                counts.right[way] += usize::from(found == expected);
            }
        }
        let speed = |way: usize| counts.bytes as f64 / 1e6 / counts.time[way].as_secs_f64();
        println!(
            "| {name} | {} | {} | {} | {:.1} | {:.2} |",
            counts.texts,
            counts.right[0],
            counts.right[1],
            speed(0),
            speed(1)
        );
        counts
    }

    fn files(folder: &Path) -> Result<Vec<std::path::PathBuf>, Box<dyn Error>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "txt") {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }

    fn code(file: &Path) -> String {
        file.file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }
}

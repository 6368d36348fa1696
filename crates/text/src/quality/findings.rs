//! How bad is what was found? An [`Inspection`] becomes findings, the worst first.
//!
//! An error makes training wrong or stops it; a warning costs quality or time; a hint is good to know. Single pairs of
//! most kinds are in every corpus, so severity depends on their share (`thresholds`).

use std::path::Path;

use super::alignment::{Fault, Stretch, UNCERTAIN};
use super::inspect::{Example, FilePair, Inspection, Overlap};
use super::{Check, CheckSet};
use crate::language;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Training would be wrong, or would not begin.
    Error,
    /// Training would be worse or slower.
    Warning,
    /// Good to know.
    Hint,
}

impl Severity {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Hint => "hint",
        }
    }
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// A name for programs, such as `mojibake` or `line-counts`.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub title: String,
    /// How many pairs it concerns.
    pub pairs: usize,
    /// The first of them.
    pub examples: Vec<Example>,
    /// What to do about it.
    pub advice: String,
    /// The filter of `data clean` that removes it.
    pub filter: Option<Check>,
}

/// All findings, the worst first.
pub fn findings(inspection: &Inspection) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for file in inspection
        .files
        .iter()
        .filter(|file| file.src_lines != file.tgt_lines)
    {
        all.push(line_counts(file, inspection));
    }
    all.extend(languages(inspection));
    for (check, found) in &inspection.found {
        let more = |finding: Finding| Finding {
            pairs: found.pairs,
            examples: found.examples.clone(),
            ..finding
        };
        match check {
            Check::HeldOut => {}
            Check::Misaligned => all.extend(misaligned(inspection)),
            check => all.push(more(of_check(*check, found.pairs, inspection.pairs))),
        }
    }
    let met = inspection.found.get(&Check::HeldOut);
    for overlap in &inspection.overlaps {
        all.extend(test_set(overlap).map(|finding| Finding {
            examples: met.map(|met| met.examples.clone()).unwrap_or_default(),
            ..finding
        }));
    }
    sort(&mut all);
    all
}

/// The worst first, and of equals those that concern the most pairs.
pub fn sort(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| (finding.severity, usize::MAX - finding.pairs));
}

/// The filters that remove what is at least a warning.
pub fn filters(findings: &[Finding]) -> CheckSet {
    let serious = findings
        .iter()
        .filter(|finding| finding.severity <= Severity::Warning);
    serious.filter_map(|finding| finding.filter).collect()
}

/// From which share of the pairs on a check is a warning, and from which an error.
fn thresholds(check: Check) -> (f64, f64) {
    const NEVER: f64 = f64::INFINITY;
    match check {
        // Training stops at the first of these.
        Check::Encoding => (0.0, 0.0),
        Check::Mojibake | Check::Controls => (0.0001, 0.02),
        Check::Nfc => (0.001, NEVER),
        Check::Empty => (0.001, 0.2),
        Check::TooLong => (0.002, NEVER),
        Check::Ratio => (0.005, 0.1),
        Check::Equal => (0.005, 0.1),
        Check::Swapped => (0.001, 0.02),
        Check::Language => (0.005, 0.1),
        Check::Markup | Check::Placeholders => (0.002, NEVER),
        Check::Numbers => (0.02, NEVER),
        Check::Duplicates => (0.005, NEVER),
        Check::NearDuplicates => (0.05, NEVER),
        Check::ManyTranslations => (0.05, NEVER),
        Check::HeldOut | Check::Misaligned => (NEVER, NEVER),
    }
}

fn of_check(check: Check, pairs: usize, all: usize) -> Finding {
    let share = pairs as f64 / all.max(1) as f64;
    let (warning, error) = thresholds(check);
    let severity = if share >= error {
        Severity::Error
    } else if share >= warning {
        Severity::Warning
    } else {
        Severity::Hint
    };
    let (title, advice) = wording(check);
    Finding {
        severity,
        name: check.name(),
        title: title.to_owned(),
        pairs,
        examples: Vec::new(),
        advice: advice.to_owned(),
        filter: Some(check),
    }
}

/// What a check finds, and what follows from it.
fn wording(check: Check) -> (&'static str, &'static str) {
    match check {
        Check::Encoding => (
            "lines that are not UTF-8",
            "training refuses them; convert the file (`iconv -f WINDOWS-1252 -t UTF-8`), or drop the pairs",
        ),
        Check::Mojibake => (
            "UTF-8 that was read as another encoding, such as Ã¼ for ü",
            "a model learns to write it; cleaning repairs it",
        ),
        Check::Controls => (
            "control, invisible or replacement characters",
            "cleaning removes them, and drops lines in which a replacement character says that text was lost",
        ),
        Check::Nfc => (
            "letters and accents as separate characters (not NFC)",
            "the same word has two spellings, and so two entries in the vocabulary; cleaning joins them",
        ),
        Check::Empty => (
            "a side is empty",
            "training leaves such pairs out, and says so",
        ),
        Check::TooLong => (
            "a side is very long",
            "several sentences in one line, or none; `data.max_length` leaves them out of training too",
        ),
        Check::Ratio => (
            "a side is far longer than the other",
            "mostly wrong or incomplete translations",
        ),
        Check::Equal => (
            "both sides are the same",
            "nobody translated them; a model learns to copy",
        ),
        Check::Swapped => (
            "the sides are swapped",
            "each side is in the language of the other",
        ),
        Check::Language => (
            "a side is in another language",
            "a model learns to write that language",
        ),
        Check::Markup => (
            "tags or entities",
            "take the markup out, unless the model is to translate markup",
        ),
        Check::Placeholders => (
            "placeholders or addresses that the other side lacks",
            "a model learns to drop them",
        ),
        Check::Numbers => (
            "digits that the other side lacks",
            "mostly wrong translations, but 2 pm is 14 Uhr",
        ),
        Check::Duplicates => (
            "pairs that were there before",
            "they count twice, and one of them may be in a test set",
        ),
        Check::NearDuplicates => (
            "pairs that were there before but for case and punctuation",
            "they count twice",
        ),
        Check::ManyTranslations => (
            "sides with more than ten different other sides",
            "often headings or boilerplate; keep the first ten of each",
        ),
        Check::HeldOut => (
            "sentences of a test set",
            "name the test set in `data.held_out`",
        ),
        Check::Misaligned => (
            "misaligned stretches",
            "the sides are shifted against each other",
        ),
    }
}

fn line_counts(file: &FilePair, inspection: &Inspection) -> Finding {
    let index = inspection
        .files
        .iter()
        .position(|other| other == file)
        .unwrap_or_default();
    let (fewer, more) = if file.src_lines < file.tgt_lines {
        (&file.src, &file.tgt)
    } else {
        (&file.tgt, &file.src)
    };
    // A shift that lasts until the end began where a line is missing.
    let shifted = inspection.stretches.iter().rfind(|stretch| {
        stretch.file == index
            && stretch.end + UNCERTAIN >= file.pairs()
            && matches!(stretch.fault, Fault::Shifted(_))
    });
    let advice = match shifted {
        Some(stretch) => format!(
            "the sides no longer match from about line {} on: look there for a line that {} lacks or {} has too much, \
             or align the files again",
            stretch.first + 1,
            fewer.display(),
            more.display()
        ),
        None => format!(
            "the lines match to the end of {}: it may be cut off, or {} has more at its end",
            fewer.display(),
            more.display()
        ),
    };
    Finding {
        severity: Severity::Error,
        name: "line-counts",
        title: format!(
            "{} has {} lines, {} has {}",
            file.src.display(),
            file.src_lines,
            file.tgt.display(),
            file.tgt_lines
        ),
        pairs: file.src_lines.abs_diff(file.tgt_lines),
        examples: Vec::new(),
        advice,
        filter: None,
    }
}

fn misaligned(inspection: &Inspection) -> Vec<Finding> {
    let of = |shifted: bool| -> Vec<&Stretch> {
        let is = |stretch: &&Stretch| matches!(stretch.fault, Fault::Shifted(_)) == shifted;
        inspection.stretches.iter().filter(is).collect()
    };
    let lines = |stretches: &[&Stretch]| {
        stretches
            .iter()
            .map(|stretch| stretch.end - stretch.first)
            .sum::<usize>()
    };
    let examples = |stretches: &[&Stretch]| -> Vec<Example> {
        let example = |stretch: &&Stretch| {
            let note = match stretch.fault {
                Fault::Shifted(by) => format!(
                    "to line {}: the target of a source stands {} line(s) {}",
                    stretch.end,
                    by.abs(),
                    if by > 0 { "later" } else { "earlier" }
                ),
                Fault::Unrelated => format!("to line {}: no line nearby fits", stretch.end),
            };
            Example {
                file: stretch.file,
                line: stretch.first + 1,
                note,
                src: String::new(),
                tgt: String::new(),
            }
        };
        stretches.iter().take(5).map(example).collect()
    };
    let finding = |stretches: Vec<&Stretch>, severity, name, title: &str, advice: &str| Finding {
        severity,
        name,
        title: title.to_owned(),
        pairs: lines(&stretches),
        examples: examples(&stretches),
        advice: advice.to_owned(),
        filter: Some(Check::Misaligned),
    };
    let (shifted, unrelated) = (of(true), of(false));
    let mut found = Vec::new();
    if !shifted.is_empty() {
        found.push(finding(
            shifted,
            Severity::Error,
            "misaligned",
            "stretches in which the sides are shifted against each other",
            "a line is missing or too much before each; put it right, or drop the stretches",
        ));
    }
    if !unrelated.is_empty() {
        let share = lines(&unrelated) as f64 / inspection.pairs.max(1) as f64;
        let severity = if share >= 0.002 {
            Severity::Warning
        } else {
            Severity::Hint
        };
        found.push(finding(
            unrelated,
            severity,
            "unrelated",
            "stretches in which the sides do not seem to be translations of each other",
            "look at some of them; very free translations look like this too",
        ));
    }
    found
}

fn test_set(overlap: &Overlap) -> Option<Finding> {
    let share = overlap.whole as f64 / overlap.sentences.max(1) as f64;
    let severity = match share {
        share if share >= 0.05 => Severity::Error,
        share if share >= 0.005 => Severity::Warning,
        _ if overlap.whole + overlap.one_side > 0 => Severity::Hint,
        _ => return None,
    };
    Some(Finding {
        severity,
        name: "held-out",
        title: format!(
            "{} of {} sentences of {} stand in the training data, and of {} more one side",
            overlap.whole, overlap.sentences, overlap.name, overlap.one_side
        ),
        pairs: overlap.whole,
        examples: Vec::new(),
        advice: "a score on learned sentences says nothing; name the test set in `data.held_out`, or give it to \
                 `data clean --held-out`"
            .to_owned(),
        filter: Some(Check::HeldOut),
    })
}

/// Files that are named after another language than they are in, and sides in one language.
fn languages(inspection: &Inspection) -> Vec<Finding> {
    let calibration = &inspection.calibration;
    let mut found = Vec::new();
    let finding = |severity, name, title, advice: &str| Finding {
        severity,
        name,
        title,
        pairs: inspection.pairs,
        examples: Vec::new(),
        advice: advice.to_owned(),
        filter: None,
    };
    if let (Some(src), Some(tgt)) = (&calibration.src_language, &calibration.tgt_language)
        && src == tgt
    {
        let name = language::name(src).unwrap_or(src);
        found.push(finding(
            Severity::Warning,
            "one-language",
            format!("both sides seem to be in {name}"),
            "are these the right files? `--src-lang` and `--tgt-lang` say what is right",
        ));
    }
    for file in &inspection.files {
        for (path, seems) in [
            (&file.src, &calibration.src_language),
            (&file.tgt, &calibration.tgt_language),
        ] {
            if let (Some(named), Some(seems)) = (language_in_name(path), seems)
                && named != *seems
            {
                let names =
                    [&named, seems].map(|code| language::name(code).unwrap_or(code).to_owned());
                found.push(finding(
                    Severity::Error,
                    "file-language",
                    format!(
                        "{} is named after {} but seems to be in {}",
                        path.display(),
                        names[0],
                        names[1]
                    ),
                    "swap the files, or rename them",
                ));
            }
        }
    }
    found
}

/// The language that a file is named after: `de` of `train.de.gz`.
fn language_in_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let name = name.strip_suffix(".txt").unwrap_or(name);
    let (_, end) = name.rsplit_once('.')?;
    (end.len() == 2 && language::name(end).is_some()).then(|| language::canonical(end))
}

#[cfg(test)]
mod tests;

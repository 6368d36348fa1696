//! Scores as people and scripts read them: sacreBLEU's one line, its JSON and its tables.
//!
//! Scorer or significance test -> [`Score`]s and [`TestResult`]s -> text (here). [`single_system`] prints
//! the metrics of one system below each other, [`several_systems`] a table of systems and metrics.

mod json;
mod paired_note;
mod python_format;
mod table;

pub use table::Column;

use crate::scorer::Score;
use crate::signature::{PROGRAM, Signature, SignatureForm};
use crate::significance::{PairedTest, TestResult};
use json::Object;
use python_format::float_repr;
use table::{Style, render};

/// How a report looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportOptions {
    /// JSON, text or LaTeX.
    pub format: ReportFormat,
    /// Digits after the decimal point.
    pub width: usize,
    /// Long or short signatures; JSON always has long ones.
    pub signature: SignatureForm,
    /// Whether only the number is wanted.
    pub detail: Detail,
    /// Whether a terminal shows colors.
    pub colors: Colors,
}

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReportFormat {
    /// One JSON object per metric, or a list.
    #[default]
    Json,
    /// Lines and boxed tables for people.
    Text,
    /// A LaTeX table; for one system the same as text.
    Latex,
}

/// How much of a score is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// Name, signature, score, details.
    #[default]
    Full,
    /// The number only.
    ScoreOnly,
}

/// Whether text is colored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colors {
    /// Plain text.
    #[default]
    Off,
    /// ANSI colors.
    On,
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self {
            format: ReportFormat::default(),
            width: 1,
            signature: SignatureForm::default(),
            detail: Detail::default(),
            colors: Colors::default(),
        }
    }
}

/// The report of one system under one or more metrics.
pub fn single_system(scores: &[(Score, Signature)], options: &ReportOptions) -> String {
    let one = |(score, signature): &(Score, Signature)| score_entry(score, signature, options);
    let entries: Vec<String> = scores.iter().map(one).collect();
    if options.format == ReportFormat::Json {
        return match entries.as_slice() {
            [entry] => entry.clone(),
            entries => format!("[\n{}\n]", entries.join(",\n")),
        };
    }
    let entries: Vec<String> = entries
        .iter()
        .map(|line| options.colors.highlight(line))
        .collect();
    align_at_equals(&entries)
}

/// One score as a line: `BLEU|signature = 26.1 57.9/31.9/...`.
pub fn score_line(score: &Score, signature: &Signature, options: &ReportOptions) -> String {
    let number = number_with_confidence(score, options.width);
    if options.detail == Detail::ScoreOnly {
        return number;
    }
    let signature = signature.format(options.signature);
    let line = format!("{}|{signature} = {number}", score.name);
    match &score.verbose {
        Some(verbose) => format!("{line} {verbose}"),
        None => line,
    }
}

/// The table of several systems, with its signatures; `test` says how p-values in it were made.
///
/// `systems` are the systems' names; the first one is the baseline of a paired test.
pub fn several_systems(
    systems: &[String],
    columns: &[Column],
    test: Option<PairedTest>,
    options: &ReportOptions,
) -> String {
    let style = match options.format {
        ReportFormat::Json => return json::systems(systems, columns, options.width),
        ReportFormat::Text => Style::FancyGrid,
        ReportFormat::Latex => Style::LatexBooktabs,
    };
    let table = render(systems, columns, style, options);
    let mut lines = vec![table, String::new()];
    if let Some(test) = test {
        let baseline = systems.first().map_or("", String::as_str);
        lines.push(paired_note::explain(test, baseline, options.colors));
    }
    lines.push("-----------------\nMetric signatures\n-----------------".to_owned());
    for column in columns {
        let signature = column.signature.format(options.signature);
        lines.push(format!(" - {:<10} {signature}", column.name));
    }
    lines.join("\n")
}

impl Column {
    /// The column of plain scores of one metric.
    pub fn of_scores(name: &str, signature: Signature, scores: &[f64]) -> Self {
        Self {
            name: name.to_owned(),
            signature,
            cells: scores
                .iter()
                .map(|&score| table::Cell::Score(score))
                .collect(),
        }
    }

    /// The column of a paired test of one metric.
    pub fn of_results(name: &str, signature: Signature, results: &[TestResult]) -> Self {
        Self {
            name: name.to_owned(),
            signature,
            cells: results
                .iter()
                .map(|&result| table::Cell::Test(result))
                .collect(),
        }
    }
}

fn score_entry(score: &Score, signature: &Signature, options: &ReportOptions) -> String {
    if options.format != ReportFormat::Json || options.detail == Detail::ScoreOnly {
        return score_line(score, signature, options);
    }
    let rounded = |value: f64| format!("{value:.*}", options.width);
    let number = |value: f64| float_repr(rounded(value).parse().unwrap_or(value));
    let mut object = Object::default();
    object.text("name", &score.name);
    object.raw("score", &number(score.value));
    object.text("signature", &signature.format(SignatureForm::Long));
    if let Some(confidence) = score.confidence.filter(|confidence| confidence.mean > 0.0) {
        let (mean, half) = (confidence.mean, confidence.half_width);
        object.raw("confidence_mean", &number(mean));
        object.raw("confidence_var", &number(half));
        object.text(
            "confidence",
            &format!("μ = {} ± {}", rounded(mean), rounded(half)),
        );
    }
    if let Some(verbose) = &score.verbose {
        object.text("verbose_score", verbose);
    }
    for (key, value) in signature.entries(SignatureForm::Long) {
        object.text(key, &value);
    }
    object.text("program", PROGRAM);
    object.finish()
}

fn number_with_confidence(score: &Score, width: usize) -> String {
    let number = format!("{:.*}", width, score.value);
    match score.confidence {
        Some(confidence) if confidence.mean > 0.0 => {
            let (mean, half) = (confidence.mean, confidence.half_width);
            format!("{number} (μ = {mean:.width$} ± {half:.width$})")
        }
        _ => number,
    }
}

/// Lines of several metrics with their equals signs below each other.
fn align_at_equals(lines: &[String]) -> String {
    if let [line] = lines {
        return line.clone();
    }
    let before = |line: &String| {
        let equals = line.chars().position(|c| c == '=');
        equals.map(|position| position.saturating_sub(1))
    };
    let widest = lines.iter().filter_map(before).max().unwrap_or(0);
    let padded = |line: &String| match before(line) {
        Some(width) => format!("{}{line}", " ".repeat(widest - width)),
        None => line.clone(),
    };
    lines.iter().map(padded).collect::<Vec<_>>().join("\n")
}

impl Colors {
    /// The text in a color of the ANSI palette.
    fn paint(self, text: &str, code: u8) -> String {
        match self {
            Self::On => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            Self::Off => text.to_owned(),
        }
    }

    /// A line with its confidence interval in cyan.
    fn highlight(self, line: &str) -> String {
        let Some(start) = line.find("(μ = ") else {
            return line.to_owned();
        };
        let end = line[start..]
            .find(')')
            .map_or(line.len(), |end| start + end + 1);
        format!(
            "{}{}{}",
            &line[..start],
            self.paint(&line[start..end], table::CYAN),
            &line[end..]
        )
    }
}

//! A diagnosis for people, or for programs.

use std::io::Write;
use std::path::{Path, PathBuf};

use attentive_text::language;
use attentive_text::quality::findings::{Finding, Severity, filters};
use attentive_text::quality::inspect::{Example, Inspection};
use attentive_text::quality::{Check, findings};
use serde_json::{Value, json};

use super::{Corpus, Diagnosis};
use crate::output::Output;
use crate::terminal::{Colors, Look};
use crate::wording::{count, plural, quoted};

/// Characters of a side that are shown.
const SHOWN: usize = 70;

/// Prints for people.
pub fn text(diagnosis: &Diagnosis) -> anyhow::Result<()> {
    let mut output = Output::stdout();
    let colors = Colors::of_stdout();
    if let Some(inspection) = &diagnosis.inspection {
        writeln!(output, "corpus      {}", summary(inspection))?;
    }
    for (word, line) in &diagnosis.needs {
        writeln!(output, "{word:<11} {line}")?;
    }
    if diagnosis.findings.is_empty() {
        writeln!(
            output,
            "\n{}",
            colors.paint(Look::Green, "nothing was found")
        )?;
    }
    for finding in &diagnosis.findings {
        let look = match finding.severity {
            Severity::Error => Look::Red,
            Severity::Warning => Look::Yellow,
            Severity::Hint => Look::Dim,
        };
        writeln!(
            output,
            "\n{} {}",
            colors.paint(look, format_args!("{}:", finding.severity.name())),
            headline(finding, diagnosis)
        )?;
        for example in &finding.examples {
            for line in shown(example, diagnosis) {
                writeln!(output, "    {}", colors.paint(Look::Dim, line))?;
            }
        }
        let own = finding.filter.filter(|filter| !filter.is_usual());
        let own = own.map(|filter| format!("; the filter {filter} of `data clean` drops them"));
        writeln!(output, "  {}{}", finding.advice, own.unwrap_or_default())?;
    }
    if let Some(command) = &diagnosis.clean {
        writeln!(output, "\nWhat to do:\n  {command}")?;
    }
    output.finish()
}

fn summary(inspection: &Inspection) -> String {
    let name = |code: &Option<String>| {
        let name = code
            .as_deref()
            .map(|code| language::name(code).unwrap_or(code));
        name.unwrap_or("unknown language").to_owned()
    };
    let calibration = &inspection.calibration;
    format!(
        "{} in {}, {} to {}",
        plural(inspection.pairs, "pair", "pairs"),
        plural(inspection.files.len(), "file", "files"),
        name(&calibration.src_language),
        name(&calibration.tgt_language)
    )
}

/// What was found, and in how many pairs; what concerns no single pairs says its numbers itself.
fn headline(finding: &Finding, diagnosis: &Diagnosis) -> String {
    let all = diagnosis
        .inspection
        .as_ref()
        .map_or(0, |inspection| inspection.pairs);
    if finding.name.parse::<Check>().is_err() && finding.name != "unrelated"
        || finding.name == Check::HeldOut.name()
    {
        return finding.title.clone();
    }
    let share = 100.0 * finding.pairs as f64 / all.max(1) as f64;
    let pairs = plural(finding.pairs, "pair", "pairs");
    format!("{}: {} ({pairs}, {share:.2}%)", finding.name, finding.title)
}

fn shown(example: &Example, diagnosis: &Diagnosis) -> Vec<String> {
    let files = diagnosis
        .inspection
        .iter()
        .flat_map(|inspection| &inspection.files);
    let files: Vec<&Path> = files.map(|file| &*file.src).collect();
    let file = match files.get(example.file) {
        Some(path) if files.len() > 1 => format!("{}, ", path.display()),
        _ => String::new(),
    };
    let note = if example.note.is_empty() {
        String::new()
    } else {
        format!(", {}", example.note)
    };
    let mut lines = vec![format!("{file}line {}{note}", count(example.line))];
    if !example.src.is_empty() || !example.tgt.is_empty() {
        lines.push(format!("  {}", cut(&example.src)));
        lines.push(format!("  {}", cut(&example.tgt)));
    }
    lines
}

/// The beginning of a line, nothing invisible or dangerous in it.
fn cut(text: &str) -> String {
    let invisible = |c: char| {
        c.is_control()
            || matches!(c, '\u{200B}' | '\u{AD}' | '\u{FEFF}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
    };
    let mut shown = String::new();
    for c in text.chars().take(SHOWN) {
        if invisible(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// The command that removes what is at least a warning, if a filter does that is hardly ever wrong.
pub fn clean_command(corpus: &Corpus, findings: &[Finding]) -> Option<String> {
    let usual = filters(findings).iter().filter(|check| check.is_usual());
    let names: Vec<&str> = usual.map(Check::name).collect();
    if names.is_empty() {
        return None;
    }
    let list = |files: &[PathBuf]| {
        let files: Vec<String> = files
            .iter()
            .map(|file| quoted(&file.display().to_string()))
            .collect();
        files.join(" ")
    };
    let out = |files: &[PathBuf], side: &str| {
        let name = match files {
            [file] => file
                .file_name()
                .map(|name| name.to_string_lossy().into_owned()),
            _ => None,
        };
        quoted(&format!(
            "clean-{}",
            name.unwrap_or_else(|| format!("{side}.gz"))
        ))
    };
    let mut command = format!(
        "attentive data clean --src {} --tgt {} --out-src {} --out-tgt {} --filters {}",
        list(&corpus.src),
        list(&corpus.tgt),
        out(&corpus.src, "src"),
        out(&corpus.tgt, "tgt"),
        names.join(",")
    );
    if names.contains(&Check::HeldOut.name()) {
        command += &format!(" --held-out {}", list(&corpus.held_out));
    }
    Some(command)
}

/// Prints for programs.
pub fn json(diagnosis: &Diagnosis) -> anyhow::Result<()> {
    let mut output = Output::stdout();
    let inspection = diagnosis.inspection.as_ref();
    let files = inspection
        .into_iter()
        .flat_map(|inspection| &inspection.files);
    let files: Vec<Value> = files
        .map(|file| json!({"src": file.src, "tgt": file.tgt, "src_lines": file.src_lines, "tgt_lines": file.tgt_lines}))
        .collect();
    let record = json!({
        "pairs": inspection.map_or(0, |inspection| inspection.pairs),
        "files": files,
        "src_language": inspection.and_then(|inspection| inspection.calibration.src_language.as_deref()),
        "tgt_language": inspection.and_then(|inspection| inspection.calibration.tgt_language.as_deref()),
        "findings": diagnosis.findings.iter().map(finding_json).collect::<Vec<_>>(),
        "clean": diagnosis.clean,
        "needs": diagnosis.needs_json,
    });
    writeln!(output, "{record}")?;
    output.finish()
}

fn finding_json(finding: &findings::Finding) -> Value {
    let examples = finding.examples.iter().map(|example| {
        json!({"file": example.file, "line": example.line, "note": example.note, "src": example.src, "tgt": example.tgt})
    });
    json!({
        "severity": finding.severity.name(),
        "name": finding.name,
        "title": finding.title,
        "pairs": finding.pairs,
        "advice": finding.advice,
        "filter": finding.filter.map(Check::name),
        "examples": examples.collect::<Vec<_>>(),
    })
}

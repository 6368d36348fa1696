//! A translation as the user wants to see it: text, text and score, n-best lines, or JSON.
//!
//! Where alignments were asked for, they follow the text as ` ||| 0-0 1-2`, as other translation
//! software writes them: source word, target word, counted from 0.

use std::fmt::Write as _;
use std::io::{self, Write};

use attentive_runtime::translator::Translation;
use serde::Serialize;

/// How a translation is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The text.
    Plain,
    /// The score, a tab, the text.
    Scored,
    /// `LINE ||| text ||| score` for each alternative, the form of Moses but counted from 1.
    NBest,
    /// A JSON object.
    Json,
}

/// The JSON object.
#[derive(Serialize)]
struct Record<'a> {
    line: usize,
    source: &'a str,
    #[serde(flatten)]
    translation: &'a Translation,
}

impl Form {
    /// Writes the answer to a line, counted from 1.
    pub fn write(
        self,
        output: &mut impl Write,
        line: usize,
        source: &str,
        translation: &Translation,
    ) -> io::Result<()> {
        let Translation { text, score, .. } = translation;
        let links = links(translation.alignment.as_deref());
        match self {
            Form::Plain => writeln!(output, "{}{links}", one_line(text)),
            Form::Scored => writeln!(output, "{score:.4}\t{}{links}", one_line(text)),
            Form::NBest => {
                writeln!(
                    output,
                    "{line} ||| {} ||| {score:.4}{links}",
                    one_line(text)
                )?;
                for other in &translation.alternatives {
                    let (text, score) = (one_line(&other.text), other.score);
                    let links = self::links(other.alignment.as_deref());
                    writeln!(output, "{line} ||| {text} ||| {score:.4}{links}")?;
                }
                Ok(())
            }
            Form::Json => {
                let record = Record {
                    line,
                    source,
                    translation,
                };
                serde_json::to_writer(&mut *output, &record)?;
                writeln!(output)
            }
        }
    }
}

/// A subword model knows every byte, line breaks too; one of them would shift all lines after it.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// The alignment as it follows a text.
fn links(alignment: Option<&[(usize, usize)]>) -> String {
    let Some(alignment) = alignment else {
        return String::new();
    };
    let mut links = " |||".to_owned();
    for (src, tgt) in alignment {
        let _ = write!(links, " {src}-{tgt}"); // Writing to a string cannot fail.
    }
    links
}

#[cfg(test)]
mod tests {
    use attentive_runtime::search::Finish;
    use attentive_runtime::translator::Alternative;

    use super::*;

    fn written(form: Form, text: &str) -> String {
        written_with(form, text, None)
    }

    fn written_with(form: Form, text: &str, alignment: Option<Vec<(usize, usize)>>) -> String {
        let translation = Translation {
            text: text.to_owned(),
            score: -0.5,
            log_prob: -2.0,
            finished: Finish::EndOfSentence,
            alternatives: vec![Alternative {
                text: "other".to_owned(),
                score: -1.0,
                log_prob: -4.0,
                finished: Finish::LengthLimit,
                tokens: None,
                alignment: alignment.clone(),
                unit_alignment: None,
                pivot: None,
            }],
            tokens: None,
            alignment,
            unit_alignment: None,
            pivot: None,
            truncated: None,
            unknown: 1,
            missing_terms: Vec::new(),
            repetition_blocked: false,
            moved: 0,
        };
        let mut output = Vec::new();
        form.write(&mut output, 3, "source", &translation).unwrap();
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn a_line_break_in_a_translation_does_not_break_the_line() {
        assert_eq!(written(Form::Plain, "a\nb\r"), "a b \n");
        assert_eq!(written(Form::Json, "a\nb").lines().count(), 1);
    }

    #[test]
    fn every_form_is_as_the_help_says() {
        assert_eq!(written(Form::Scored, "text"), "-0.5000\ttext\n");
        assert_eq!(
            written(Form::NBest, "text"),
            "3 ||| text ||| -0.5000\n3 ||| other ||| -1.0000\n"
        );
        let json: serde_json::Value = serde_json::from_str(&written(Form::Json, "text")).unwrap();
        assert_eq!(
            (&json["line"], &json["text"], &json["source"]),
            (&3.into(), &"text".into(), &"source".into())
        );
        assert_eq!(json["alternatives"][0]["finished"], "length_limit");
        assert!(json.get("alignment").is_none());
    }

    #[test]
    fn alignments_follow_the_text() {
        let written = |form, links| written_with(form, "text", Some(links));
        assert_eq!(
            written(Form::Plain, vec![(0, 0), (1, 0)]),
            "text ||| 0-0 1-0\n"
        );
        assert_eq!(written(Form::Plain, vec![]), "text |||\n");
        let n_best = written(Form::NBest, vec![(2, 1)]);
        assert!(n_best.ends_with("3 ||| other ||| -1.0000 ||| 2-1\n"));
        let json: serde_json::Value =
            serde_json::from_str(&written(Form::Json, vec![(2, 1)])).unwrap();
        assert_eq!(json["alignment"], serde_json::json!([[2, 1]]));
    }
}

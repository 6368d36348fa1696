//! A translation as the user wants to see it: text, text and score, n-best lines, or JSON.

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
        match self {
            Form::Plain => writeln!(output, "{}", one_line(text)),
            Form::Scored => writeln!(output, "{score:.4}\t{}", one_line(text)),
            Form::NBest => {
                writeln!(output, "{line} ||| {} ||| {score:.4}", one_line(text))?;
                for other in &translation.alternatives {
                    let (text, score) = (one_line(&other.text), other.score);
                    writeln!(output, "{line} ||| {text} ||| {score:.4}")?;
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

#[cfg(test)]
mod tests {
    use attentive_runtime::search::Finish;
    use attentive_runtime::translator::Alternative;

    use super::*;

    fn written(form: Form, text: &str) -> String {
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
            }],
            truncated: None,
            unknown: 1,
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
    }
}

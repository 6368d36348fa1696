//! Running text: whole files, line breaks included, and the part of them to validate on.
//!
//! Neighbors: [`crate::recipe`] names the files, [`crate::task::language_model`] learns from them.

use attentive_text::{Tokenizer, lines::read_lines, special::EOS};

use crate::{
    Recipe, Result, data::corpus::refuse_missing_files, data::fingerprint::CorpusFingerprint,
};

/// The text of a recipe's files.
#[derive(Debug, Clone)]
pub struct RunningText {
    /// To learn from, a string for each file.
    pub train: Vec<String>,
    /// To validate on.
    pub val: Vec<String>,
    /// Tells the text from any other.
    pub fingerprint: CorpusFingerprint,
}

impl RunningText {
    /// Reads the files.
    pub fn read(recipe: &Recipe) -> Result<Self> {
        refuse_missing_files(recipe, |_| true)?;
        let data = &recipe.data;
        let mut fingerprint = CorpusFingerprint::default();
        let mut read = |files: &[String], role| -> Result<Vec<String>> {
            let paths = data.paths(files);
            let texts = files.iter().zip(&paths).map(|(file, path)| {
                let lines = read_lines(path)?;
                fingerprint.add(file, role, &lines);
                Ok(lines.into_iter().map(|line| line + "\n").collect())
            });
            texts.collect()
        };
        let mut train = read(&data.text, "training text")?;
        let mut val = read(&data.val_text, "validation text")?;
        for text in &mut train {
            let rest = split_off_end(text, data.val_share);
            val.extend((!rest.is_empty()).then_some(rest));
        }
        Ok(Self {
            train,
            val,
            fingerprint,
        })
    }
}

/// Takes this share of the characters off the end of a text.
fn split_off_end(text: &mut String, share: f64) -> String {
    let kept = (text.chars().count() as f64 * (1.0 - share)) as usize;
    let end = text
        .char_indices()
        .nth(kept)
        .map_or(text.len(), |(at, _)| at);
    text.split_off(end)
}

/// The tokens of all texts, one behind the other, with `</s>` after each.
pub fn token_stream(tokenizer: &Tokenizer, texts: &[String]) -> Vec<u32> {
    let tokens = texts.iter().map(|text| {
        let mut tokens = tokenizer.encode(text);
        tokens.push(EOS);
        tokens
    });
    tokens.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_text_is_kept_for_validation_by_characters() {
        let mut text = "äöüß56789é".to_owned();
        assert_eq!(split_off_end(&mut text, 0.2), "9é");
        assert_eq!(text, "äöüß5678");
        assert_eq!(split_off_end(&mut text, 0.0), "");
    }
}

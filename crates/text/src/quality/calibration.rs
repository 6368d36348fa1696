//! What is usual in a corpus, learned from its first pairs: its languages, and how much longer one side is.
//!
//! `doctor` and `clean` both begin with this, so that what one finds the other removes.

use std::path::Path;

use super::languages::{LanguageCheck, most_frequent};
use super::lengths::log_ratio;
use super::pairs::text;
use crate::error::Result;
use crate::lines::{LineReader, is_blank};

/// Which languages the user says the sides are in; where nothing is said they are recognized.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LanguageChoice {
    /// Code of the source's language.
    pub src: Option<String>,
    /// Code of the target's language.
    pub tgt: Option<String>,
}

/// What is usual in a corpus.
#[derive(Debug, Clone)]
pub struct Calibration {
    /// Code of the language of most source lines, if that can be said.
    pub src_language: Option<String>,
    /// Code of the language of most target lines.
    pub tgt_language: Option<String>,
    /// The median of [`log_ratio`].
    pub log_ratio: f64,
    /// Expects both languages, if they are known and differ.
    pub languages: Option<LanguageCheck>,
}

/// So many pairs of each file are read.
const PAIRS: usize = 2000;

impl Calibration {
    /// Reads the beginnings of the files.
    pub fn read(files: &[(&Path, &Path)], choice: &LanguageChoice) -> Result<Self> {
        let mut pairs = Vec::new();
        for (src, tgt) in files {
            let (mut src, mut tgt) = (LineReader::open(src)?, LineReader::open(tgt)?);
            for _ in 0..PAIRS {
                let (Some(src), Some(tgt)) = (src.next_bytes()?, tgt.next_bytes()?) else {
                    break;
                };
                if let (Some(src), Some(tgt)) = (text(src), text(tgt))
                    && !is_blank(src)
                    && !is_blank(tgt)
                {
                    pairs.push((src.to_owned(), tgt.to_owned()));
                }
            }
        }
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(src, tgt)| (&**src, &**tgt)).collect();
        Ok(Self::of(&pairs, choice))
    }

    /// Learns from these pairs.
    pub fn of(pairs: &[(&str, &str)], choice: &LanguageChoice) -> Self {
        let (src, tgt): (Vec<&str>, Vec<&str>) = pairs.iter().copied().unzip();
        let (src_language, tgt_language) = rayon::join(
            || choice.src.clone().or_else(|| most_frequent(&src)),
            || choice.tgt.clone().or_else(|| most_frequent(&tgt)),
        );
        let mut ratios: Vec<f64> = pairs.iter().map(|(src, tgt)| log_ratio(src, tgt)).collect();
        ratios.sort_by(f64::total_cmp);
        let languages = match (&src_language, &tgt_language) {
            (Some(src), Some(tgt)) => LanguageCheck::new(src, tgt, pairs),
            _ => None,
        };
        Self {
            src_language,
            tgt_language,
            log_ratio: ratios.get(ratios.len() / 2).copied().unwrap_or(0.0),
            languages,
        }
    }
}

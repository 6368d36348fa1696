//! Scores for translations, equal to sacreBLEU's to the last digit: BLEU, chrF and TER, and whether their
//! differences are significant. Strings only: files and models are the caller's.
//!
//! ```text
//! references --scorer--> a system's output --statistics--> one row per segment --sum, formula--> score --report--> text
//! ```
//!
//! - [`references`] holds what is scored against, [`input`] splits lines of files as sacreBLEU does.
//! - [`scorer`] is what the metrics have in common: text to [`statistics`], statistics to a score, and a
//!   [`signature`] that says how the score was made.
//! - [`bleu`] counts matching n-grams (`ngrams`) of the words that [`bleu_tokenizers`] find, as
//!   [`bleu_options`] say; `bleu_formula` makes the score. [`chrf`] and `chrf_formula` do so for
//!   characters. [`ter`] counts edits and shifts of words.
//! - [`significance`] has confidence intervals and paired tests, over the samples of `resampling`.
//! - [`classification`] has accuracy and F1 of classes.
//! - [`report`] prints scores as sacreBLEU prints them: one line, JSON or tables.
//! - `numpy` and `python_text` compute random numbers, sums and white space as Python does; `vocabulary`
//!   numbers words. [`error`] holds the error type.
//!
//! ```
//! use attentive_metrics::bleu::corpus_bleu;
//!
//! let output = vec!["The cat sat on a mat.".to_string()];
//! let reference = vec!["The cat sat on the mat.".to_string()];
//! assert_eq!(format!("{:.2}", corpus_bleu(&output, &reference).score), "48.89");
//! ```

pub mod bleu;
mod bleu_formula;
pub mod bleu_options;
pub mod bleu_tokenizers;
pub mod chrf;
mod chrf_formula;
pub mod classification;
pub mod error;
pub mod input;
mod ngrams;
mod numpy;
mod python_text;
pub mod references;
pub mod report;
mod resampling;
pub mod scorer;
pub mod signature;
pub mod significance;
pub mod statistics;
pub mod ter;
mod vocabulary;

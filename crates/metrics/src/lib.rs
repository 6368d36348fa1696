//! Scores for translations, equal to sacreBLEU's to the last digit: BLEU, chrF and TER.
//!
//! A scorer is made from options and [`References`](references::References), once; it turns a system's
//! output into [`Statistics`](statistics::Statistics), one row per segment, and their sum into a score.
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

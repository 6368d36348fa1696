//! From options on the command line to a search, for every command that translates.
//!
//! Defaults are those of the library ([`TranslatorOptions::default`]), stated nowhere else.
//! [`notices`] says what was cut or not known on the way.

pub mod notices;

use std::path::PathBuf;
use std::sync::Arc;

use attentive_model::Shortlist;
use attentive_runtime::cpu::Compute;
use attentive_runtime::search::{Method, Sampling, SearchOptions};
use attentive_runtime::translator::{Lines, Repetition, TranslatorOptions};
use clap::{Args, ValueEnum};

use crate::arguments::positive;
use crate::model::Choice;

/// How to search for translations.
#[derive(Debug, Args)]
#[command(next_help_heading = "Search")]
pub struct DecodingArgs {
    /// Beam size; 1 is greedy search [default: 4]
    #[arg(long, value_name = "N", value_parser = positive())]
    beam: Option<usize>,
    /// Length penalty: alpha in score = log-probability / length^alpha; 0 for none [default: 1]
    #[arg(long, value_name = "ALPHA")]
    length_penalty: Option<f64>,
    /// Longest output in tokens [default: 3 times the source, and 10]
    #[arg(long, value_name = "TOKENS", value_parser = positive())]
    max_length: Option<usize>,
    /// Longest source in tokens; longer sentences are translated in pieces, cut where clauses end [default: 512]
    #[arg(long, value_name = "TOKENS")]
    max_source_length: Option<usize>,
    /// Leave outputs that repeat themselves as they are, instead of searching again without repeated 3-grams
    #[arg(long)]
    allow_repetition: bool,
    /// Lines translated together by a thread, others joining as some end [default: 16 divided by the beam size;
    /// 32 with models of at least 30 million parameters]
    #[arg(long, value_name = "N", value_parser = positive())]
    batch_size: Option<usize>,
    /// Source tokens translated together, as if all lines were as long as the longest [default: 768; 1536 with
    /// models of at least 30 million parameters]
    #[arg(long, value_name = "TOKENS", value_parser = positive())]
    batch_tokens: Option<usize>,
    /// Choose words among those that this file of `attentive shortlist` allows: faster, nearly always the same
    #[arg(long, value_name = "FILE")]
    pub shortlist: Option<PathBuf>,
    /// Choose words among all, where a model has a shortlist of its own
    #[arg(long, conflicts_with = "shortlist")]
    no_shortlist: bool,
    /// Numbers to compute with on the CPU: auto takes int8 for a quantized model, f32 for others
    #[arg(long, value_enum, value_name = "KIND", default_value_t = ComputeKind::Auto)]
    pub compute: ComputeKind,
}

/// Numbers to compute with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ComputeKind {
    /// As the model's file is: int8 if it was quantized, f32 otherwise
    Auto,
    /// 32-bit floating point
    F32,
    /// 8-bit integers: smaller and faster, nearly the same translations
    Int8,
    /// f32 with the output layer in int8, and in f32 again for the tokens that may be the best: faster than f32,
    /// with its tokens in greedy search
    #[value(name = "f32-int8-output")]
    F32Int8Output,
}

impl From<ComputeKind> for Compute {
    fn from(kind: ComputeKind) -> Self {
        match kind {
            ComputeKind::Auto => Compute::Auto,
            ComputeKind::F32 => Compute::F32,
            ComputeKind::Int8 => Compute::Int8,
            ComputeKind::F32Int8Output => Compute::F32Int8Output,
        }
    }
}

/// What a line is.
#[derive(Debug, Args)]
pub struct LinesArgs {
    /// Translate each sentence of a line for itself, and keep web addresses, emoji and CAPITALS
    /// [default with a built-in or pulled model]
    #[arg(long = "sentences", conflicts_with = "whole_lines")]
    by_sentence: bool,
    /// Translate each line as it stands, as a single sentence [default with a model directory]
    #[arg(long)]
    whole_lines: bool,
}

impl LinesArgs {
    /// What a line is for this model.
    pub fn of(&self, model: &Choice) -> Lines {
        if self.by_sentence {
            Lines::RawText
        } else if self.whole_lines {
            Lines::Whole
        } else {
            model.lines()
        }
    }
}

/// How to sample translations instead.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub struct SamplingArgs {
    /// Sample each token by its probability instead of searching for the best
    #[arg(long, conflicts_with = "beam")]
    sample: bool,
    /// Sampling temperature: below 1 sharpens the distribution, above 1 flattens it
    #[arg(long, value_name = "T", requires = "sample", default_value_t = 1.0)]
    temperature: f64,
    /// Sample from the K most probable tokens only
    #[arg(long, value_name = "K", requires = "sample", value_parser = positive())]
    top_k: Option<usize>,
    /// Nucleus sampling: only from the most probable tokens that together reach probability P
    #[arg(long, value_name = "P", requires = "sample")]
    top_p: Option<f64>,
    /// Random seed: the same seed gives the same line the same output
    #[arg(long, value_name = "SEED", requires = "sample", default_value_t = 0)]
    seed: u64,
}

impl DecodingArgs {
    /// The options that are `usual` for a model, as far as none were given; `n_best` outputs for each line. The only
    /// file among them, a shortlist, is read.
    pub fn options(
        &self,
        usual: TranslatorOptions,
        n_best: usize,
    ) -> anyhow::Result<TranslatorOptions> {
        let mut options = usual;
        if self.no_shortlist {
            options.shortlist = None;
        }
        if let Some(path) = &self.shortlist {
            options.shortlist = Some(Arc::new(Shortlist::open(path)?));
        }
        let search = &mut options.search;
        search.ask_for(self.beam, n_best);
        if self.max_length.is_some() {
            search.max_length.cap = self.max_length;
        }
        if let Some(alpha) = self.length_penalty {
            search.length_penalty = alpha;
        }
        if let Some(tokens) = self.max_source_length {
            options.max_source_tokens = tokens;
        }
        options.batch_sentences = self.batch_size;
        if let Some(tokens) = self.batch_tokens {
            options.batch_tokens = tokens;
        }
        if self.allow_repetition {
            options.repetition = Repetition::Allow;
        }
        // As many as `--threads` says.
        options.threads = Some(rayon::current_num_threads());
        Ok(options)
    }
}

impl SamplingArgs {
    /// Puts sampling in the place of the search, if it was asked for.
    pub fn apply(&self, search: &mut SearchOptions) {
        if self.sample {
            search.method = Method::Sample(Sampling {
                temperature: self.temperature,
                top_k: self.top_k,
                top_p: self.top_p,
                seed: self.seed,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        decoding: DecodingArgs,
        #[command(flatten)]
        sampling: SamplingArgs,
    }

    fn options(arguments: &str, n_best: usize) -> TranslatorOptions {
        let line = Line::parse_from(format!("x {arguments}").split_whitespace());
        let mut options = line
            .decoding
            .options(TranslatorOptions::default(), n_best)
            .expect("no file");
        line.sampling.apply(&mut options.search);
        options
    }

    #[test]
    fn without_options_everything_is_as_in_the_library() {
        let threads = Some(rayon::current_num_threads());
        let library = TranslatorOptions {
            threads,
            ..Default::default()
        };
        assert_eq!(options("", 1), library);
    }

    #[test]
    fn what_is_usual_for_a_model_holds_unless_something_else_is_asked_for() {
        let mut usual = TranslatorOptions {
            search: SearchOptions::beam(6),
            ..TranslatorOptions::default()
        };
        (usual.search.length_penalty, usual.search.max_length.cap) = (0.6, Some(200));
        let options = |arguments: &str, usual: &TranslatorOptions| {
            let line = Line::parse_from(format!("x {arguments}").split_whitespace());
            line.decoding
                .options(usual.clone(), 1)
                .expect("no file")
                .search
        };
        assert_eq!(options("", &usual), usual.search);
        let asked = options("--beam 1 --length-penalty 1 --max-length 9", &usual);
        assert_eq!((asked.method, asked.length_penalty), (Method::Greedy, 1.0));
        assert_eq!(asked.max_length.cap, Some(9));
        usual.search.method = Method::Greedy;
        assert_eq!(options("", &usual).method, Method::Greedy);
    }

    #[test]
    fn the_help_states_the_defaults_of_the_library() {
        let TranslatorOptions {
            search,
            max_source_tokens,
            batch_sentences,
            batch_tokens,
            ..
        } = TranslatorOptions::default();
        assert_eq!(search, SearchOptions::beam(4));
        assert_eq!(
            (search.max_length.ratio, search.max_length.extra),
            (3.0, 10)
        );
        assert_eq!(search.length_penalty, 1.0);
        assert_eq!(
            (max_source_tokens, batch_sentences, batch_tokens),
            (512, None, 768)
        );
    }

    #[test]
    fn a_beam_is_wide_enough_for_the_outputs_unless_it_is_given() {
        assert_eq!(options("", 10).search.method, Method::Beam { size: 10 });
        assert_eq!(
            options("--beam 6", 10).search.method,
            Method::Beam { size: 6 }
        );
        assert_eq!(options("--beam 1", 1).search.method, Method::Greedy);
        let sampled = options("--sample --top-k 3 --seed 7", 1).search.method;
        let sampling = Sampling {
            top_k: Some(3),
            seed: 7,
            ..Sampling::default()
        };
        assert_eq!(sampled, Method::Sample(sampling));
    }
}

//! The arguments of `score`: sacreBLEU's names and defaults, turned into the options of the metrics.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use attentive_metrics::bleu_options::{BleuOptions, Case, NgramOrder, Smoothing};
use attentive_metrics::bleu_tokenizers::BleuTokenizer;
use attentive_metrics::chrf::{ChrfOptions, ChrfSmoothing, Whitespace};
use attentive_metrics::error::MetricError;
use attentive_metrics::report::{Colors, Detail, ReportFormat, ReportOptions};
use attentive_metrics::signature::SignatureForm;
use attentive_metrics::significance::PairedTest;
use attentive_metrics::ter::{AsianSupport, Normalization, Punctuation, TerOptions};
use attentive_text::SentencePiece;
use clap::{Args, ValueEnum};

use crate::arguments::positive;
use crate::exit::Ending;

/// Arguments of `score`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ScoreArgs {
    /// Reference translations, one sentence per line, plain or gzip'd; several files are several references
    #[arg(value_name = "REF", required = true)]
    pub refs: Vec<PathBuf>,
    /// Systems' outputs, one file each [default: standard input, systems separated by tabs]
    #[arg(long, short, value_name = "HYP", num_args = 1..)]
    pub input: Vec<PathBuf>,
    /// The reference file has this many references on each line, separated by tabs (-nr)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = positive())]
    pub num_refs: usize,
    /// Metrics to compute
    #[arg(long, short, num_args = 1.., default_value = "bleu")]
    pub metrics: Vec<MetricName>,
    /// One score for each sentence (-sl)
    #[arg(long)]
    pub sentence_level: bool,
    /// Source and target language, as en-zh; only decides the usual tokenizer
    #[arg(long, short, value_name = "PAIR")]
    pub language_pair: Option<String>,
    #[command(flatten)]
    bleu: BleuArgs,
    #[command(flatten)]
    chrf: ChrfArgs,
    #[command(flatten)]
    ter: TerArgs,
    #[command(flatten)]
    pub significance: SignificanceArgs,
    #[command(flatten)]
    report: ReportArgs,
}

const EXAMPLES: &str = "\
Examples:
  attentive score test.ref -i test.hyp
  attentive score test.ref -i test.hyp -m bleu chrf ter -f text
  attentive score test.ref -i baseline.hyp new.hyp --paired-bs -f text

BLEU over the pieces of a SentencePiece model (spBLEU), any unigram, BPE, word or char model:
  attentive score test.ref -i test.hyp --tokenize spm --spm-model flores200.model
Its signature has tok:spm; scores compare only between equal models, so a note names the file's hash.

Scores, signatures and formats are those of sacreBLEU 2.6.0, whose flags work too: -tok, -lc, -s, -sv, -b,
-w, -sh, -sl and so on. SACREBLEU_FORMAT and SACREBLEU_SEED are respected.";

/// A metric's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum MetricName {
    Bleu,
    Chrf,
    Ter,
}

/// A tokenizer's name; the model of `spm` is read later.
#[derive(Debug, Clone)]
enum TokenizerName {
    BuiltIn(BleuTokenizer),
    SentencePiece,
}

impl FromStr for TokenizerName {
    type Err = MetricError;

    fn from_str(name: &str) -> Result<Self, MetricError> {
        match name {
            BleuTokenizer::SENTENCE_PIECE => Ok(Self::SentencePiece),
            _ => Ok(Self::BuiltIn(name.parse()?)),
        }
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "BLEU")]
struct BleuArgs {
    /// Tokenizer: 13a, intl, zh, char, none, or spm with --spm-model (-tok) [default: 13a, or zh for
    /// Chinese]
    #[arg(long, value_name = "NAME")]
    tokenize: Option<TokenizerName>,
    /// The SentencePiece model of `--tokenize spm`
    #[arg(long, value_name = "FILE")]
    spm_model: Option<PathBuf>,
    /// Smoothing method
    #[arg(long, short, default_value = "exp", value_parser = ["exp", "floor", "add-k", "none"])]
    smooth_method: String,
    /// Smoothing value of floor (0.1 unless given) or add-k (1 unless given) (-sv)
    #[arg(long, value_name = "X")]
    smooth_value: Option<f64>,
    /// Ignore case (-lc)
    #[arg(long)]
    lowercase: bool,
    /// Do not warn that the text looks tokenized
    #[arg(long)]
    force: bool,
    /// Maximum n-gram order
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = positive())]
    max_ngram_order: usize,
    /// Effective order: leave out n-gram orders that a text is too short for
    #[arg(long)]
    effective_order: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "chrF")]
struct ChrfArgs {
    /// Maximum order of character n-grams (-cc)
    #[arg(long, value_name = "N", default_value_t = 6)]
    chrf_char_order: usize,
    /// Maximum order of word n-grams; 2 is chrF++ (-cw)
    #[arg(long, value_name = "N", default_value_t = 0)]
    chrf_word_order: usize,
    /// Beta: how much more recall weighs than precision
    #[arg(long, value_name = "N", default_value_t = 2)]
    chrf_beta: u32,
    /// Count white space as characters
    #[arg(long)]
    chrf_whitespace: bool,
    /// Ignore case
    #[arg(long)]
    chrf_lowercase: bool,
    /// Epsilon smoothing, as chrF++.py does
    #[arg(long)]
    chrf_eps_smoothing: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "TER")]
struct TerArgs {
    /// Distinguish upper and lower case
    #[arg(long)]
    ter_case_sensitive: bool,
    /// Tokenize Asian characters too
    #[arg(long)]
    ter_asian_support: bool,
    /// Ignore punctuation
    #[arg(long)]
    ter_no_punct: bool,
    /// Normalize: split punctuation off
    #[arg(long)]
    ter_normalized: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Significance")]
pub struct SignificanceArgs {
    /// Estimate a 95% confidence interval (-ci)
    #[arg(long)]
    pub confidence: bool,
    /// Bootstrap resamples for the interval (-cin)
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = positive())]
    pub confidence_n: usize,
    /// Compare with the first system by approximate randomization (-par)
    #[arg(long, conflicts_with = "paired_bs")]
    paired_ar: bool,
    /// Compare with the first system by bootstrap resampling (-pbs)
    #[arg(long)]
    paired_bs: bool,
    /// Trials of approximate randomization (-parn)
    #[arg(long, value_name = "N", default_value_t = 10000, value_parser = positive())]
    paired_ar_n: usize,
    /// Bootstrap resamples (-pbsn)
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = positive())]
    paired_bs_n: usize,
    /// Read and ignored: all cores work anyway, see --threads
    #[arg(long, short = 'j', value_name = "N", hide = true)]
    paired_jobs: Option<usize>,
    /// Random seed, `none` for another one each time [default: SACREBLEU_SEED, or 12345]
    #[arg(long, value_name = "N")]
    pub seed: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Report")]
struct ReportArgs {
    /// Output format
    #[arg(long, short, default_value = "json")]
    format: FormatName,
    /// Digits after the decimal point
    #[arg(long, short, value_name = "N", default_value_t = 1)]
    width: usize,
    /// Print only the score
    #[arg(long, short = 'b')]
    score_only: bool,
    /// Short signatures (-sh)
    #[arg(long)]
    short: bool,
    /// No colors (-nc)
    #[arg(long)]
    no_color: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormatName {
    Json,
    Text,
    Latex,
}

impl ScoreArgs {
    /// BLEU's options; single sentences leave out the orders they are too short for.
    pub fn bleu(&self, spm: Option<Arc<SentencePiece>>) -> anyhow::Result<BleuOptions> {
        Ok(BleuOptions {
            tokenizer: self.tokenizer(spm),
            smoothing: Smoothing::new(&self.bleu.smooth_method, self.bleu.smooth_value)?,
            case: case(self.bleu.lowercase),
            order: if self.sentence_level || self.bleu.effective_order {
                NgramOrder::Effective
            } else {
                NgramOrder::Full
            },
            max_order: self.bleu.max_ngram_order,
        })
    }

    /// The SentencePiece model that `--tokenize spm` asks for.
    pub fn sentence_piece(&self) -> anyhow::Result<Option<Arc<SentencePiece>>> {
        match (&self.bleu.tokenize, &self.bleu.spm_model) {
            (Some(TokenizerName::SentencePiece), Some(path)) => {
                Ok(Some(Arc::new(SentencePiece::load(path)?)))
            }
            (Some(TokenizerName::SentencePiece), None) => Err(Ending::Usage(
                "`--tokenize spm` needs a SentencePiece model; give its file with --spm-model FILE"
                    .to_owned(),
            )
            .into()),
            (_, Some(_)) => Err(Ending::Usage(
                "--spm-model is only used by `--tokenize spm`; add that or leave the model out"
                    .to_owned(),
            )
            .into()),
            (_, None) => Ok(None),
        }
    }

    /// The tokenizer asked for, or the usual one of the target language.
    fn tokenizer(&self, sentence_piece: Option<Arc<SentencePiece>>) -> BleuTokenizer {
        let mut languages = self.language_pair.iter().flat_map(|pair| pair.split('-'));
        match (&self.bleu.tokenize, sentence_piece) {
            (_, Some(model)) => BleuTokenizer::sentence_piece(move |line| model.pieces(line)),
            (Some(TokenizerName::BuiltIn(tokenizer)), None) => tokenizer.clone(),
            _ if languages.nth(1) == Some("zh") => BleuTokenizer::Chinese,
            _ => BleuTokenizer::default(),
        }
    }

    /// Whether text that looks tokenized is scored without a warning.
    pub fn force(&self) -> bool {
        self.bleu.force
    }

    /// chrF's options.
    pub fn chrf(&self) -> ChrfOptions {
        ChrfOptions {
            char_order: self.chrf.chrf_char_order,
            word_order: self.chrf.chrf_word_order,
            beta: self.chrf.chrf_beta,
            case: case(self.chrf.chrf_lowercase),
            whitespace: if self.chrf.chrf_whitespace {
                Whitespace::Kept
            } else {
                Whitespace::Removed
            },
            smoothing: if self.chrf.chrf_eps_smoothing {
                ChrfSmoothing::Epsilon
            } else {
                ChrfSmoothing::EffectiveOrder
            },
        }
    }

    /// TER's options.
    pub fn ter(&self) -> TerOptions {
        TerOptions {
            normalization: if self.ter.ter_normalized {
                Normalization::Tercom
            } else {
                Normalization::None
            },
            punctuation: if self.ter.ter_no_punct {
                Punctuation::Removed
            } else {
                Punctuation::Kept
            },
            asian: if self.ter.ter_asian_support {
                AsianSupport::On
            } else {
                AsianSupport::Off
            },
            case: case(!self.ter.ter_case_sensitive),
        }
    }

    /// How to print; `environment` is SACREBLEU_FORMAT, which goes before the flag.
    pub fn report(&self, environment: Option<&str>, colors: Colors) -> ReportOptions {
        let named = environment.and_then(|name| FormatName::from_str(name, true).ok());
        ReportOptions {
            format: match named.unwrap_or(self.report.format) {
                FormatName::Json => ReportFormat::Json,
                FormatName::Text => ReportFormat::Text,
                FormatName::Latex => ReportFormat::Latex,
            },
            width: self.report.width,
            signature: if self.report.short {
                SignatureForm::Short
            } else {
                SignatureForm::Long
            },
            detail: if self.report.score_only {
                Detail::ScoreOnly
            } else {
                Detail::Full
            },
            colors: if self.report.no_color {
                Colors::Off
            } else {
                colors
            },
        }
    }
}

impl SignificanceArgs {
    /// The paired test asked for, if any.
    pub fn paired_test(&self) -> Option<PairedTest> {
        if self.paired_bs {
            Some(PairedTest::Bootstrap {
                samples: self.paired_bs_n,
            })
        } else if self.paired_ar {
            Some(PairedTest::Randomization {
                trials: self.paired_ar_n,
                confidence: None,
            })
        } else {
            None
        }
    }
}

fn case(lower: bool) -> Case {
    if lower { Case::Lower } else { Case::Mixed }
}

//! `attentive evaluate`: how good a model is on a test set, by its own probabilities and by BLEU.

use std::io::Write;
use std::path::PathBuf;
use std::slice;

use attentive_text::ParallelCorpus;
use attentive_text::metrics::bleu::{Bleu, BleuScorer, looks_tokenized};
use attentive_text::metrics::bleu_options::BleuOptions;
use attentive_text::metrics::references::References;
use attentive_text::metrics::scorer::Scorer;
use attentive_train::evaluation::{self, Evaluation};
use clap::Args;
use serde_json::json;

use crate::arguments::DeviceArg;
use crate::decoding::DecodingArgs;
use crate::decoding::notices::Notices;
use crate::model::{LoadedModel, cpu_translator};
use crate::output::Output;
use crate::terminal::Terminal;
use crate::wording::{count, plural};

/// Arguments of `evaluate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct EvaluateArgs {
    /// A model directory, or a training run (its best model)
    #[arg(long, short, value_name = "DIR")]
    model: PathBuf,
    /// The source side of the test set, plain or gzip'd
    #[arg(long, value_name = "FILE")]
    src: PathBuf,
    /// The reference translations
    #[arg(long = "ref", value_name = "FILE")]
    reference: PathBuf,
    /// Keep the model's translations in a file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceArg,
    #[command(flatten)]
    decoding: DecodingArgs,
}

const EXAMPLES: &str = "\
Example:
  attentive evaluate --model runs/multi30k-small --src test.de --ref test.en -o test.hyp

Loss is the label-smoothed (0.1) objective per target token, perplexity is exp of the cross-entropy.
BLEU is sacreBLEU's, with its signature.";

/// Measures.
pub fn run(args: EvaluateArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let test = ParallelCorpus::read(slice::from_ref(&args.src), slice::from_ref(&args.reference))?;
    let model = LoadedModel::open(&args.model, &args.device.device)?;
    let options = args.decoding.options(1);
    // Begun before the work, so that a place that cannot be written to is known before it.
    let mut hypotheses_file = match &args.output {
        Some(path) => Some(Output::open(Some(path))?),
        None => None,
    };

    terminal.note(format_args!(
        "measuring the loss of {} lines",
        count(test.len())
    ));
    let probabilities = evaluation::evaluate(
        &model.network,
        &model.config,
        &model.tokenizers,
        &test.src,
        &test.tgt,
        options.max_source_tokens,
    )?;
    if probabilities.left_out > 0 {
        let pairs = plural(probabilities.left_out, "pair is", "pairs are");
        terminal.warn(format_args!(
            "{pairs} not in the loss: a side is empty or too long (--max-source-length)"
        ));
    }

    terminal.note("translating");
    let translations = match args.device.device.as_str() {
        "cpu" => cpu_translator(&args.model, args.decoding.compute, options)?.translate(&test.src),
        _ => model.translator(options)?.translate(&test.src),
    };
    let mut notices = Notices::default();
    let mut hypotheses = Vec::with_capacity(test.len());
    for (line, translation) in (1..).zip(translations) {
        if let Some(warning) = notices.add(line, &translation) {
            terminal.warn(warning);
        }
        hypotheses.push(translation.text.replace(['\n', '\r'], " "));
    }
    notices.tell(terminal);
    if let Some(mut file) = hypotheses_file.take() {
        for line in &hypotheses {
            writeln!(file, "{line}")?;
        }
        file.finish()?;
    }

    let references = evaluation::references(&test.tgt);
    let scorer = BleuScorer::new(BleuOptions::default(), &References::single(&references)?)?;
    let bleu = scorer.corpus(&hypotheses)?;
    if looks_tokenized(&hypotheses) {
        terminal.warn("the output looks tokenized (\" .\"): BLEU wants plain text");
    }
    report(
        &args,
        hypotheses.len(),
        &probabilities,
        &bleu,
        &scorer.signature().to_string(),
    )
}

fn report(
    args: &EvaluateArgs,
    lines: usize,
    probabilities: &Evaluation,
    bleu: &Bleu,
    signature: &str,
) -> anyhow::Result<()> {
    let Evaluation {
        loss,
        perplexity,
        tokens,
        left_out,
    } = *probabilities;
    let mut output = Output::stdout();
    if args.json {
        let record = json!({
            "lines": lines,
            "loss": loss,
            "perplexity": perplexity,
            "tokens": tokens,
            "left_out": left_out,
            "bleu": {
                "score": bleu.score,
                "precisions": bleu.precisions,
                "brevity_penalty": bleu.bp,
                "hypothesis_length": bleu.sys_len,
                "reference_length": bleu.ref_len,
                "signature": signature,
            },
        });
        writeln!(output, "{record}")?;
    } else {
        writeln!(
            output,
            "lines       {} ({} target tokens)",
            count(lines),
            count(tokens)
        )?;
        writeln!(output, "loss        {loss:.4}")?;
        writeln!(output, "perplexity  {perplexity:.3}")?;
        writeln!(output, "BLEU        {:.2}  {}", bleu.score, bleu.verbose())?;
        writeln!(output, "signature   {signature}")?;
    }
    output.finish()
}

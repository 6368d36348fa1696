//! `attentive evaluate`: how good a model is on a test set, by its own probabilities and by BLEU.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::slice;

use attentive_hub::StoredModel;
use attentive_metrics::bleu::{Bleu, BleuScorer, looks_tokenized};
use attentive_metrics::bleu_options::BleuOptions;
use attentive_metrics::references::References;
use attentive_metrics::scorer::Scorer;
use attentive_model::Family;
use attentive_model::directory::AnyModelDir;
use attentive_nn::models::EncoderDecoder;
use attentive_nn::models::recurrent::Recurrent;
use attentive_runtime::translator::{Translation, TranslatorOptions};
use attentive_text::ParallelCorpus;
use attentive_text::lines::read_lines;
use attentive_train::data::text::token_stream;
use attentive_train::distributed::SingleProcess;
use attentive_train::evaluation::{self, Evaluation};
use attentive_train::task::language_model::cross_entropy_per_token;
use clap::Args;
use serde_json::json;

use super::bert_input::LoadedBert;
use super::evaluate_bert::{self, ColumnArgs};
use super::images::LoadedVit;
use crate::arguments::DeviceArg;
use crate::decoding::notices::Notices;
use crate::decoding::{DecodingArgs, LinesArgs};
use crate::exit::Ending;
use crate::model::{self, Choice};
use crate::network::{self, LoadedGpt, LoadedModel};
use crate::output::Output;
use crate::terminal::Terminal;
use crate::wording::{count, plural};

/// Arguments of `evaluate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct EvaluateArgs {
    /// A model directory, a training run (its best model), or a built-in model (de-en, en-de)
    #[arg(long, short, value_name = "MODEL")]
    model: PathBuf,
    /// The source side of the test set, plain or gzip'd
    #[arg(long, value_name = "FILE", required_unless_present_any = ["text", "examples", "images"])]
    src: Option<PathBuf>,
    /// The reference translations
    #[arg(long = "ref", value_name = "FILE", required_unless_present_any = ["text", "examples", "images"])]
    reference: Option<PathBuf>,
    /// Running text to measure a language model (GPT, or a pre-trained BERT) on
    #[arg(long, value_name = "FILE", conflicts_with_all = ["src", "reference", "output"])]
    text: Option<PathBuf>,
    /// Labelled texts to measure a classifier (BERT) on: tab-separated, the first line names the columns
    #[arg(long, value_name = "FILE", conflicts_with_all = ["src", "reference", "output", "text"])]
    examples: Option<PathBuf>,
    #[command(flatten)]
    columns: ColumnArgs,
    /// Images to measure a ViT on: an IDX file, or a folder with a folder of PNG files for each class
    #[arg(long, value_name = "PATH", conflicts_with_all = ["src", "reference", "output", "text"])]
    images: Option<PathBuf>,
    /// The IDX file of the classes of the images
    #[arg(long, value_name = "FILE", requires = "images")]
    labels: Option<PathBuf>,
    /// Token merging: so many tokens of an image become one with another in each layer; several numbers are those of the
    /// layers (ViT)
    #[arg(long, value_name = "R", value_delimiter = ',', requires = "images")]
    merge: Vec<usize>,
    /// Keep the model's translations in a file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    lines: LinesArgs,
    #[command(flatten)]
    device: DeviceArg,
    #[command(flatten)]
    decoding: DecodingArgs,
}

const EXAMPLES: &str = "\
Examples:
  attentive evaluate --model runs/multi30k --src test.de --ref test.en -o test.hyp
  attentive evaluate --model de-en --src test.de --ref test.en --whole-lines
  attentive evaluate --model runs/gpt-shakespeare --text test.txt
  attentive evaluate --model runs/bert-sst2 --examples dev.tsv
  attentive evaluate --model runs/vit-mnist --images t10k-images-idx3-ubyte.gz --labels t10k-labels-idx1-ubyte.gz

Loss is the training objective per target token, with the label smoothing of the model's recipe (0.1
without one); perplexity is exp of the cross-entropy;
both need f32 weights, which built-in and quantized models do not have. Of a language model they are
those of --text, each token seen after at most a context of others. BLEU is sacreBLEU's, with its signature.
Of a classifier, F1 is that of the second class, or with more than two the mean over the classes.";

/// Measures.
pub fn run(args: EvaluateArgs, terminal: &Terminal) -> anyhow::Result<()> {
    if let Some(file) = &args.examples {
        let model = LoadedBert::open(&args.model, &args.device.device, terminal)?;
        return evaluate_bert::classes(&model, file, &args.columns, args.json, terminal);
    }
    if let Some(text) = &args.text {
        if model::of_any(&args.model, terminal)?
            .open_any()?
            .config
            .family()
            == Family::Bert
        {
            let model = LoadedBert::open(&args.model, &args.device.device, terminal)?;
            return evaluate_bert::masked(&model, text, args.json);
        }
        return language_model(&args, text);
    }
    if let Some(images) = &args.images {
        let device = &args.device.device;
        let model = LoadedVit::open(&args.model, device, &args.merge, terminal)?;
        return model.evaluate(images, args.labels.as_ref(), args.json);
    }
    let choice = Choice::of(&args.model)?;
    let problem = match choice.open_any()?.config.family() {
        Family::Gpt => "a language model is measured on running text: give it with --text FILE",
        Family::Bert => {
            "a BERT is measured on labelled texts, --examples FILE, or on running text, --text FILE"
        }
        Family::Vit => "a ViT is measured on images: give them with --images FILE --labels FILE",
        _ => "",
    };
    if !problem.is_empty() {
        return Err(Ending::Usage(problem.to_owned()).into());
    }
    let (Some(src), Some(reference)) = (&args.src, &args.reference) else {
        return Err(Ending::Usage("--src and --ref belong together".to_owned()).into());
    };
    let test = ParallelCorpus::read(slice::from_ref(src), slice::from_ref(reference))?;
    // Begun before the work, so that a place that cannot be written to is known before it.
    let mut hypotheses_file = match &args.output {
        Some(path) => Some(Output::open(Some(path))?),
        None => None,
    };
    let (probabilities, translations) = match network::recurrent(&choice) {
        Some(folder) => args.recurrent(folder, &choice, &test, terminal)?,
        None => args.transformer(&choice, &test, terminal)?,
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
        probabilities.as_ref(),
        &bleu,
        &scorer.signature().to_string(),
    )
}

/// What a model's own probabilities say, if it has any, and its translations.
type Answers = (Option<Evaluation>, Vec<Translation>);

impl EvaluateArgs {
    fn transformer(
        &self,
        choice: &Choice,
        test: &ParallelCorpus,
        terminal: &Terminal,
    ) -> anyhow::Result<Answers> {
        let usual = TranslatorOptions::of(&choice.open()?)?;
        let options = self.options(usual, choice)?;
        let network = self.network(choice, terminal)?;
        let found = match &network {
            Some(model) => {
                let smoothing = evaluation::label_smoothing(&choice.open()?.path)?;
                let longest = options.max_source_tokens;
                Some(probabilities(model, test, longest, smoothing, terminal)?)
            }
            None => None,
        };
        terminal.note("translating");
        let translations = match &network {
            Some(model) if self.device.device != "cpu" => {
                model.translator(options)?.translate(&test.src)
            }
            _ => model::translator(choice.open()?, self.decoding.compute, options)?
                .translate(&test.src),
        };
        Ok((found, translations))
    }

    fn recurrent(
        &self,
        folder: &Path,
        choice: &Choice,
        test: &ParallelCorpus,
        terminal: &Terminal,
    ) -> anyhow::Result<Answers> {
        let options = self.options(TranslatorOptions::default(), choice)?;
        let model = LoadedModel::<Recurrent>::open(folder, &self.device.device)?;
        let smoothing = evaluation::label_smoothing(&AnyModelDir::open(folder)?.path)?;
        let longest = options.max_source_tokens;
        let found = probabilities(&model, test, longest, smoothing, terminal)?;
        terminal.note("translating");
        let translations = model.translator(options)?.translate(&test.src);
        Ok((Some(found), translations))
    }

    fn options(
        &self,
        usual: TranslatorOptions,
        choice: &Choice,
    ) -> anyhow::Result<TranslatorOptions> {
        let mut options = self.decoding.options(usual, 1)?;
        options.lines = self.lines.of(choice);
        Ok(options)
    }

    /// The network that knows probabilities; nothing if the weights are int8, with which only the CPU's own
    /// model computes.
    fn network(&self, choice: &Choice, terminal: &Terminal) -> anyhow::Result<Option<LoadedModel>> {
        let int8 = choice.open()?.weights()?.is_int8();
        match choice {
            Choice::Directory(folder) | Choice::Pulled(StoredModel { folder, .. }) if !int8 => {
                LoadedModel::open(folder, &self.device.device).map(Some)
            }
            _ if self.device.device != "cpu" => {
                let problem = "int8 models are for the CPU: leave out --device".to_owned();
                Err(Ending::Usage(problem).into())
            }
            _ => {
                terminal.note("the weights are int8: no loss, no perplexity");
                Ok(None)
            }
        }
    }
}

/// Loss and perplexity of a language model on running text.
fn language_model(args: &EvaluateArgs, text: &Path) -> anyhow::Result<()> {
    let model = LoadedGpt::open(&args.model, &args.device.device)?;
    let lines = read_lines(text)?.into_iter();
    let text: Vec<String> = vec![lines.map(|line| line + "\n").collect()];
    let tokens = token_stream(&model.tokenizer, &text);
    if tokens.len() < 2 {
        return Err(anyhow::anyhow!(
            "the text is empty: there is nothing to measure"
        ));
    }
    let loss = cross_entropy_per_token(&model.network, &tokens, &SingleProcess);
    let (predicted, characters) = (tokens.len() - 1, text[0].chars().count());
    let bits = loss * predicted as f64 / characters as f64 / std::f64::consts::LN_2;
    let mut output = Output::stdout();
    if args.json {
        let record = json!({
            "tokens": predicted,
            "characters": characters,
            "loss": loss,
            "perplexity": loss.exp(),
            "bits_per_character": bits,
        });
        writeln!(output, "{record}")?;
    } else {
        let (tokens, characters) = (count(predicted), count(characters));
        writeln!(output, "tokens      {tokens} ({characters} characters)")?;
        writeln!(output, "loss        {loss:.4}")?;
        writeln!(output, "perplexity  {:.3}", loss.exp())?;
        writeln!(output, "bits        {bits:.3} a character")?;
    }
    output.finish()
}

fn probabilities<N: EncoderDecoder>(
    model: &LoadedModel<N>,
    test: &ParallelCorpus,
    longest: usize,
    smoothing: f64,
    terminal: &Terminal,
) -> anyhow::Result<Evaluation> {
    let lines = count(test.len());
    terminal.note(format_args!("measuring the loss of {lines} lines"));
    let LoadedModel {
        config,
        tokenizers,
        network,
        ..
    } = model;
    let (src, tgt) = (&test.src, &test.tgt);
    let found = evaluation::evaluate(network, config, tokenizers, src, tgt, longest, smoothing)?;
    if found.left_out > 0 {
        let pairs = plural(found.left_out, "pair is", "pairs are");
        terminal.warn(format_args!(
            "{pairs} not in the loss: a side is empty or too long (--max-source-length)"
        ));
    }
    Ok(found)
}

fn report(
    args: &EvaluateArgs,
    lines: usize,
    probabilities: Option<&Evaluation>,
    bleu: &Bleu,
    signature: &str,
) -> anyhow::Result<()> {
    let mut output = Output::stdout();
    if args.json {
        let record = json!({
            "lines": lines,
            "loss": probabilities.map(|found| found.loss),
            "perplexity": probabilities.map(|found| found.perplexity),
            "tokens": probabilities.map(|found| found.tokens),
            "left_out": probabilities.map(|found| found.left_out),
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
        match probabilities {
            None => writeln!(output, "lines       {}", count(lines))?,
            Some(found) => {
                let (lines, tokens) = (count(lines), count(found.tokens));
                writeln!(output, "lines       {lines} ({tokens} target tokens)")?;
                writeln!(output, "loss        {:.4}", found.loss)?;
                writeln!(output, "perplexity  {:.3}", found.perplexity)?;
            }
        }
        writeln!(output, "BLEU        {:.2}  {}", bleu.score, bleu.verbose())?;
        writeln!(output, "signature   {signature}")?;
    }
    output.finish()
}

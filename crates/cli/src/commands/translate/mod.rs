//! `attentive translate`: lines in, exactly as many answers out, in the same order.
//!
//! [`documents`] takes files that are more than lines. [`input`] gives the lines, [`crate::direction`] finds a model if none was named, the library's translator
//! answers window by window, [`answers`] writes, and [`progress`] shows how far it is.

mod answers;
mod documents;
mod input;
mod progress;
mod shard;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(feature = "training")]
use attentive_hub::StoredModel;
use attentive_hub::route::Route;
use attentive_model::Shortlist;
#[cfg(feature = "training")]
use attentive_nn::models::{recurrent::Recurrent, transformer::Transformer};
use attentive_runtime::translator::{Chain, Lines, Translation, TranslatorOptions};
use attentive_text::Glossary;
use attentive_text::lines::is_blank;
use attentive_text::wrapped::{Layout, Wrapping};
use clap::Args;

use crate::arguments::{DeviceArg, positive};
use crate::decoding::notices::Notices;
use crate::decoding::{ComputeKind, DecodingArgs, LinesArgs, SamplingArgs};
use crate::direction::DirectionArgs;
use crate::exit::Ending;
use crate::model::{self, Choice, named_usage, only_for_the_cpu};
#[cfg(feature = "training")]
use crate::network::{self, LoadedModel};
use crate::output::Output;
use crate::terminal::Terminal;
use crate::wording::plural;
use answers::Form;
use documents::DocumentArgs;
use input::{Input, InputArgs, Pace, Unit, Wrapped};
use progress::Progress;

/// Arguments of `translate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TranslateArgs {
    /// A model directory, a training run (its best model), a built-in model (de-en, en-de), one that was pulled, or
    /// a model of another program, which is imported into the cache the first time [default: the built-in model for the language of the text]
    #[arg(long, short, value_name = "MODEL")]
    model: Option<PathBuf>,
    #[command(flatten)]
    direction: DirectionArgs,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    lines: LinesArgs,
    #[command(flatten)]
    documents: DocumentArgs,
    /// Where to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The N best translations of each line, as LINE ||| text ||| score
    #[arg(long, visible_alias = "n-best", value_name = "N", value_parser = positive())]
    alternatives: Option<usize>,
    /// The score before each translation, and a tab between them
    #[arg(long)]
    scores: bool,
    /// Word alignments after each translation, as ||| 0-0 1-2 (source-target, from 0)
    #[arg(long)]
    alignments: bool,
    /// One JSON object for each line
    #[arg(long)]
    json: bool,
    /// Terms that must be translated in a certain way: a file with a source term, a tab and a target term in each line, and
    /// after another tab options (case, exact); or with commas, if its name ends in .csv
    #[arg(long, value_name = "FILE", conflicts_with = "sample")]
    glossary: Option<PathBuf>,
    /// What was read from that file.
    #[arg(skip)]
    terms: Option<Arc<Glossary>>,
    /// A smaller model with the same tokenizers that proposes tokens, which the model verifies: the same
    /// translations sooner, where lines are translated one at a time; needs --beam 1
    #[arg(long, value_name = "MODEL", conflicts_with = "sample")]
    draft: Option<PathBuf>,
    /// A file of `attentive shortlist` that says what the draft may propose: it then proposes sooner
    #[arg(long, value_name = "FILE", requires = "draft")]
    draft_shortlist: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArg,
    #[command(flatten)]
    decoding: DecodingArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
}

const EXAMPLES: &str = "\
Examples:
  attentive translate \"Guten Morgen, wie geht es dir?\"
  attentive translate \"How are you? See https://example.org :-)\" \"ALL GOOD!\"
  attentive translate --to de -i letter.txt -o brief.txt
  attentive translate -i report.docx -o bericht.docx
  attentive translate -i page.html -i film.srt -i app.po --out-dir translated
  attentive translate --format html \"<b>Guten</b> Morgen!\"
  attentive translate --from fr --to en \"Où est la gare ?\"    (after `attentive pull fr-en`)
  attentive translate --model runs/multi30k \"Ein Hund rennt.\" \"Zwei Katzen schlafen.\"
  attentive translate --model runs/multi30k -i test.de -o test.en --beam 8
  zcat big.de.gz | attentive translate --model multi30k-int8 > big.en
  attentive translate --model multi30k-int8 --prefix \"A dog\" --alignments \"Ein Hund rennt.\"
  attentive translate --model multi30k-int8 --shortlist multi30k.shortlist -i test.de -o test.en
  attentive translate --model multi30k-int8 --draft tiny-int8 --beam 1 \"Ein Hund rennt.\"
  attentive translate --glossary terms.tsv -i letter.txt -o brief.txt
  attentive translate --model multi30k-int8 --shard 3/8 -i big.de.gz -o big.en.3
  attentive translate --sample --temperature 0.8 --alternatives 3 \"Hallo, alle zusammen!\"

Without --model, German becomes English and English becomes German: the language is found out once,
from all sentences or the beginning of the input (from its first line, if lines are answered at once).
Models that were pulled add their languages; --from and --to choose. Where no model translates directly,
two are chained through English; the score is then the sum of both, and --json has the text between as \"pivot\".

Documents (Markdown, HTML, XML, SRT, VTT, PO, JSON, YAML, XLIFF, DOCX, ODT) keep their layout; what was not translated
is listed at the end. docs/documents.md says what each format keeps.

Every line gives one line (with --alternatives up to N lines), in the same order; an empty line
stays empty. The exception are paragraphs of a .txt file that were broken at a width (see --wrapped). Files of any size are translated in constant memory. Lines are counted from 1, words
from 0. Scores are log-probabilities divided by length^alpha: nearer to 0 is better. The score of
several sentences in a line is their mean.

With --shard, N processes translate a part of a file each, on as many machines as there are: `cat` of all outputs in their
order is what one process writes. A part that was interrupted is run again. docs/scaling.md has lines for Slurm,
Kubernetes and GNU parallel.

With --glossary, terms are found in the source by words, also with common endings (Hund, Hunde), and the translation
contains their targets where the model places them. \"a | b\" as the target allows either. What a translation lacks all
the same is told.";

/// Translates.
pub fn run(mut args: TranslateArgs, terminal: &Terminal) -> anyhow::Result<()> {
    without_huge_pages();
    if let Some(path) = &args.glossary {
        let glossary = Glossary::open(path)?;
        let left_out = glossary.left_out().iter();
        left_out.for_each(|message| terminal.warn(message));
        args.terms = Some(Arc::new(glossary));
    }
    let asked = args.direction.asked(args.model.as_deref(), terminal)?;
    let (sentences, files) = args.input.given();
    if let Some(documents) = args.documents.documents(sentences, files)? {
        return documents::run(&args, &documents, asked, terminal);
    }
    args.input.check_shard()?;
    let mut input = args.input.open(terminal)?;
    let window = match input.pace {
        Pace::Line => 1,
        Pace::Window => TranslatorOptions::default().window,
    };
    let mut answers = Answers::begin(&args, &input, window, terminal)?;
    let route = match asked {
        Some(route) => route,
        None => answers.detect(&args.direction, &mut input)?,
    };
    match route {
        Route::Direct(choice) => args.with_one_model(&choice, window, input, answers),
        Route::ThroughEnglish(first, second) => {
            let chain = args.chain(&first, &second, window)?;
            let input = args.paragraphs(args.lines.of(&second), input)?;
            answers.to(|answer| chain.translate_stream(input, answer))
        }
    }
}

impl TranslateArgs {
    fn with_one_model(
        &self,
        choice: &Choice,
        window: usize,
        input: Input,
        answers: Answers<'_>,
    ) -> anyhow::Result<()> {
        let (device, compute) = (self.device.device.as_str(), self.decoding.compute);
        #[cfg(feature = "training")]
        if let Some(folder) = network::recurrent(choice) {
            if self.draft.is_some() || self.alignments || compute != ComputeKind::Auto {
                let problem = "--draft, --alignments and --compute are for Transformers, and this model is recurrent";
                return Err(Ending::Usage(problem.to_owned()).into());
            }
            let options = self.options(choice, TranslatorOptions::default(), window)?;
            let input = self.paragraphs(options.lines, input)?;
            let model = LoadedModel::<Recurrent>::open(folder, device)?;
            let translator = model.translator(options)?;
            return answers.to(|answer| translator.translate_stream(input, answer));
        }
        let directory = choice.open()?;
        let targets = &directory.generation.target_languages;
        if !targets.is_empty() {
            let names: Vec<&str> = targets.keys().map(String::as_str).collect();
            let (example, names) = (names[0], names.join(", "));
            answers.say(|terminal| {
                terminal.warn(format_args!(
                    "{} writes several languages ({names}): choose one with --to, or begin each line with \
                     >>{example}<<",
                    choice.name()
                ));
            });
        }
        let usual = choice.options(&directory)?;
        let options = self.options(choice, usual, window)?;
        let input = self.paragraphs(options.lines, input)?;
        match choice {
            _ if device == "cpu" => {
                let mut translator = model::translator(directory, compute, options)?;
                if let Some(draft) = &self.draft {
                    let draft = Choice::of(draft)?.open()?;
                    let shortlist = self.draft_shortlist.as_ref().map(Shortlist::open);
                    let shortlist = shortlist.transpose()?.map(Arc::new);
                    let drafted = translator.with_draft_model(&draft, compute.into(), shortlist);
                    translator = drafted.map_err(named_usage)?;
                }
                answers.to(|answer| translator.translate_stream(input, answer))
            }
            _ if self.draft.is_some() => Err(only_for_the_cpu("drafts are")),
            Choice::BuiltIn(_) => Err(only_for_the_cpu("built-in models are")),
            Choice::Into(..) => Err(only_for_the_cpu("--model with --to is")),
            _ if self.alignments || compute != ComputeKind::Auto => {
                Err(only_for_the_cpu("--alignments and --compute are"))
            }
            #[cfg(feature = "training")]
            Choice::Directory(folder) | Choice::Pulled(StoredModel { folder, .. }) => {
                let model = LoadedModel::<Transformer>::open(folder, device)?;
                let translator = model.translator(options)?;
                answers.to(|answer| translator.translate_stream(input, answer))
            }
            #[cfg(not(feature = "training"))]
            _ => Err(only_for_the_cpu("this build is")),
        }
    }

    /// The lines, joined where they are one paragraph.
    fn paragraphs(
        &self,
        lines: Lines,
        input: Input,
    ) -> anyhow::Result<Box<dyn Iterator<Item = anyhow::Result<Unit>>>> {
        // Where an answer is more than a text, it belongs to a line.
        let text_only = self.form() == Form::Plain && !self.alignments;
        let wrapping = match (self.input.wrapped, lines) {
            (Wrapped::Join, Lines::Whole) => {
                let problem = "--wrapped join is for text, but lines are translated as they stand here: use --sentences";
                return Err(Ending::Usage(problem.to_owned()).into());
            }
            (Wrapped::Join, Lines::RawText) => Wrapping::Join,
            (Wrapped::Auto, Lines::RawText)
                if input.is_document && text_only && input.pace == Pace::Window =>
            {
                Wrapping::Detect
            }
            _ => Wrapping::Lines,
        };
        Ok(input.paragraphs(wrapping))
    }

    /// Two models, one after the other.
    fn chain(&self, first: &Choice, second: &Choice, window: usize) -> anyhow::Result<Chain> {
        if self.device.device != "cpu" {
            return Err(only_for_the_cpu("two models one after the other are"));
        }
        if self.draft.is_some() || self.decoding.shortlist.is_some() {
            let problem = "--draft and --shortlist belong to one model, but here are two: name one with --model";
            return Err(Ending::Usage(problem.to_owned()).into());
        }
        let translator = |choice: &Choice| {
            let directory = choice.open()?;
            let options = self.options(choice, choice.options(&directory)?, window)?;
            model::translator(directory, self.decoding.compute, options)
        };
        Chain::new(translator(first)?, translator(second)?).map_err(named_usage)
    }
}

/// Translating needs little memory in many pieces, and huge pages round each up to two megabytes:
/// they make the process half as large again and nothing faster.
pub fn without_huge_pages() {
    #[cfg(target_os = "linux")]
    // SAFETY: only tells the kernel how to back memory that is used from now on.
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
}

/// The answers so far, and everything that is done with the next one.
struct Answers<'a> {
    form: Form,
    output: Output,
    /// After so many lines, whoever reads a pipe should get what is done.
    window: usize,
    line: usize,
    /// Paragraphs whose lines were joined.
    joined: usize,
    progress: Progress,
    notices: Notices,
    terminal: &'a Terminal,
}

impl<'a> Answers<'a> {
    fn begin(
        args: &TranslateArgs,
        input: &Input,
        window: usize,
        terminal: &'a Terminal,
    ) -> anyhow::Result<Self> {
        let output = Output::open(args.output.as_deref())?;
        Ok(Self {
            form: args.form(),
            progress: Progress::new(&output, input.bytes, "lines", terminal),
            output,
            window,
            line: input.read,
            joined: 0,
            notices: Notices::default(),
            terminal,
        })
    }

    /// The way from the language of the first lines, which stay to be read. Blank lines before them are
    /// answered, as someone may wait for that.
    fn detect(
        &mut self,
        direction: &DirectionArgs,
        input: &mut Input,
    ) -> anyhow::Result<Route<Choice>> {
        let mut text = input.look_ahead();
        while input.pace == Pace::Line && !text.is_empty() && is_blank(&text) {
            if let Some(line) = input.next() {
                self.add(&line?.text, &Translation::empty())?;
            }
            text = input.look_ahead();
        }
        self.progress
            .suspend(|| direction.detect(&text, self.terminal))
    }

    /// Answers all lines, which `translate` hands over with their translations.
    fn to(
        mut self,
        translate: impl FnOnce(
            &mut dyn FnMut(Unit, Translation) -> anyhow::Result<()>,
        ) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        translate(&mut |source, translation| match &source.layout {
            Some(layout) => self.add_paragraph(&source.text, layout, &translation),
            None => self.add(&source.text, &translation),
        })?;
        self.progress.finish();
        self.output.finish()?;
        if self.joined > 0 {
            let paragraphs = plural(self.joined, "paragraph was", "paragraphs were");
            self.terminal.note(format!(
                "{paragraphs} joined before translating, and broken at the same width again (--wrapped lines: each line for itself)"
            ));
        }
        self.notices.tell(self.terminal);
        Ok(())
    }

    /// Says something between the answers.
    fn say(&self, say: impl FnOnce(&Terminal)) {
        self.progress.suspend(|| say(self.terminal));
    }

    /// Answers several lines that were joined.
    fn add_paragraph(
        &mut self,
        source: &str,
        layout: &Layout,
        translation: &Translation,
    ) -> anyhow::Result<()> {
        if let Some(warning) = self.notices.add(self.line + 1, translation) {
            self.say(|terminal| terminal.warn(warning));
        }
        self.line += layout.lines;
        self.joined += 1;
        writeln!(self.output, "{}", layout.wrap(&translation.text))?;
        self.progress.add(source);
        Ok(())
    }

    /// Answers the next line.
    fn add(&mut self, source: &str, translation: &Translation) -> anyhow::Result<()> {
        self.line += 1;
        if let Some(warning) = self.notices.add(self.line, translation) {
            self.say(|terminal| terminal.warn(warning));
        }
        self.form
            .write(&mut self.output, self.line, source, translation)?;
        if self.line.is_multiple_of(self.window) {
            self.output.flush()?;
        }
        self.progress.add(source);
        Ok(())
    }
}

impl TranslateArgs {
    /// What is usual for the model, and what was asked for.
    fn options(
        &self,
        choice: &Choice,
        usual: TranslatorOptions,
        window: usize,
    ) -> anyhow::Result<TranslatorOptions> {
        let mut options = self
            .decoding
            .options(usual, self.alternatives.unwrap_or(1))?;
        self.sampling.apply(&mut options.search);
        options.alignments = self.alignments;
        options.window = window;
        options.lines = self.lines.of(choice);
        options.glossary = self.terms.clone();
        Ok(options)
    }

    fn form(&self) -> Form {
        match (self.json, self.alternatives, self.scores) {
            (true, _, _) => Form::Json,
            (false, Some(_), _) => Form::NBest,
            (false, None, true) => Form::Scored,
            (false, None, false) => Form::Plain,
        }
    }
}

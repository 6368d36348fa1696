//! How good a BERT is: accuracy and F1 of a classifier on labelled texts, and how well hidden tokens and next sentences are
//! predicted in running text.
//!
//! A part of [`super::evaluate`].

use std::io::Write;
use std::path::Path;

use anyhow::bail;
use attentive_model::config::BertHead;
use attentive_text::lines::read_lines;
use attentive_train::Recipe;
use attentive_train::data::documents::Documents;
use attentive_train::data::labelled::{Columns, LabelledFile};
use attentive_train::distributed::SingleProcess;
use attentive_train::recipe::RECIPE_FILE;
use attentive_train::task::{classification, masked_language_model};
use clap::Args;
use serde_json::json;

use super::bert_input::LoadedBert;
use crate::output::Output;
use crate::terminal::Terminal;
use crate::wording::{count, plural};

/// Which columns of a file of labelled texts to take.
#[derive(Debug, Args)]
pub struct ColumnArgs {
    /// Column of the text, or the two columns of a pair, separated by a comma [default: those of the model's recipe]
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        requires = "examples"
    )]
    text_columns: Vec<String>,
    /// Column of the label [default: that of the model's recipe]
    #[arg(long, value_name = "NAME", requires = "examples")]
    label_column: Option<String>,
}

impl ColumnArgs {
    fn of(&self, model: &LoadedBert) -> anyhow::Result<Columns> {
        let recipe = model.path.join(RECIPE_FILE);
        let recipe = if recipe.is_file() {
            Recipe::load_from_run(&recipe)?
        } else {
            Recipe::default()
        };
        let mut columns = Columns::of(&recipe);
        if !self.text_columns.is_empty() {
            columns.texts.clone_from(&self.text_columns);
        }
        if let Some(label) = &self.label_column {
            columns.label.clone_from(label);
        }
        Ok(columns)
    }
}

/// Accuracy and F1 on labelled texts.
pub fn classes(
    model: &LoadedBert,
    file: &Path,
    columns: &ColumnArgs,
    as_json: bool,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    if model.head != BertHead::Classification {
        bail!(
            "this model has no classifier: labelled texts say nothing about it; give running text with --text"
        );
    }
    let file = LabelledFile::read(file, &columns.of(model)?)?;
    let (labels, longest) = (&model.labels, model.longest);
    let examples = classification::examples(&file, &model.tokenizer, labels, longest)?;
    let cut = examples.iter().filter(|it| it.text.left_out > 0).count();
    if cut > 0 {
        let texts = plural(cut, "text is", "texts are");
        terminal.warn(format_args!(
            "{texts} longer than the {longest} tokens that the model reads: their ends are left out"
        ));
    }
    let scores = classification::evaluate(&model.network, &examples, labels.len(), &SingleProcess);
    let mut output = Output::stdout();
    if as_json {
        let record = json!({
            "examples": examples.len(),
            "loss": scores.loss,
            "accuracy": scores.accuracy,
            "f1": scores.f1,
            "cut": cut,
            "kept": scores.kept,
            "operations": scores.operations,
        });
        writeln!(output, "{record}")?;
    } else {
        let of = match &labels[..] {
            [_, second] => format!("of the class {second}"),
            _ => "the mean over the classes".to_owned(),
        };
        writeln!(output, "examples    {}", count(examples.len()))?;
        writeln!(output, "loss        {:.4}", scores.loss)?;
        writeln!(output, "accuracy    {:.2}%", 100.0 * scores.accuracy)?;
        writeln!(output, "F1          {:.2}%, {of}", 100.0 * scores.f1)?;
        if let (Some(kept), Some(share)) = (scores.kept, scores.operations) {
            writeln!(
                output,
                "kept        {:.1}% of the tokens, the mean over layers",
                100.0 * kept
            )?;
            writeln!(
                output,
                "operations  {:.1}% of those without pruning",
                100.0 * share
            )?;
        }
    }
    output.finish()
}

/// Examples computed together.
const BATCH: usize = 32;

/// How well hidden tokens and next sentences are predicted.
pub fn masked(model: &LoadedBert, file: &Path, as_json: bool) -> anyhow::Result<()> {
    if !model.head.fills() {
        bail!("this model predicts no hidden tokens: give labelled texts with --examples");
    }
    let masking = masked_language_model::masking(&model.tokenizer, model.longest, model.head)?;
    let text: String = read_lines(file)?
        .into_iter()
        .map(|line| line + "\n")
        .collect();
    let documents = Documents::encode(&model.tokenizer, &[text]);
    if documents.is_empty() {
        bail!("the text is empty: there is nothing to measure");
    }
    let examples = masked_language_model::examples(&documents, &masking);
    let scores = masked_language_model::evaluate(&model.network, &examples, BATCH, &SingleProcess);
    let next = scores.next_sentence;
    let mut output = Output::stdout();
    if as_json {
        let record = json!({
            "examples": examples.len(),
            "hidden_tokens": scores.tokens,
            "loss": scores.cross_entropy,
            "perplexity": scores.cross_entropy.exp(),
            "accuracy": scores.accuracy,
            "next_sentence_loss": next.map(|(loss, _)| loss),
            "next_sentence_accuracy": next.map(|(_, accuracy)| accuracy),
        });
        writeln!(output, "{record}")?;
    } else {
        let (tokens, examples) = (count(scores.tokens), count(examples.len()));
        writeln!(output, "hidden      {tokens} tokens in {examples} examples")?;
        writeln!(output, "loss        {:.4}", scores.cross_entropy)?;
        writeln!(output, "perplexity  {:.3}", scores.cross_entropy.exp())?;
        writeln!(output, "accuracy    {:.2}%", 100.0 * scores.accuracy)?;
        if let Some((_, accuracy)) = next {
            writeln!(
                output,
                "next        {:.2}% of the sentence pairs",
                100.0 * accuracy
            )?;
        }
    }
    output.finish()
}

//! The commands, one file each: its arguments, and `run`, which does it.

mod attention;
mod average;
#[cfg(feature = "training")]
mod bert_input;
#[cfg(feature = "training")]
mod classify;
mod completions;
mod data;
#[cfg(feature = "training")]
mod demo;
mod doctor;
#[cfg(feature = "training")]
mod draw;
#[cfg(feature = "training")]
mod embed;
#[cfg(feature = "training")]
mod evaluate;
#[cfg(feature = "training")]
mod evaluate_bert;
mod export;
#[cfg(feature = "training")]
mod fill;
#[cfg(feature = "training")]
mod generate;
#[cfg(feature = "training")]
mod images;
mod import;
mod info;
mod models;
mod plot;
#[cfg(feature = "training")]
mod prepare;
mod pull;
mod quantize;
pub mod score;
mod serve;
mod shortlist;
mod tokenizer;
#[cfg(feature = "training")]
mod train;
mod translate;
#[cfg(not(feature = "training"))]
mod without_training;

use clap::Subcommand;

use crate::terminal::Terminal;
#[cfg(not(feature = "training"))]
use {
    without_training as classify, without_training as draw, without_training as embed,
    without_training as fill, without_training as generate,
};

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train a small model for half a minute and translate with it
    #[cfg(feature = "training")]
    Demo(demo::DemoArgs),
    /// Tokenize a corpus that is larger than memory, so that training streams it from the disk
    #[cfg(feature = "training")]
    Prepare(prepare::PrepareArgs),
    /// Train a model from a recipe, or continue a run
    #[cfg(feature = "training")]
    Train(train::TrainArgs),
    /// Translate sentences, a file or standard input
    Translate(Box<translate::TranslateArgs>),
    /// Translate for other programs and for browsers, over HTTP
    Serve(serve::ServeArgs),
    /// Import a model of Hugging Face, Marian, Bergamot, CTranslate2, Argos or fairseq
    Import(import::ImportArgs),
    /// Fetch models for other languages from the Hugging Face hub
    Pull(pull::PullArgs),
    /// List the models that translate between languages, or remove one that was pulled
    Models(models::ModelsArgs),
    /// Make one model of several: the mean of their weights
    Average(average::AverageArgs),
    /// Make a smaller, faster model for the CPU: weights of 8 bits
    Quantize(quantize::QuantizeArgs),
    /// Write a model for another program: Hugging Face, ONNX, CTranslate2, Marian
    Export(export::ExportArgs),
    /// Learn from a corpus which tokens may translate which, so that translating computes only those
    Shortlist(shortlist::ShortlistArgs),
    /// Continue texts with a language model (GPT)
    Generate(generate::GenerateArgs),
    /// Find the words that a BERT would put in the place of a mask
    Fill(fill::FillArgs),
    /// Classify texts, or pairs of texts, with a BERT, or images with a ViT
    Classify(classify::ClassifyArgs),
    /// Make a vector of each text with a BERT
    Embed(embed::EmbedArgs),
    /// Draw images with a diffusion model
    Draw(draw::DrawArgs),
    /// Measure a model on a test set: loss, perplexity, BLEU, accuracy
    #[cfg(feature = "training")]
    Evaluate(evaluate::EvaluateArgs),
    /// Score translations as sacreBLEU does: BLEU, chrF, TER, and whether differences are chance
    Score(score::ScoreArgs),
    /// Show what a model looks at: maps of its attention, in every format
    Attention(attention::AttentionArgs),
    /// Draw positions, learning rates, label smoothing and training runs
    Plot(plot::PlotArgs),
    /// Show what a model directory or a training run holds, or list the built-in models
    Info(info::InfoArgs),
    /// Train a tokenizer, or use one
    Tokenizer(tokenizer::TokenizerArgs),
    /// Check a corpus and a recipe before training, and say what to do
    Doctor(doctor::DoctorArgs),
    /// Clean training data, or make some up
    Data(data::DataArgs),
    /// Print completions for a shell
    Completions(completions::CompletionsArgs),
}

/// Does it.
pub fn run(command: Command, terminal: &Terminal) -> anyhow::Result<()> {
    match command {
        #[cfg(feature = "training")]
        Command::Demo(args) => demo::run(args, terminal),
        #[cfg(feature = "training")]
        Command::Prepare(args) => prepare::run(args, terminal),
        #[cfg(feature = "training")]
        Command::Train(args) => train::run(args, terminal),
        Command::Translate(args) => translate::run(*args, terminal),
        Command::Serve(args) => serve::run(args, terminal),
        Command::Import(args) => import::run(args, terminal),
        Command::Pull(args) => pull::run(args, terminal),
        Command::Models(args) => models::run(args, terminal),
        Command::Average(args) => average::run(args),
        Command::Quantize(args) => quantize::run(args),
        Command::Export(args) => export::run(args, terminal),
        Command::Shortlist(args) => shortlist::run(args, terminal),
        Command::Generate(args) => generate::run(args, terminal),
        Command::Fill(args) => fill::run(args, terminal),
        Command::Classify(args) => classify::run(args, terminal),
        Command::Embed(args) => embed::run(args, terminal),
        Command::Draw(args) => draw::run(args, terminal),
        #[cfg(feature = "training")]
        Command::Evaluate(args) => evaluate::run(args, terminal),
        Command::Score(args) => score::run(args, terminal),
        Command::Attention(args) => attention::run(args, terminal),
        Command::Plot(args) => plot::run(args, terminal),
        Command::Info(args) => info::run(args),
        Command::Tokenizer(args) => tokenizer::run(args, terminal),
        Command::Doctor(args) => doctor::run(args, terminal),
        Command::Data(args) => data::run(args, terminal),
        Command::Completions(args) => completions::run(args),
    }
}

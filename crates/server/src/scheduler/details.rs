//! What each token of a translation cost, and which others the model would have taken.

use attentive_runtime::Translator;
use attentive_runtime::inspection::{Inspect, Prediction};
use attentive_runtime::search::Finish;
use attentive_runtime::translator::Translation;
use attentive_text::Tokenizer;
use attentive_text::special::decoder_output;
use serde::Serialize;

use super::Task;

/// The tokens of a sentence's translation, `</s>` at the end unless it was cut.
#[derive(Debug, Clone, Serialize)]
pub struct Details {
    /// In the order of the target.
    pub tokens: Vec<Token>,
}

/// A target token.
#[derive(Debug, Clone, Serialize)]
pub struct Token {
    /// How the tokenizer shows it.
    pub text: String,
    /// Its number in the vocabulary.
    pub id: u32,
    /// Where it begins in the sentence's translation, in characters (Unicode code points) from 0.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Its log-probability, given everything before it.
    pub logprob: f32,
    /// Its rank among all tokens by probability, from 1.
    pub rank: usize,
    /// The most probable tokens at its place, best first.
    pub top: Vec<Candidate>,
}

/// A token that might have come.
#[derive(Debug, Clone, Serialize)]
pub struct Candidate {
    /// How the tokenizer shows it.
    pub text: String,
    /// Its number in the vocabulary.
    pub id: u32,
    /// Its log-probability.
    pub logprob: f32,
}

impl Details {
    /// One forward pass over the sentence and the tokens of its translation.
    pub(super) fn of(
        translator: &Translator,
        task: &Task,
        target: &[u32],
        translation: &Translation,
        top: usize,
    ) -> Self {
        let tokenizer = &translator.tokenizers().tgt;
        let source = task.line.request(task.sentence);
        let source = source.map_or(&[][..], |request| &request.source);
        let Some((_end, source)) = source.split_last() else {
            return Self { tokens: Vec::new() };
        };
        let whole = translation.text.chars().count();
        let end = |count: usize| {
            let beginning = tokenizer.decode(&target[..count]);
            let chars = task.line.finished_chars(task.sentence, &beginning);
            chars.min(whole)
        };
        let predictions = translator.model().inspect(source, target, top).predictions;
        let mut written = decoder_output(target);
        if translation.finished != Finish::EndOfSentence {
            written.pop();
        }
        let mut start = 0;
        let mut tokens = Vec::with_capacity(written.len());
        for (place, (id, prediction)) in written.into_iter().zip(predictions).enumerate() {
            let end = end((place + 1).min(target.len())).max(start);
            tokens.push(Token::new(tokenizer, id, start..end, &prediction));
            start = end;
        }
        Self { tokens }
    }
}

impl Token {
    fn new(
        tokenizer: &Tokenizer,
        id: u32,
        place: std::ops::Range<usize>,
        prediction: &Prediction,
    ) -> Self {
        let candidate = |&(id, logprob): &(u32, f32)| Candidate {
            text: tokenizer.label(id),
            id,
            logprob,
        };
        Self {
            text: tokenizer.label(id),
            id,
            start: place.start,
            end: place.end,
            logprob: prediction.log_prob,
            rank: prediction.rank,
            top: prediction.candidates.iter().map(candidate).collect(),
        }
    }
}

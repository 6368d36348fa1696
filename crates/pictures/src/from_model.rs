//! A record from a model: a sentence becomes tokens, its translation is searched for or given, and one
//! forward pass returns all attention weights.
//!
//! Used by `attentive attention`; any model with [`Inspect`] will do. Neighbor: [`crate::record`] is the
//! result.

use attentive_model::{Shortlist, Tokenizers};
use attentive_runtime::inspection::{Inspect, Inspection, Prediction};
use attentive_runtime::search::{Request, SearchOptions, search};
use attentive_text::Tokenizer;
use attentive_text::special::{decoder_input, decoder_output, source_ids};

use crate::error::{PictureError, Result};
use crate::map::Map;
use crate::record::{Candidate, Record, Side, Step};

/// Candidates for the next token at each position.
const CANDIDATES: usize = 10;

/// More tokens than this cannot be told apart in any picture; counts one special token.
const MAX_TOKENS: usize = 256;

/// What the decoder writes.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// This text, however improbable (teacher forcing).
    Given(&'a str),
    /// The best translation that this search finds, among the candidates of the shortlist if there is one.
    Translation(&'a SearchOptions, Option<&'a Shortlist>),
}

impl Record {
    /// Runs the model over a sentence, which it reads as a single one, and over its target.
    pub fn of(
        model: &impl Inspect,
        tokenizers: &Tokenizers,
        sentence: &str,
        target: Target<'_>,
    ) -> Result<Self> {
        let Tokenizers { src, tgt } = tokenizers;
        let limit = model.position_limit().unwrap_or(MAX_TOKENS);
        let limit = limit.min(MAX_TOKENS) - 1;
        let src_ids = src.encode(sentence);
        if sentence.trim().is_empty() || src_ids.is_empty() {
            return Err(PictureError::EmptySentence);
        }
        refuse_long("the sentence", src_ids.len(), limit)?;
        let tgt_ids = match target {
            Target::Given(text) => tgt.encode(text),
            Target::Translation(options, shortlist) => {
                let source = source_ids(&src_ids[..]);
                let candidates = shortlist.map(|list| list.candidates(&source, &[]).into());
                let request = Request {
                    candidates,
                    ..Request::new(source)
                };
                translated(model, request, options, limit)
            }
        };
        refuse_long("the translation", tgt_ids.len(), limit)?;

        let inspection = model.inspect(&src_ids, &tgt_ids, CANDIDATES);
        let (src_len, tgt_len) = (src_ids.len() + 1, tgt_ids.len() + 1);
        Record {
            source: Side::new(src, &source_ids(&src_ids[..])),
            read: Side::new(tgt, &decoder_input(&tgt_ids)),
            written: Side::new(tgt, &decoder_output(&tgt_ids[..])),
            encoder: maps(inspection.encoder, src_len, src_len)?,
            decoder: maps(inspection.decoder, tgt_len, tgt_len)?,
            cross: maps(inspection.cross, tgt_len, src_len)?,
            steps: inspection
                .predictions
                .into_iter()
                .map(|prediction| step(prediction, tgt))
                .collect(),
            source_text: sentence.to_owned(),
            target_text: match target {
                Target::Given(text) => text.to_owned(),
                Target::Translation(..) => tgt.decode(&tgt_ids),
            },
        }
        .check()
    }
}

impl Record {
    /// What a language model that sees `context` tokens makes of a text: `inspect` runs it over the text's tokens, with
    /// so many candidates for each next token.
    pub fn of_text(
        tokenizer: &Tokenizer,
        text: &str,
        context: usize,
        inspect: impl FnOnce(&[u32], usize) -> Inspection,
    ) -> Result<Self> {
        let ids = tokenizer.encode(text);
        if ids.is_empty() {
            return Err(PictureError::EmptySentence);
        }
        refuse_long("the text", ids.len(), context.min(MAX_TOKENS))?;
        let inspection = inspect(&ids, CANDIDATES);
        let next = inspection.predictions.last();
        let next = next.and_then(|last| last.candidates.first());
        let written: Vec<u32> = ids[1..]
            .iter()
            .copied()
            .chain(next.map(|(id, _)| *id))
            .collect();
        let all = [&ids[..1], &written[..]].concat();
        Record {
            source: Side::new(tokenizer, &[]),
            read: Side::new(tokenizer, &ids),
            written: Side::new(tokenizer, &written),
            encoder: Vec::new(),
            decoder: maps(inspection.decoder, ids.len(), ids.len())?,
            cross: Vec::new(),
            steps: inspection
                .predictions
                .into_iter()
                .map(|prediction| step(prediction, tokenizer))
                .collect(),
            source_text: text.to_owned(),
            target_text: tokenizer.decode(&all),
        }
        .check()
    }
}

impl Record {
    /// What an encoder alone (BERT) makes of a text: `ids` are its tokens, special ones included, and `layers` the weights
    /// of each layer and head.
    pub fn of_encoder(
        tokenizer: &Tokenizer,
        text: &str,
        ids: &[u32],
        layers: Vec<Vec<Vec<f32>>>,
    ) -> Result<Self> {
        refuse_long("the text", ids.len(), MAX_TOKENS)?;
        let none = Side::new(tokenizer, &[]);
        Record {
            source: Side::new(tokenizer, ids),
            read: none.clone(),
            written: none,
            encoder: maps(layers, ids.len(), ids.len())?,
            decoder: Vec::new(),
            cross: Vec::new(),
            steps: Vec::new(),
            source_text: text.to_owned(),
            target_text: tokenizer.decode(ids),
        }
        .check()
    }
}

fn refuse_long(what: &'static str, tokens: usize, limit: usize) -> Result<()> {
    if tokens > limit {
        return Err(PictureError::TooLong {
            what,
            tokens,
            limit,
        });
    }
    Ok(())
}

fn translated(
    model: &impl Inspect,
    request: Request,
    options: &SearchOptions,
    limit: usize,
) -> Vec<u32> {
    let mut options = options.clone();
    let cap = &mut options.max_length.cap;
    *cap = Some(cap.map_or(limit, |cap| cap.min(limit)));
    let found = search(model, &[request], &options);
    let best = found.into_iter().flatten().next();
    best.map(|hypothesis| hypothesis.tokens).unwrap_or_default()
}

fn maps(layers: Vec<Vec<Vec<f32>>>, rows: usize, cols: usize) -> Result<Vec<Vec<Map>>> {
    let heads = |heads: Vec<Vec<f32>>| {
        let maps = heads.into_iter();
        maps.map(|weights| Map::new(rows, cols, weights)).collect()
    };
    layers.into_iter().map(heads).collect()
}

fn step(prediction: Prediction, tokenizer: &Tokenizer) -> Step {
    let candidate = |(id, log_prob): (u32, f32)| Candidate {
        id,
        text: tokenizer.label(id),
        probability: log_prob.exp(),
    };
    Step {
        probability: prediction.log_prob.exp(),
        rank: prediction.rank,
        next: prediction.candidates.into_iter().map(candidate).collect(),
    }
}

#[cfg(test)]
mod tests {
    use attentive_model::{ModelDir, fake_dir};
    use attentive_runtime::cpu::{Compute, CpuModel};

    use super::*;

    fn record(sentence: &str, target: Target<'_>) -> Result<Record> {
        let folder = tempfile::tempdir().unwrap();
        fake_dir::write(folder.path()).unwrap();
        let dir = ModelDir::open(folder.path()).unwrap();
        let model = CpuModel::open(&dir, Compute::Auto).unwrap();
        Record::of(&model, &dir.tokenizers, sentence, target)
    }

    fn texts(side: &Side) -> Vec<&str> {
        side.tokens
            .iter()
            .map(|token| token.text.as_str())
            .collect()
    }

    #[test]
    fn a_given_target_is_written_whatever_the_model_thinks_of_it() {
        let record = record("a b c", Target::Given("x y")).unwrap();
        assert_eq!(texts(&record.source), ["a", "b", "c", "</s>"]);
        assert_eq!(texts(&record.read), ["<s>", "x", "y"]);
        assert_eq!(texts(&record.written), ["x", "y", "</s>"]);
        assert_eq!(record.steps.len(), 3);
        for step in &record.steps {
            assert_eq!(step.next.len(), CANDIDATES);
            let place = step
                .next
                .iter()
                .position(|c| c.probability == step.probability);
            assert!(place.is_none_or(|place| place + 1 == step.rank), "{step:?}");
        }
        assert_eq!(
            (&*record.source_text, &*record.target_text),
            ("a b c", "x y")
        );
    }

    #[test]
    fn without_a_target_it_is_what_the_search_finds() {
        let greedy = record("a b c", Target::Translation(&SearchOptions::greedy(), None)).unwrap();
        // Greedy search takes the most probable token, unless that is one which is never written.
        for (step, token) in greedy.steps.iter().zip(&greedy.written.tokens) {
            assert!(step.rank <= 3 || token.text == "</s>", "{step:?}");
        }
        assert_eq!(
            greedy.target_text.split(' ').count() + 1,
            greedy.written.len()
        );
    }

    #[test]
    fn sentences_that_cannot_be_drawn_are_refused() {
        let message = |sentence: &str, target| record(sentence, target).unwrap_err().to_string();
        let long = "a ".repeat(256);
        for empty in ["", " \t"] {
            assert!(message(empty, Target::Given("a")).contains("the sentence is empty"));
        }
        let refused = message(&long, Target::Given("a"));
        assert!(refused.contains("the sentence has 256 tokens"), "{refused}");
        let refused = message("a", Target::Given(&long));
        assert!(refused.contains("translation has 256 tokens"), "{refused}");
        assert!(refused.contains("at most 255"), "{refused}");
    }
}

//! A record: all attention weights and next-token probabilities of one sentence pair.
//!
//! [`crate::from_model`] makes one by a forward pass; [`crate::selection`] takes from it what is to be
//! shown. Plain numbers in maps, and tokens with the words that they are part of.

use serde::Serialize;

use crate::error::{PictureError, Result};
use crate::map::Map;
use crate::rollout;

/// A sentence, its translation and all attention weights.
#[derive(Debug, Clone)]
pub struct Record {
    /// What the encoder read, `</s>` at the end.
    pub source: Side,
    /// What the decoder read: `<s>`, then the translation.
    pub read: Side,
    /// What the decoder wrote at each of these positions: the translation, then `</s>`. In a language model, the token
    /// behind each one.
    pub written: Side,
    /// Encoder self-attention, `[layer][head]`: from `source` to `source`. No layers in a decoder-only model (GPT).
    pub encoder: Vec<Vec<Map>>,
    /// Decoder self-attention: from `read` to `read`. No layers if the decoder is recurrent (SSRU), or
    /// if there is none (BERT).
    pub decoder: Vec<Vec<Map>>,
    /// Cross-attention: from `written` to `source`. No layers in a decoder-only model.
    pub cross: Vec<Vec<Map>>,
    /// The decoder's prediction at each position.
    pub steps: Vec<Step>,
    /// The sentence as text.
    pub source_text: String,
    /// The translation as text.
    pub target_text: String,
}

/// A sentence as tokens and as words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// The tokens, as the model gets them.
    pub tokens: Vec<Token>,
    /// The text of each word that the tokens make up.
    pub words: Vec<String>,
}

/// One token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Token {
    /// Its number in the vocabulary.
    pub id: u32,
    /// How the tokenizer shows it.
    pub text: String,
    /// The word that it is part of, from 0.
    pub word: usize,
}

/// The prediction at one position of the decoder.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// The probability of the token that was written.
    pub probability: f32,
    /// Its rank among all tokens by probability, from 1.
    pub rank: usize,
    /// The most probable tokens, best first.
    pub next: Vec<Candidate>,
}

/// A candidate for the next token.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// Its number in the vocabulary.
    pub id: u32,
    /// How the tokenizer shows it.
    pub text: String,
    /// Its probability.
    pub probability: f32,
}

/// The three kinds of attention in a Transformer (§3.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Self-attention of the encoder.
    Encoder,
    /// Self-attention of the decoder, over what it has read so far.
    Decoder,
    /// Attention from the decoder to the encoder's output.
    Cross,
}

impl Side {
    /// How many tokens.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The word of each token.
    pub fn word_of_token(&self) -> Vec<usize> {
        self.tokens.iter().map(|token| token.word).collect()
    }
}

impl Kind {
    /// All, in data order.
    pub const ALL: [Kind; 3] = [Kind::Encoder, Kind::Decoder, Kind::Cross];

    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Encoder => "encoder",
            Kind::Decoder => "decoder",
            Kind::Cross => "cross",
        }
    }

    /// A heading.
    pub fn title(self) -> &'static str {
        match self {
            Kind::Encoder => "Encoder self-attention",
            Kind::Decoder => "Decoder self-attention",
            Kind::Cross => "Cross-attention",
        }
    }

    /// What rows and columns are.
    pub fn axes(self) -> &'static str {
        match self {
            Kind::Encoder => "rows: source tokens; columns: the source tokens they look at",
            Kind::Decoder => {
                "rows: target tokens read; columns: what they look at, never the future"
            }
            Kind::Cross => "rows: target tokens written; columns: the source tokens looked at",
        }
    }
}

impl Record {
    /// The layers of a kind, each with its heads.
    pub fn layers(&self, kind: Kind) -> &[Vec<Map>] {
        match kind {
            Kind::Encoder => &self.encoder,
            Kind::Decoder => &self.decoder,
            Kind::Cross => &self.cross,
        }
    }

    /// The queries of a kind: the rows of its maps.
    pub fn queries(&self, kind: Kind) -> &Side {
        match kind {
            Kind::Encoder => &self.source,
            Kind::Decoder => &self.read,
            Kind::Cross => &self.written,
        }
    }

    /// The keys of a kind: the columns of its maps.
    pub fn keys(&self, kind: Kind) -> &Side {
        match kind {
            Kind::Decoder => &self.read,
            Kind::Encoder | Kind::Cross => &self.source,
        }
    }

    /// The mean over the heads of a layer.
    pub fn mean(&self, kind: Kind, layer: usize) -> Map {
        Map::mean(&self.layers(kind)[layer]).expect("a layer has heads, as `check` made sure")
    }

    /// Attention rollout over the layers up to this one; see [`crate::rollout`].
    pub fn rollout(&self, kind: Kind, layer: usize) -> Map {
        let means = |kind| -> Vec<Map> {
            let count = self.layers(kind).len();
            (0..count).map(|layer| self.mean(kind, layer)).collect()
        };
        match kind {
            Kind::Encoder | Kind::Decoder => rollout::within(&means(kind)[..=layer]),
            Kind::Cross => {
                let own = if self.decoder.is_empty() {
                    // What a recurrence takes from where is not known: positions are not mixed.
                    vec![Map::identity(self.written.len()); layer + 1]
                } else {
                    means(Kind::Decoder)
                };
                rollout::across(
                    &means(Kind::Encoder),
                    &own[..=layer],
                    &means(Kind::Cross)[..=layer],
                )
            }
        }
    }

    /// Checks that tokens, weights and steps fit together.
    pub fn check(self) -> Result<Self> {
        let shape = |what: String, expected: String, found: String| {
            Err(PictureError::Shape {
                what,
                expected,
                found,
            })
        };
        let positions = self.written.len();
        if self.read.len() != positions || self.steps.len() != positions {
            let found = format!("{} and {}", self.read.len(), self.steps.len());
            return shape("tokens read and steps".into(), positions.to_string(), found);
        }
        let both = !self.decoder.is_empty() && !self.cross.is_empty();
        if both && self.decoder.len() != self.cross.len() {
            let (expected, found) = (self.decoder.len(), self.cross.len());
            return shape(
                "cross-attention layers".into(),
                expected.to_string(),
                found.to_string(),
            );
        }
        for kind in Kind::ALL {
            let size = (self.queries(kind).len(), self.keys(kind).len());
            let layers = self.layers(kind);
            if layers.is_empty() && Kind::ALL.iter().any(|kind| !self.layers(*kind).is_empty()) {
                continue;
            }
            if layers.is_empty() || layers.iter().any(|heads| heads.len() != layers[0].len()) {
                let expected = "layers with equally many heads".into();
                return shape(
                    kind.title().into(),
                    expected,
                    format!("{} layers", layers.len()),
                );
            }
            for map in layers.iter().flatten() {
                if (map.rows(), map.cols()) != size {
                    let found = format!("{} x {}", map.rows(), map.cols());
                    return shape(
                        kind.title().into(),
                        format!("{} x {}", size.0, size.1),
                        found,
                    );
                }
            }
        }
        Ok(self)
    }
}

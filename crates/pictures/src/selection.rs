//! What is shown of a record: which kinds of attention, which layers, which heads, tokens or words.
//!
//! The result is a grid of maps for each kind, which [`crate::sheet`] draws, [`crate::terminal`] prints
//! and [`crate::json`] writes: an option means the same everywhere.

use crate::error::{PictureError, Result};
use crate::map::Map;
use crate::record::{Kind, Record, Side};

/// What to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// In this order.
    pub kinds: Vec<Kind>,
    /// One layer, from 1, or all.
    pub layer: Option<usize>,
    /// Which heads of a layer.
    pub heads: Heads,
    /// What rows and columns stand for.
    pub unit: Unit,
}

/// Which heads of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heads {
    /// Every one.
    All,
    /// This one, from 1.
    One(usize),
    /// Their mean.
    Mean,
    /// Attention rollout over the layers up to the chosen one, or over all.
    Rollout,
}

/// What rows and columns stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Tokens, as the model gets them.
    Tokens,
    /// Words; subwords are merged.
    Words,
}

/// The maps of one kind: a row for each layer, a column for each head.
#[derive(Debug, Clone)]
pub struct Section {
    /// Which kind.
    pub kind: Kind,
    /// Labels of the maps' rows.
    pub queries: Vec<String>,
    /// Labels of the maps' columns.
    pub keys: Vec<String>,
    /// From the bottom of the stack.
    pub layers: Vec<Row>,
}

/// The maps of one layer.
#[derive(Debug, Clone)]
pub struct Row {
    /// `layer 1`, or `layers 1 to 6`.
    pub title: String,
    /// The layer's number, from 1.
    pub layer: usize,
    /// The maps, each with its title: `head 1`, `mean of 8 heads`, `rollout`.
    pub maps: Vec<(String, Map)>,
}

impl Selection {
    /// Takes it from a record.
    pub fn of(&self, record: &Record) -> Result<Vec<Section>> {
        let section = |kind| self.section(record, kind);
        self.kinds(record)?.into_iter().map(section).collect()
    }

    /// The kinds that the model has; an error if none is left.
    pub fn kinds(&self, record: &Record) -> Result<Vec<Kind>> {
        let has = |kind: &Kind| !record.layers(*kind).is_empty();
        let kinds: Vec<Kind> = self.kinds.iter().copied().filter(has).collect();
        if kinds.is_empty() {
            let titles = |kinds: Vec<Kind>| {
                let titles: Vec<String> = kinds
                    .iter()
                    .map(|kind| kind.title().to_lowercase())
                    .collect();
                titles.join(" and ")
            };
            return Err(PictureError::NoSuchAttention {
                asked: titles(self.kinds.clone()),
                there: titles(Kind::ALL.into_iter().filter(has).collect()),
            });
        }
        Ok(kinds)
    }

    fn section(&self, record: &Record, kind: Kind) -> Result<Section> {
        let (queries, keys) = (record.queries(kind), record.keys(kind));
        let (query_words, key_words) = (queries.word_of_token(), keys.word_of_token());
        let mut layers = Vec::new();
        for layer in self.layers(record, kind)? {
            let mut maps = self.maps(record, kind, layer)?;
            if self.unit == Unit::Words {
                for (_, map) in &mut maps {
                    *map = map.merged(&query_words, &key_words);
                }
            }
            let title = match self.heads {
                Heads::Rollout if layer > 0 => format!("layers 1 to {}", layer + 1),
                _ => format!("layer {}", layer + 1),
            };
            layers.push(Row {
                title,
                layer: layer + 1,
                maps,
            });
        }
        Ok(Section {
            kind,
            queries: self.labels(queries),
            keys: self.labels(keys),
            layers,
        })
    }

    /// Indices of the layers, from 0.
    fn layers(&self, record: &Record, kind: Kind) -> Result<Vec<usize>> {
        let last = record.layers(kind).len();
        match (self.layer, self.heads) {
            (Some(asked), _) if (1..=last).contains(&asked) => Ok(vec![asked - 1]),
            (Some(asked), _) => Err(PictureError::NoSuchLayer {
                kind: part(kind),
                asked,
                last,
            }),
            // The last one holds all others.
            (None, Heads::Rollout) => Ok(vec![last - 1]),
            (None, _) => Ok((0..last).collect()),
        }
    }

    fn maps(&self, record: &Record, kind: Kind, layer: usize) -> Result<Vec<(String, Map)>> {
        let heads = &record.layers(kind)[layer];
        let title = |head: usize| format!("head {head}");
        Ok(match self.heads {
            Heads::All => (1..).map(title).zip(heads.iter().cloned()).collect(),
            Heads::One(asked) => match asked.checked_sub(1).and_then(|head| heads.get(head)) {
                Some(map) => vec![(title(asked), map.clone())],
                None => {
                    return Err(PictureError::NoSuchHead {
                        kind: part(kind),
                        asked,
                        last: heads.len(),
                    });
                }
            },
            Heads::Mean => {
                let title = format!("mean of {} heads", heads.len());
                vec![(title, record.mean(kind, layer))]
            }
            Heads::Rollout => vec![("rollout".to_owned(), record.rollout(kind, layer))],
        })
    }

    fn labels(&self, side: &Side) -> Vec<String> {
        match self.unit {
            Unit::Tokens => side.tokens.iter().map(|token| token.text.clone()).collect(),
            Unit::Words => side.words.clone(),
        }
    }
}

fn part(kind: Kind) -> &'static str {
    match kind {
        Kind::Encoder => "encoder",
        Kind::Decoder => "decoder",
        Kind::Cross => "decoder's cross-attention",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn selection(heads: Heads, layer: Option<usize>) -> Selection {
        Selection {
            kinds: Kind::ALL.to_vec(),
            layer,
            heads,
            unit: Unit::Tokens,
        }
    }

    #[test]
    fn every_layer_and_head_is_there_unless_some_are_chosen() {
        let record = sample::record(7, 5, 3, 4);
        let shape = |heads, layer| -> Vec<(usize, usize)> {
            let sections = selection(heads, layer).of(&record).unwrap();
            let shape = |section: &Section| (section.layers.len(), section.layers[0].maps.len());
            sections.iter().map(shape).collect()
        };
        assert_eq!(shape(Heads::All, None), [(3, 4); 3]);
        assert_eq!(shape(Heads::All, Some(2)), [(1, 4); 3]);
        assert_eq!(shape(Heads::One(4), None), [(3, 1); 3]);
        assert_eq!(shape(Heads::Mean, None), [(3, 1); 3]);
        assert_eq!(shape(Heads::Rollout, None), [(1, 1); 3]);
    }

    #[test]
    fn a_recurrent_decoder_shows_the_other_two_kinds_and_says_what_it_lacks() {
        let mut record = sample::record(7, 5, 3, 4);
        record.decoder.clear();
        let record = record.check().unwrap();
        for heads in [Heads::All, Heads::Rollout] {
            let sections = selection(heads, None).of(&record).unwrap();
            let kinds: Vec<Kind> = sections.iter().map(|section| section.kind).collect();
            assert_eq!(kinds, [Kind::Encoder, Kind::Cross]);
            for (_, map) in sections.iter().flat_map(|part| &part.layers[0].maps) {
                let sum: f32 = map.row(0).iter().sum();
                assert!((sum - 1.0).abs() < 1e-4, "{heads:?}: {sum}");
            }
        }
        let only = Selection {
            kinds: vec![Kind::Decoder],
            ..selection(Heads::Mean, None)
        };
        let message = only.of(&record).unwrap_err().to_string();
        assert_eq!(
            message,
            "this model has no decoder self-attention; it has encoder self-attention and cross-attention"
        );
    }

    #[test]
    fn a_decoder_only_model_shows_its_self_attention_and_says_what_it_lacks() {
        let mut record = sample::record(7, 5, 3, 4);
        record.encoder.clear();
        record.cross.clear();
        let record = record.check().unwrap();
        let sections = selection(Heads::Rollout, None).of(&record).unwrap();
        assert_eq!(sections.len(), 1);
        assert_eq!(sections[0].kind, Kind::Decoder);
        let only = Selection {
            kinds: vec![Kind::Cross],
            ..selection(Heads::Mean, None)
        };
        let message = only.of(&record).unwrap_err().to_string();
        assert_eq!(
            message,
            "this model has no cross-attention; it has decoder self-attention"
        );
    }

    #[test]
    fn layers_and_heads_that_are_not_there_are_refused_with_those_that_are() {
        let record = sample::record(7, 5, 3, 4);
        for (heads, layer, expected) in [
            (
                Heads::All,
                Some(4),
                "no layer 4 in the encoder: its layers are 1 to 3",
            ),
            (Heads::All, Some(0), "no layer 0"),
            (
                Heads::One(5),
                None,
                "no head 5 in the encoder: its heads are 1 to 4",
            ),
            (Heads::One(0), None, "no head 0"),
        ] {
            let message = selection(heads, layer).of(&record).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn whatever_is_chosen_rows_sum_to_one() {
        let record = sample::record(9, 8, 3, 4);
        for heads in [Heads::All, Heads::Mean, Heads::Rollout] {
            for unit in [Unit::Tokens, Unit::Words] {
                let selection = Selection {
                    unit,
                    ..selection(heads, None)
                };
                for section in selection.of(&record).unwrap() {
                    for (_, map) in section.layers.iter().flat_map(|row| &row.maps) {
                        assert_eq!(
                            (map.rows(), map.cols()),
                            (section.queries.len(), section.keys.len())
                        );
                        for row in 0..map.rows() {
                            let sum: f32 = map.row(row).iter().sum();
                            assert!((sum - 1.0).abs() < 1e-4, "{heads:?} {unit:?}: {sum}");
                        }
                    }
                }
            }
        }
    }
}

//! The order of ids: which token of another program becomes which of ours.
//!
//! Our first four ids are `<s> </s> <blank> <unk>` in every vocabulary (`attentive_text::special`); the others follow
//! in the other program's order. So the rows of embeddings and of the output are put in another order. What the other
//! program lacks gets a row of zeros, and so small a bias in the output that it adds exactly nothing to a softmax.

use std::collections::HashSet;
use std::path::Path;

use attentive_text::SentencePiece;
use attentive_text::special::{BOS, EOS, PAD, SPECIALS, UNK};

use crate::error::{ConvertError, Result};

/// The output bias of tokens that the other program does not predict.
pub(super) const NEVER: f32 = -1e9;

/// What a decoder of another program reads first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// A vector of zeros (Marian).
    Zero,
    /// A token, by its number there. If it is one of the other special tokens (the padding of OPUS-MT, the end of
    /// fairseq), `<s>` is a copy of it.
    Token(u32),
    /// A copy of a token that may be predicted, too.
    CopyOf(u32),
}

/// The numbers of another program's special tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Specials {
    pub start: Start,
    pub end: u32,
    pub padding: Option<u32>,
    pub unknown: Option<u32>,
}

/// Where one of our tokens comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    /// A token of the other program.
    Token(usize),
    /// A copy of one, which the other program does not predict as such.
    Copy(usize),
    /// Nowhere.
    Absent,
}

impl Row {
    /// The row of the table whose vector it has.
    pub fn of_embedding(self) -> Option<usize> {
        match self {
            Row::Token(row) | Row::Copy(row) => Some(row),
            Row::Absent => None,
        }
    }
}

/// A vocabulary in the order of our ids.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Order {
    rows: Vec<Row>,
    tokens: Vec<String>,
}

impl Order {
    /// Of a vocabulary in the other program's order. A table may have more rows than the vocabulary has tokens: those
    /// get names that no text gives.
    pub fn new(
        path: &Path,
        mut tokens: Vec<String>,
        rows: usize,
        specials: Specials,
    ) -> Result<Self> {
        if tokens.len() > rows {
            return Err(ConvertError::Unsupported {
                path: path.to_path_buf(),
                place: "the vocabulary".to_string(),
                found: format!("{} tokens for {rows} embeddings", tokens.len()),
                remedy: "use the vocabulary that the model was trained with".to_string(),
            });
        }
        for row in tokens.len()..rows {
            tokens.push(format!("<row {row}>"));
        }
        let Specials {
            start,
            end,
            padding,
            unknown,
        } = specials;
        let others = [Some(end), padding, unknown];
        let mut order = vec![Row::Absent; SPECIALS.len()];
        for (place, id) in [(EOS, Some(end)), (PAD, padding), (UNK, unknown)] {
            if let Some(id) = id {
                order[place as usize] = Row::Token(id as usize);
            }
        }
        order[BOS as usize] = match start {
            Start::Zero => Row::Absent,
            Start::Token(start) if !others.contains(&Some(start)) => Row::Token(start as usize),
            Start::Token(start) | Start::CopyOf(start) => Row::Copy(start as usize),
        };
        let token = |row: &Row| match *row {
            Row::Token(row) => Some(row),
            Row::Copy(_) | Row::Absent => None,
        };
        let used: HashSet<usize> = order.iter().filter_map(token).collect();
        if let Some(id) = order
            .iter()
            .filter_map(|row| row.of_embedding())
            .find(|id| *id >= rows)
        {
            return Err(ConvertError::Unsupported {
                path: path.to_path_buf(),
                place: "the special tokens".to_string(),
                found: format!("token {id} of {rows}"),
                remedy: "use the configuration that the model was trained with".to_string(),
            });
        }
        let mut spellings: Vec<String> = SPECIALS.map(str::to_owned).into();
        let mut seen: HashSet<String> = spellings.iter().cloned().collect();
        for (id, mut token) in tokens.into_iter().enumerate() {
            if used.contains(&id) {
                continue;
            }
            // A token that is spelled like a special one, but is not.
            while !seen.insert(token.clone()) {
                token.push('\'');
            }
            order.push(Row::Token(id));
            spellings.push(token);
        }
        Ok(Self {
            rows: order,
            tokens: spellings,
        })
    }

    /// Of a SentencePiece file whose own ids are those of the model, as in Marian.
    pub fn of_sentencepiece(
        path: &Path,
        file: &SentencePiece,
        rows: usize,
        start: Start,
    ) -> Result<Self> {
        let ids = file.ids();
        if ids.len() != rows {
            return Err(ConvertError::Unsupported {
                path: path.to_path_buf(),
                place: "the vocabulary".to_string(),
                found: format!("{} pieces for {rows} embeddings", ids.len()),
                remedy: "use the vocabulary that the model was trained with".to_string(),
            });
        }
        let vocab = ids
            .iter()
            .max()
            .map_or(0, |most| *most as usize + 1)
            .max(SPECIALS.len());
        let mut order = vec![Row::Absent; vocab];
        for (row, &id) in ids.iter().enumerate() {
            order[id as usize] = Row::Token(row);
        }
        if order[EOS as usize] == Row::Absent {
            return Err(ConvertError::Unsupported {
                path: path.to_path_buf(),
                place: "the vocabulary".to_string(),
                found: "no piece </s>".to_string(),
                remedy: "use the vocabulary that the model was trained with".to_string(),
            });
        }
        order[BOS as usize] = match start {
            Start::Zero => Row::Absent,
            Start::Token(row) | Start::CopyOf(row) => Row::Copy(row as usize),
        };
        let tokens = (0..vocab).map(|id| format!("{id}")).collect();
        Ok(Self {
            rows: order,
            tokens,
        })
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The spellings, in the order of our ids.
    pub fn tokens(&self) -> Vec<String> {
        self.tokens.clone()
    }

    /// Our ids of the other program's tokens.
    pub fn ids(&self, rows: usize) -> Vec<Option<u32>> {
        let mut ids = vec![None; rows];
        for (id, row) in (0..).zip(&self.rows) {
            if let Row::Token(row) = *row {
                ids[row] = Some(id);
            }
        }
        ids
    }

    /// The output's bias in the order of our ids; zeros where the other program has none. Tokens in `silent` are
    /// never predicted there.
    pub fn bias(&self, values: Option<&[f32]>, silent: &[u32]) -> Vec<f32> {
        let of_row = |row: &Row| match *row {
            Row::Token(row) if silent.contains(&(row as u32)) => NEVER,
            Row::Token(row) => values.map_or(0.0, |values| values[row]),
            Row::Copy(_) | Row::Absent => NEVER,
        };
        self.rows.iter().map(of_row).collect()
    }
}

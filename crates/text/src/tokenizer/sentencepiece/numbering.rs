//! Which id a piece has, and what an id stands for.
//!
//! A SentencePiece file numbers its own pieces; then our ids are the special tokens and the other pieces in the
//! file's order. Or a vocabulary of another order and size comes beside the file, as with OPUS-MT
//! models: then pieces are looked up in it as strings, as the Marian tokenizer of `transformers` does, and a
//! text may begin with a language token such as `>>fra<<`.

use std::collections::HashMap;

use super::byte_piece;
use super::model_file::{ModelFile, PieceKind};
use crate::special::{BOS, EOS, PAD, SPECIALS, UNK};
use crate::tokenizer::vocabulary::Vocabulary;

/// Where the ids come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The pieces of the file.
    File,
    /// A vocabulary beside the file.
    Vocabulary,
}

/// The ids of pieces.
#[derive(Debug)]
pub(super) struct Numbering {
    origin: Origin,
    vocabulary: Vocabulary,
    /// What each of our ids stands for.
    kinds: Vec<PieceKind>,
    /// Our ids of the file's pieces.
    ids: Vec<u32>,
    /// The ids of the 256 bytes, for models that spell unknown text in bytes.
    byte_ids: Option<Box<[u32]>>,
}

impl Numbering {
    /// The specials, then the other pieces in the order of the file.
    pub fn of_file(file: &ModelFile) -> Result<Self, String> {
        let mut tokens: Vec<String> = SPECIALS.map(str::to_owned).into();
        let mut kinds = special_kinds();
        let mut ids = Vec::with_capacity(file.pieces.len());
        for (text, kind) in pieces(file) {
            let special = special_id(file, text, kind);
            ids.push(special.unwrap_or(tokens.len() as u32));
            if special.is_none() {
                tokens.push(text.to_owned());
                kinds.push(kind);
            }
        }
        let vocabulary = Vocabulary::new(tokens)?;
        let byte_id = |byte| {
            let piece = byte_piece(byte);
            let id = vocabulary.id(&piece);
            id.ok_or_else(|| format!("it has no piece {piece}"))
        };
        let byte_ids = || (0..=255).map(byte_id).collect();
        Ok(Self {
            origin: Origin::File,
            byte_ids: file.byte_fallback.then(byte_ids).transpose()?,
            vocabulary,
            kinds,
            ids,
        })
    }

    /// The ids of a vocabulary; pieces that it lacks are `<unk>`, and its tokens that are no pieces are text.
    pub fn of_vocabulary(file: &ModelFile, tokens: Vec<String>) -> Result<Self, String> {
        let vocabulary = Vocabulary::new(tokens)?;
        let ids: Vec<u32> = pieces(file)
            .map(|(text, kind)| {
                special_id(file, text, kind).unwrap_or_else(|| vocabulary.id_in_text(text))
            })
            .collect();
        if ids.iter().all(|id| (*id as usize) < SPECIALS.len()) {
            return Err(format!(
                "none of the {} pieces of its SentencePiece model is in its vocabulary of {} tokens, so the two \
                 do not belong together",
                ids.len(),
                vocabulary.len()
            ));
        }
        let by_text: HashMap<&str, PieceKind> = pieces(file).collect();
        let mut kinds = special_kinds();
        let others = vocabulary.tokens().iter().skip(SPECIALS.len());
        kinds.extend(others.map(|token| match by_text.get(token.as_str()) {
            Some(kind) => *kind,
            None => PieceKind::Normal,
        }));
        let byte_id = |byte| vocabulary.id_in_text(&byte_piece(byte));
        Ok(Self {
            origin: Origin::Vocabulary,
            byte_ids: file.byte_fallback.then(|| (0..=255).map(byte_id).collect()),
            vocabulary,
            kinds,
            ids,
        })
    }

    /// Where the ids come from.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The tokens of the ids.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// What an id stands for, if it is one.
    pub fn kind(&self, id: u32) -> Option<PieceKind> {
        self.kinds.get(id as usize).copied()
    }

    /// Our ids of the file's pieces.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Whether unknown text is spelled in bytes.
    pub fn has_bytes(&self) -> bool {
        self.byte_ids.is_some()
    }

    /// Appends the id of a piece, or of each byte of an unknown one.
    pub fn push_ids(&self, piece: &str, known: bool, ids: &mut Vec<u32>) {
        match (&self.byte_ids, self.origin) {
            (Some(byte_ids), _) if !known => {
                ids.extend(piece.bytes().map(|byte| byte_ids[usize::from(byte)]));
            }
            (_, Origin::File) if !known => ids.push(UNK),
            _ => ids.push(self.id_in_text(piece)),
        }
    }

    /// The id of a language token that the text begins with, and the rest of the text. A token is one only
    /// when a vocabulary beside the file has it.
    pub fn language_token<'t>(&self, text: &'t str) -> (Option<u32>, &'t str) {
        let found = || {
            let end = text.strip_prefix(">>")?.find("<<")? + ">>".len() + "<<".len();
            let (token, rest) = text.split_at(end);
            Some((self.vocabulary.id(token)?, rest))
        };
        match (self.origin, text.starts_with(">>")) {
            (Origin::Vocabulary, true) => {
                found().map_or((None, text), |(id, rest)| (Some(id), rest))
            }
            _ => (None, text),
        }
    }

    /// Text that spells a control piece or, within a text, a language token, stays text.
    fn id_in_text(&self, piece: &str) -> u32 {
        let id = self.vocabulary.id_in_text(piece);
        let is_language = || piece.starts_with(">>") && piece.ends_with("<<");
        match self.kinds[id as usize] {
            PieceKind::Control => UNK,
            _ if self.origin == Origin::Vocabulary && is_language() => UNK,
            _ => id,
        }
    }
}

fn pieces(file: &ModelFile) -> impl Iterator<Item = (&str, PieceKind)> {
    let pieces = file.pieces.iter();
    pieces.map(|piece| (piece.text.as_str(), piece.kind))
}

fn special_kinds() -> Vec<PieceKind> {
    let mut kinds = vec![PieceKind::Control; SPECIALS.len()];
    kinds[UNK as usize] = PieceKind::Unknown;
    kinds
}

fn special_id(file: &ModelFile, text: &str, kind: PieceKind) -> Option<u32> {
    match kind {
        PieceKind::Unknown => Some(UNK),
        PieceKind::Control if text == file.bos => Some(BOS),
        PieceKind::Control if text == file.eos => Some(EOS),
        PieceKind::Control if text == file.pad => Some(PAD),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::SentencePiece;
    use super::*;

    /// A piece of a model file: its text and its type.
    fn piece(text: &str, kind: u8) -> Vec<u8> {
        let message = [&[0x0a, text.len() as u8], text.as_bytes(), &[0x18, kind]].concat();
        [&[0x0a, message.len() as u8][..], &message].concat()
    }

    #[test]
    fn unknown_text_is_looked_up_only_in_a_vocabulary_beside_the_file() {
        // "zz" is unused, so the text "zz" is two unknown characters, which come as one piece.
        let file = [piece("<unk>", 2), piece("▁", 1), piece("zz", 5)].concat();
        let own = SentencePiece::from_bytes(&file, "own.spm").unwrap();
        assert_eq!(own.pieces("zz"), ["▁", "zz"]);
        assert_eq!(own.encode("zz"), [4, UNK]);
        let tokens = ["<s>", "</s>", "<blank>", "<unk>", "▁", "zz"];
        let beside =
            SentencePiece::with_vocabulary(&file, tokens.map(str::to_owned).into()).unwrap();
        assert_eq!(beside.encode("zz"), [4, 5]);
    }
}

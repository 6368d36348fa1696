//! What a SentencePiece `.model` file says: its pieces, how it segments, how it normalizes.
//!
//! `proto` reads the fields, this gives them their names and refuses files that are not usable models.
//! What only a trainer needs is skipped.

use std::collections::HashSet;

use super::normalizer::NormalizerSpec;
use super::proto::Message;

/// The parts of a file that encoding and decoding need.
#[derive(Debug)]
pub(super) struct ModelFile {
    pub pieces: Vec<Piece>,
    pub algorithm: Algorithm,
    /// Whether unknown characters become their bytes.
    pub byte_fallback: bool,
    pub normalizer: NormalizerSpec,
    /// What the decoded text goes through; few files have it.
    pub denormalizer: Option<NormalizerSpec>,
    /// What the piece for unknown text is decoded to.
    pub unknown_surface: String,
    /// The names of the control pieces that frame sentences.
    pub bos: String,
    pub eos: String,
    pub pad: String,
}

/// A piece of the vocabulary.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece {
    pub text: String,
    pub score: f32,
    pub kind: PieceKind,
}

/// What a piece stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceKind {
    Normal,
    Unknown,
    Control,
    /// Always cut out of the text as a whole.
    UserDefined,
    /// In the vocabulary, but never in the output.
    Unused,
    Byte(u8),
}

/// How text is cut into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Unigram,
    Bpe,
    Word,
    Char,
}

impl PieceKind {
    /// Whether text may match the piece.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Normal | Self::UserDefined | Self::Unused)
    }
}

impl ModelFile {
    /// Reads a file's bytes; the error is a phrase that says what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut file = Self {
            pieces: Vec::new(),
            algorithm: Algorithm::Unigram,
            byte_fallback: false,
            normalizer: NormalizerSpec::default(),
            denormalizer: None,
            unknown_surface: " \u{2047} ".to_owned(),
            bos: "<s>".to_owned(),
            eos: "</s>".to_owned(),
            pad: "<pad>".to_owned(),
        };
        let mut message = Message::of_file(bytes);
        while let Some(field) = message.next_field()? {
            match field.number {
                1 => file.pieces.push(Piece::parse(field.message()?, field.at)?),
                2 => file.read_trainer(field.message()?)?,
                3 => read_normalizer(&mut file.normalizer, field.message()?)?,
                5 => {
                    let spec = file.denormalizer.get_or_insert_default();
                    read_normalizer(spec, field.message()?)?;
                }
                _ => {}
            }
        }
        // A denormalizer without a table does nothing, whatever else it says.
        file.denormalizer = file.denormalizer.filter(|spec| !spec.charsmap.is_empty());
        file.check()?;
        Ok(file)
    }

    fn read_trainer(&mut self, mut message: Message<'_>) -> Result<(), String> {
        while let Some(field) = message.next_field()? {
            match field.number {
                3 => {
                    self.algorithm = match field.number()? {
                        1 => Algorithm::Unigram,
                        2 => Algorithm::Bpe,
                        3 => Algorithm::Word,
                        4 => Algorithm::Char,
                        other => {
                            return Err(format!("its model type is {other}, expected 1 to 4"));
                        }
                    }
                }
                24 => self.normalizer.whitespace_as_suffix = field.flag()?,
                35 => self.byte_fallback = field.flag()?,
                44 => self.unknown_surface = field.text()?.to_owned(),
                46 => self.bos = field.text()?.to_owned(),
                47 => self.eos = field.text()?.to_owned(),
                48 => self.pad = field.text()?.to_owned(),
                _ => {}
            }
        }
        Ok(())
    }

    /// Refuses vocabularies that SentencePiece refuses, too.
    fn check(&self) -> Result<(), String> {
        if self.pieces.is_empty() {
            return Err("it has no pieces".to_owned());
        }
        let mut seen = HashSet::with_capacity(self.pieces.len());
        for piece in &self.pieces {
            if !seen.insert(piece.text.as_str()) {
                return Err(format!("it has the piece {:?} twice", piece.text));
            }
        }
        let count = |is: fn(PieceKind) -> bool| {
            let kinds = self.pieces.iter().map(|piece| piece.kind);
            kinds.filter(|kind| is(*kind)).count()
        };
        let unknown = count(|kind| kind == PieceKind::Unknown);
        if unknown != 1 {
            return Err(format!(
                "it has {unknown} pieces for unknown text, expected 1"
            ));
        }
        if !self.pieces.iter().any(|piece| piece.kind.is_text()) {
            return Err("it has no pieces of text".to_owned());
        }
        let expected = if self.byte_fallback { 256 } else { 0 };
        let bytes = count(|kind| matches!(kind, PieceKind::Byte(_)));
        if bytes != expected {
            return Err(format!(
                "it has {bytes} pieces for bytes, expected {expected}"
            ));
        }
        Ok(())
    }
}

fn read_normalizer(spec: &mut NormalizerSpec, mut message: Message<'_>) -> Result<(), String> {
    while let Some(field) = message.next_field()? {
        match field.number {
            2 => spec.charsmap = field.bytes()?.to_vec(),
            3 => spec.add_dummy_prefix = field.flag()?,
            4 => spec.remove_extra_whitespaces = field.flag()?,
            5 => spec.escape_whitespaces = field.flag()?,
            _ => {}
        }
    }
    Ok(())
}

impl Piece {
    fn parse(mut message: Message<'_>, at: usize) -> Result<Self, String> {
        let mut piece = Self {
            text: String::new(),
            score: 0.0,
            kind: PieceKind::Normal,
        };
        while let Some(field) = message.next_field()? {
            match field.number {
                1 => piece.text = field.text()?.to_owned(),
                2 => piece.score = field.float()?,
                3 => piece.kind = kind(field.number()?, field.at)?,
                _ => {}
            }
        }
        if piece.text.is_empty() {
            return Err(format!("byte {at}: found a piece without text"));
        }
        if piece.kind == PieceKind::Byte(0) {
            let digits = piece.text.strip_prefix("<0x");
            let digits = digits.and_then(|rest| rest.strip_suffix('>'));
            let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            let byte = byte.ok_or_else(|| {
                let text = &piece.text;
                format!(
                    "byte {at}: the piece {text:?} stands for a byte, expected <0x00> to <0xFF>"
                )
            })?;
            piece.kind = PieceKind::Byte(byte);
        }
        if !piece.score.is_finite() {
            return Err(format!(
                "byte {at}: the score of {:?} is {}, expected a finite number",
                piece.text, piece.score
            ));
        }
        Ok(piece)
    }
}

fn kind(number: u64, at: usize) -> Result<PieceKind, String> {
    Ok(match number {
        1 => PieceKind::Normal,
        2 => PieceKind::Unknown,
        3 => PieceKind::Control,
        4 => PieceKind::UserDefined,
        5 => PieceKind::Unused,
        // Which byte is in the piece's text.
        6 => PieceKind::Byte(0),
        _ => {
            return Err(format!(
                "byte {at}: the piece's type is {number}, expected 1 to 6"
            ));
        }
    })
}

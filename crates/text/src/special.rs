//! The four ids that every vocabulary starts with, whatever the tokenizer, and where they stand in a
//! sentence: every source and target gets its `<s>` and `</s>` here.
//!
//! They are constants and not settings, so that masks, losses and the search (all further down the
//! data path) can name padding and end of sentence without asking a tokenizer.

/// `<s>`: the decoder's first input; never predicted.
pub const BOS: u32 = 0;
/// `</s>`: ends every source and every target sentence.
pub const EOS: u32 = 1;
/// `<blank>`: padding; masked out of attention and out of the loss.
pub const PAD: u32 = 2;
/// `<unk>`: a word that the vocabulary does not hold; subword vocabularies never need it.
pub const UNK: u32 = 3;

/// The spellings of the special tokens, in the order of their ids.
pub const SPECIALS: [&str; 4] = ["<s>", "</s>", "<blank>", "<unk>"];

/// What the encoder reads: the tokens of the source and `</s>`.
pub fn source_ids(tokens: impl Into<Vec<u32>>) -> Vec<u32> {
    with_end(tokens)
}

/// What the decoder reads when all tokens of the target are given (teacher forcing): `<s>` and the tokens.
pub fn decoder_input(tokens: &[u32]) -> Vec<u32> {
    [&[BOS], tokens].concat()
}

/// What the decoder is to predict then: the tokens and `</s>`.
pub fn decoder_output(tokens: impl Into<Vec<u32>>) -> Vec<u32> {
    with_end(tokens)
}

/// The target as training has it, `<s>`, the tokens and `</s>`: all but the last is the
/// [`decoder_input`], all but the first the [`decoder_output`].
pub fn target_ids(tokens: &[u32]) -> Vec<u32> {
    [&[BOS], tokens, &[EOS]].concat()
}

fn with_end(tokens: impl Into<Vec<u32>>) -> Vec<u32> {
    let mut ids = tokens.into();
    ids.push(EOS);
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_finds_its_spelling() {
        assert_eq!(SPECIALS[BOS as usize], "<s>");
        assert_eq!(SPECIALS[EOS as usize], "</s>");
        assert_eq!(SPECIALS[PAD as usize], "<blank>");
        assert_eq!(SPECIALS[UNK as usize], "<unk>");
    }

    #[test]
    fn decoder_input_and_output_are_the_target_shifted_by_one() {
        let tokens = [7, 8, 9];
        let target = target_ids(&tokens);
        assert_eq!(target, [BOS, 7, 8, 9, EOS]);
        assert_eq!(decoder_input(&tokens), target[..4]);
        assert_eq!(decoder_output(tokens), target[1..]);
        assert_eq!(source_ids(tokens), [7, 8, 9, EOS]);
    }
}

//! The four ids that every vocabulary starts with, whatever the tokenizer.
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
}

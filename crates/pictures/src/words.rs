//! Which tokens make up which words, for the view that merges subwords.
//!
//! Words are those of the subword tokenizers' pre-tokenization (GPT-2's pattern): a run of letters, of
//! digits or of other signs, with the space before it. Special tokens are words of their own.

use attentive_text::special::SPECIALS;
use attentive_text::{Tokenizer, TokenizerKind};

use crate::record::{Side, Token};

impl Side {
    /// The tokens with these ids, and the words that they make up.
    pub fn new(tokenizer: &Tokenizer, ids: &[u32]) -> Self {
        let tokens = tokens(tokenizer, ids);
        let words = tokens
            .chunk_by(|a, b| a.word == b.word)
            .map(|pieces| text(tokenizer, pieces))
            .collect();
        Self { tokens, words }
    }
}

fn tokens(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<Token> {
    let whole = matches!(
        tokenizer.kind(),
        TokenizerKind::Word | TokenizerKind::Tabs | TokenizerKind::Spaces
    );
    let mut tokens: Vec<Token> = Vec::with_capacity(ids.len());
    for &id in ids {
        let text = tokenizer.label(id);
        let word = match tokens.last() {
            None => 0,
            Some(last) => last.word + usize::from(whole || begins_word(last, id, &text)),
        };
        tokens.push(Token { id, text, word });
    }
    tokens
}

/// The pieces of a word decoded together, so that bytes become characters again.
fn text(tokenizer: &Tokenizer, pieces: &[Token]) -> String {
    match pieces {
        [one] if is_special(one.id) => one.text.clone(),
        _ => {
            let ids: Vec<u32> = pieces.iter().map(|piece| piece.id).collect();
            tokenizer.decode(&ids).trim().to_owned()
        }
    }
}

fn begins_word(last: &Token, id: u32, text: &str) -> bool {
    if is_special(id) || is_special(last.id) || text.starts_with('▁') {
        return true;
    }
    // A space that is a piece of its own goes with what follows.
    if last.text.chars().all(|character| character == '▁') {
        return false;
    }
    // Bytes of an unfinished character: whatever it will be, it goes on.
    if text.starts_with("<0x") || last.text.starts_with("<0x") {
        return false;
    }
    match (
        last.text.chars().next_back().map(class),
        text.chars().next().map(class),
    ) {
        (Some(before), Some(after)) => before != after,
        _ => false,
    }
}

fn is_special(id: u32) -> bool {
    (id as usize) < SPECIALS.len()
}

/// Letters with letters, digits with digits, signs with signs.
fn class(character: char) -> u8 {
    match character {
        c if c.is_alphabetic() => 0,
        c if c.is_numeric() => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use attentive_text::TokenizerOptions;
    use attentive_text::special::{BOS, EOS};

    use super::*;

    fn trained(kind: TokenizerKind, vocab_size: usize) -> Tokenizer {
        let options = TokenizerOptions {
            kind,
            vocab_size,
            ..Default::default()
        };
        let corpus = ["ein Hund", "ein Haus", "zwei Hunde", "ein Hund am See"];
        Tokenizer::train(&options, &mut corpus.into_iter()).unwrap()
    }

    fn words_of(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
        let mut ids = vec![BOS];
        ids.extend(tokenizer.encode(text));
        ids.push(EOS);
        Side::new(tokenizer, &ids).words
    }

    #[test]
    fn subwords_become_the_words_of_the_text() {
        let bpe = trained(TokenizerKind::Bpe, 270);
        assert_eq!(
            words_of(&bpe, "Zwei Hunde, 12 Katzen."),
            ["<s>", "Zwei", "Hunde", ",", "12", "Katzen", ".", "</s>"]
        );
    }

    #[test]
    fn an_emoji_cut_into_bytes_is_one_word_again() {
        let bpe = trained(TokenizerKind::Bpe, 270);
        assert!(bpe.encode("👍").len() > 1);
        assert_eq!(words_of(&bpe, "ja 👍"), ["<s>", "ja", "👍", "</s>"]);
    }

    #[test]
    fn tokens_of_a_word_tokenizer_are_words() {
        let words = trained(TokenizerKind::Word, 0);
        assert_eq!(words_of(&words, "ein Hund"), ["<s>", "ein", "Hund", "</s>"]);
    }
}

//! The byte alphabet under the subword tokenizers, and the cut before them.
//!
//! Every byte is written as one visible character (the table of GPT-2), so a subword is a plain
//! string of such characters and every Unicode text has a spelling. Text is first cut into
//! pre-tokens, each a run of letters, of digits or of other signs with one space before it;
//! subwords never reach over such a cut. So no subword mixes letters and signs, and none can spell
//! a special token such as `</s>`.

use std::sync::LazyLock;

use regex::Regex;

/// The characters of the bytes 0 to 255, in that order.
pub(super) static ALPHABET: LazyLock<[char; 256]> = LazyLock::new(|| {
    let mut next_free = 0x100;
    std::array::from_fn(|byte| {
        let byte = byte as u8;
        if is_visible(byte) {
            return char::from(byte);
        }
        let stand_in = char::from_u32(next_free).expect("below the surrogates");
        next_free += 1;
        stand_in
    })
});

/// The spelling of some bytes in the alphabet.
pub(super) fn spell(bytes: &[u8]) -> String {
    let mut spelling = String::with_capacity(bytes.len() * 2);
    spell_into(bytes, &mut spelling);
    spelling
}

/// Appends the spelling of some bytes, for loops that reuse one string.
pub(super) fn spell_into(bytes: &[u8], spelling: &mut String) {
    spelling.extend(bytes.iter().map(|byte| ALPHABET[usize::from(*byte)]));
}

/// The bytes of a spelling, or nothing if a character is not of the alphabet.
pub(super) fn bytes_of(spelling: &str) -> Option<Box<[u8]>> {
    spelling.chars().map(byte_of).collect()
}

/// The pre-tokens of a text; together they are the whole text.
///
/// This is GPT-2's pattern, whose last part looks ahead: of several spaces before a word the last
/// goes with the word. The `regex` crate has no look-ahead, and is much faster for it, so that
/// part is done by hand.
pub(super) fn pre_tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let found = PATTERN.find_at(text, at)?;
        let mut token = found.as_str();
        let last = token.chars().next_back()?;
        let more_follows = found.end() < text.len();
        if last.is_whitespace() && more_follows && token.len() > last.len_utf8() {
            token = &token[..token.len() - last.len_utf8()];
        }
        at += token.len();
        Some(token)
    })
}

static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"'(?:[stmd]|re|ve|ll)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+")
        .expect("a valid pattern")
});

fn is_visible(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}

fn byte_of(character: char) -> Option<u8> {
    static BYTES: LazyLock<Vec<Option<u8>>> = LazyLock::new(|| {
        let mut bytes = vec![None; 0x200];
        for (byte, character) in (0..=255).zip(ALPHABET.iter()) {
            bytes[*character as usize] = Some(byte);
        }
        bytes
    });
    BYTES.get(character as usize).copied().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn cut(text: &str) -> Vec<&str> {
        pre_tokens(text).collect()
    }

    #[test]
    fn the_alphabet_is_that_of_the_library() {
        let ours: HashSet<char> = ALPHABET.iter().copied().collect();
        let theirs = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet();
        assert_eq!(ours.len(), 256);
        assert!(theirs.iter().all(|character| ours.contains(character)));
        assert_eq!((ALPHABET[32], ALPHABET[10], ALPHABET[65]), ('Ġ', 'Ċ', 'A'));
    }

    #[test]
    fn every_byte_is_spelled_and_read_back() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(bytes_of(&spell(&all)).as_deref(), Some(&all[..]));
        assert_eq!(bytes_of("Ġa 語"), None);
    }

    #[test]
    fn letters_digits_and_signs_are_cut_apart() {
        assert_eq!(
            cut(" Zoë's 12th, 3.5!?"),
            [" Zoë", "'s", " 12", "th", ",", " 3", ".", "5", "!?"]
        );
        assert_eq!(
            cut("we'll you're x'y"),
            ["we", "'ll", " you", "'re", " x", "'", "y"]
        );
        assert_eq!(cut("</s><unk>"), ["</", "s", "><", "unk", ">"]);
        assert_eq!(cut(""), Vec::<&str>::new());
    }

    #[test]
    fn the_last_of_several_spaces_goes_with_the_word() {
        assert_eq!(cut("a   b"), ["a", "  ", " b"]);
        assert_eq!(cut("a \t\n\u{a0}b"), ["a", " \t\n", "\u{a0}", "b"]);
        assert_eq!(cut("a  "), ["a", "  "]);
        assert_eq!(cut("\n"), ["\n"]);
        assert_eq!(cut("\na"), ["\n", "a"]);
    }
}

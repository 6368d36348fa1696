//! Word alignments from the weights of cross-attention.
//!
//! Every target token is linked with the source token that its step looked at most; tokens belong to
//! words, and words are what spaces separate in the text. (As in the Pharaoh format, `0-0 1-2`.)

use std::collections::BTreeSet;
use std::ops::Range;

use attentive_text::Tokenizer;
use attentive_text::markup::units_of_tokens;

/// For each token the number of the word it belongs to, counted from 0.
///
/// `text` is what was tokenized, where there is one. A text with as many words as tokens was tokenized
/// before, and each token is a word. Otherwise words are those of the decoded tokens, which are the
/// same, but for word tokenizers and unusual spaces before punctuation.
pub(super) fn words_of(tokenizer: &Tokenizer, tokens: &[u32], text: Option<&str>) -> Vec<usize> {
    if text.is_some_and(|text| text.split_whitespace().count() == tokens.len()) {
        return (0..tokens.len()).collect();
    }
    tokenizer.word_ids(tokens)
}

/// For each token the units that it writes (see [`attentive_text::markup::units`]); `text` is what was tokenized, or
/// what the tokens are decoded to.
pub(super) fn units_of(tokenizer: &Tokenizer, tokens: &[u32], text: &str) -> Vec<Range<usize>> {
    units_of_tokens(&tokenizer.char_ends(tokens), text)
}

/// Links between the units of tokens, for tags that follow their words: every source token is linked with the target
/// token whose step looked at it most. That is the other direction than that of [`links`], and finds more of the
/// words that belong to a source word with fewer errors.
pub(super) fn unit_links(
    weights: &[f32],
    src: Range<usize>,
    src_units: &[Range<usize>],
    tgt_units: &[Range<usize>],
) -> Vec<(usize, usize)> {
    let mut links = BTreeSet::new();
    let Some(src_len) = weights.len().checked_div(tgt_units.len() + 1) else {
        return Vec::new();
    };
    let mut strongest = vec![(f32::NEG_INFINITY, 0); src.len()];
    for (tgt, row) in weights
        .chunks_exact(src_len.max(1))
        .take(tgt_units.len())
        .enumerate()
    {
        for (best, &weight) in strongest.iter_mut().zip(&row[src.clone()]) {
            if weight > best.0 && !tgt_units[tgt].is_empty() {
                *best = (weight, tgt);
            }
        }
    }
    for ((weight, tgt), src_units) in strongest.into_iter().zip(src_units) {
        if weight > f32::NEG_INFINITY {
            for src_unit in src_units.clone() {
                links.extend(tgt_units[tgt].clone().map(|tgt_unit| (src_unit, tgt_unit)));
            }
        }
    }
    links.into_iter().collect()
}

/// The source token that a step looked at most.
fn strongest(row: &[f32]) -> Option<usize> {
    let weights = row.iter().enumerate();
    let strongest = weights.max_by(|(i, a), (j, b)| a.total_cmp(b).then(j.cmp(i)));
    strongest.map(|(token, _)| token)
}

/// Pairs of source word and target word, each once, in order. `weights` are
/// `[target tokens + 1, source tokens]`, and the source tokens of words are those in the range `src`: nothing is
/// linked to `</s>` on either side, nor to what else is around a source.
pub(super) fn links(
    weights: &[f32],
    src: Range<usize>,
    src_words: &[usize],
    tgt_words: &[usize],
) -> Vec<(usize, usize)> {
    let mut links = BTreeSet::new();
    let Some(src_len) = weights.len().checked_div(tgt_words.len() + 1) else {
        return Vec::new();
    };
    for (row, &tgt_word) in weights.chunks_exact(src_len.max(1)).zip(tgt_words) {
        let src_word = strongest(&row[src.clone()]).and_then(|token| src_words.get(token));
        links.extend(src_word.map(|&src_word| (src_word, tgt_word)));
    }
    links.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use attentive_text::{TokenizerKind, TokenizerOptions};

    use super::*;

    fn tokenizer(kind: TokenizerKind, vocab_size: usize) -> Tokenizer {
        let options = TokenizerOptions {
            kind,
            vocab_size,
            min_frequency: 1,
            lowercase: false,
        };
        let text = "Ein Hund rennt . Ein Hund rennt , rennt";
        Tokenizer::train(&options, &mut [text].into_iter()).expect("some words")
    }

    #[test]
    fn subwords_belong_to_the_word_that_spaces_delimit() {
        let bpe = tokenizer(TokenizerKind::Bpe, 270);
        let text = "Ein Hund, rennt.";
        let tokens = bpe.encode(text);
        let words = words_of(&bpe, &tokens, Some(text));
        assert!(tokens.len() > 3, "there should be more tokens than words");
        for (end, &word) in (1..).zip(&words) {
            let begun = bpe.decode(&tokens[..end]);
            assert_eq!(word + 1, begun.split_whitespace().count(), "{begun:?}");
        }
        assert_eq!(words.last(), Some(&2));
    }

    #[test]
    fn text_that_was_tokenized_before_keeps_its_words() {
        let word = tokenizer(TokenizerKind::Word, 0);
        let cut = "Ein Hund , rennt .";
        assert_eq!(
            words_of(&word, &word.encode(cut), Some(cut)),
            [0, 1, 2, 3, 4]
        );
        let plain = "Ein Hund, rennt.";
        assert_eq!(
            words_of(&word, &word.encode(plain), Some(plain)),
            [0, 1, 1, 2, 2]
        );
    }

    #[test]
    fn every_target_token_is_linked_with_what_it_looked_at_most() {
        // Three source tokens (two words) and </s>; two target tokens (one word each) and </s>.
        let weights = [
            0.1, 0.2, 0.3, 0.9, // the end does not count: token 2, word 1
            0.3, 0.3, 0.1, 0.3, // of equals the first: token 0, word 0
            0.0, 0.0, 0.0, 1.0,
        ];
        assert_eq!(links(&weights, 0..3, &[0, 0, 1], &[0, 1]), [(0, 1), (1, 0)]);
        assert!(links(&weights[8..], 0..3, &[0, 0, 1], &[]).is_empty());
        assert!(links(&[], 0..0, &[], &[]).is_empty());
    }
}

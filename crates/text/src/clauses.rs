//! Long sentences cut into pieces, at the ends of clauses where there are some.
//!
//! A model reads at most so many tokens. What is longer is translated piece by piece, and nothing of it is lost. A cut is
//! made where it hurts least: behind a semicolon, colon or dash, behind a comma or bracket, before a conjunction, at any
//! white space, and within a word only if the word alone is too long. Pieces of one sentence are about equally long.
//!
//! Before it on the data path: [`crate::sentences`]. After it: the translator, which joins the translations again.

use std::ops::Range;

use crate::keep;

/// A piece of a sentence; all `text` and `gap` one after the other are the sentence again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The piece.
    pub text: &'a str,
    /// The white space behind it.
    pub gap: &'a str,
    /// What ends with it.
    pub end: End,
}

/// What ends with a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The sentence.
    Sentence,
    /// A clause, or at least a word.
    Clause,
    /// Nothing: a word goes on in the next piece.
    WithinWord,
}

/// Cuts a sentence into pieces of at most `most` tokens each, as `tokens` counts them; into one if it fits. A single
/// character is a piece even if it has more.
///
/// ```
/// use attentive_text::clauses::cut;
///
/// let words = |text: &str| text.split_whitespace().count();
/// let pieces = cut("Es regnet, aber wir gehen spazieren; das tut gut.", 6, words);
/// let texts: Vec<&str> = pieces.iter().map(|piece| piece.text).collect();
/// assert_eq!(texts, ["Es regnet, aber wir gehen spazieren;", "das tut gut."]);
/// ```
pub fn cut(text: &str, most: usize, tokens: impl Fn(&str) -> usize) -> Vec<Piece<'_>> {
    let most = most.max(1);
    let whole = Piece {
        text,
        gap: "",
        end: End::Sentence,
    };
    // A token has at least a byte; some tokenizers add one for the white space before the text, and a mark that stands
    // for something may be longer than that.
    if 2 * text.len() < most || tokens(text) <= most {
        return vec![whole];
    }
    let atoms = atoms(text, most, &tokens);
    let mut pieces = Vec::new();
    let (mut first, mut left) = (0, atoms.iter().map(|atom| atom.tokens).sum::<usize>());
    while first < atoms.len() {
        let mut end = next_cut(&atoms[first..], left, most) + first;
        // Words together may have more tokens than one by one.
        while end > first + 1
            && tokens(&text[atoms[first].text.start..atoms[end - 1].text.end]) > most
        {
            end -= 1;
        }
        let last = &atoms[end - 1];
        left -= atoms[first..end]
            .iter()
            .map(|atom| atom.tokens)
            .sum::<usize>();
        let gap_end = atoms.get(end).map_or(text.len(), |next| next.text.start);
        pieces.push(Piece {
            text: &text[atoms[first].text.start..last.text.end],
            gap: &text[last.text.end..gap_end],
            end: match last.strength {
                _ if end == atoms.len() => End::Sentence,
                Strength::WithinWord => End::WithinWord,
                _ => End::Clause,
            },
        });
        first = end;
    }
    pieces
}

/// What is not cut: a word, or a part of a very long one.
struct Atom {
    text: Range<usize>,
    tokens: usize,
    /// How well a piece may end behind it.
    strength: Strength,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    WithinWord,
    Space,
    Conjunction,
    Comma,
    Clause,
}

/// How many atoms the next piece has: it ends at the best place that is not far from an equal share of what is left.
fn next_cut(atoms: &[Atom], left: usize, most: usize) -> usize {
    if left <= most {
        return atoms.len();
    }
    let share = left.div_ceil(left.div_ceil(most));
    let mut best = (Strength::WithinWord, usize::MAX, 1);
    let mut sum = 0;
    for (count, atom) in (1..).zip(atoms) {
        sum += atom.tokens;
        if sum > most {
            break;
        }
        let far = sum.abs_diff(share);
        let good = if sum * 2 >= share {
            atom.strength
        } else {
            Strength::WithinWord
        };
        if (good, std::cmp::Reverse(far)) > (best.0, std::cmp::Reverse(best.1)) {
            best = (good, far, count);
        }
    }
    best.2
}

fn atoms(text: &str, most: usize, tokens: &impl Fn(&str) -> usize) -> Vec<Atom> {
    let words = unbroken(words(text), text);
    let mut atoms = Vec::new();
    for (number, word) in words.iter().enumerate() {
        let next = words.get(number + 1).map_or("", |next| &text[next.clone()]);
        let strength = strength(&text[word.clone()], next);
        add_atoms(text, word.clone(), most, tokens, &mut atoms);
        if let Some(last) = atoms.last_mut() {
            last.strength = strength;
        }
    }
    atoms
}

/// A word in parts that fit.
fn add_atoms(
    text: &str,
    word: Range<usize>,
    most: usize,
    tokens: &impl Fn(&str) -> usize,
    atoms: &mut Vec<Atom>,
) {
    let count = tokens(&text[word.clone()]);
    if count <= most {
        return atoms.push(Atom {
            text: word,
            tokens: count,
            strength: Strength::WithinWord,
        });
    }
    let mut rest = word;
    while !rest.is_empty() {
        // As many bytes as there may be tokens nearly always fit, and never are much too few.
        let mut end = rest.end.min(rest.start + 8 * most.max(4));
        loop {
            end = text.floor_char_boundary(end);
            let first = text[rest.clone()].chars().next().map_or(1, char::len_utf8);
            end = end.max(rest.start + first);
            let count = tokens(&text[rest.start..end]);
            if count <= most || end == rest.start + first {
                atoms.push(Atom {
                    text: rest.start..end,
                    tokens: count,
                    strength: Strength::WithinWord,
                });
                rest.start = end;
                break;
            }
            end = rest.start + (end - rest.start) / 2;
        }
    }
}

/// Words with something in common that is copied, such as a placeholder with spaces in it, are one word.
fn unbroken(words: Vec<Range<usize>>, text: &str) -> Vec<Range<usize>> {
    let mut spans = keep::spans(text).peekable();
    let mut copied_until = 0;
    let mut joined: Vec<Range<usize>> = Vec::with_capacity(words.len());
    for word in words {
        let end = word.end;
        match joined.last_mut() {
            Some(last) if word.start < copied_until => last.end = end,
            _ => joined.push(word),
        }
        while let Some(span) = spans.next_if(|span| span.start < end) {
            copied_until = copied_until.max(span.end);
        }
    }
    joined
}

/// What white space separates; behind signs that need none, the next word begins at once. White space at the beginning
/// belongs to the first.
fn words(text: &str) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut open = false;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        match words.last_mut() {
            Some(_) if c.is_whitespace() => open = false,
            Some(last) if open => last.end = end,
            _ => {
                words.push(at..end);
                open = true;
            }
        }
        open &= !FULL_WIDTH.contains(&c);
    }
    words
}

/// Signs without white space behind them.
const FULL_WIDTH: [char; 8] = ['、', '，', '；', '：', '。', '！', '？', '।'];

fn strength(word: &str, next: &str) -> Strength {
    let last = word
        .trim_end_matches(['"', '”', '“', '»', '\'', '’'])
        .chars()
        .next_back();
    let next_first = next.chars().next();
    match last.unwrap_or(' ') {
        ';' | ':' | '.' | '!' | '?' | '…' | '–' | '—' | '；' | '：' | '。' | '！' | '？' | '।' => {
            Strength::Clause
        }
        '-' if word == "-" => Strength::Clause,
        ',' | ')' | ']' | '，' | '、' | '،' | '؛' => Strength::Comma,
        _ if matches!(next_first, Some('(' | '[' | '–' | '—')) => Strength::Comma,
        _ if CONJUNCTIONS.contains(&next.to_lowercase().as_str()) => Strength::Conjunction,
        _ => Strength::Space,
    }
}

/// Words that begin clauses, in the languages of most models.
const CONJUNCTIONS: [&str; 56] = [
    // German and English
    "und", "oder", "aber", "denn", "sondern", "weil", "dass", "daß", "wenn", "als", "ob", "während",
    "obwohl", "damit", "and", "or", "but", "because", "that", "which", "who", "if", "when",
    "while", "although", "so", "where", // French, Spanish, Italian, Portuguese
    "et", "ou", "mais", "car", "que", "qui", "quand", "si", "y", "o", "pero", "porque", "quien",
    "cuando", "e", "ma", "perché", "che", "mas", "quando", // Dutch, Polish, Russian
    "en", "maar", "omdat", "dat", "oraz", "ale", "и", "но", "что",
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words_of(text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn texts(text: &str, most: usize) -> Vec<&str> {
        cut(text, most, words_of)
            .iter()
            .map(|piece| piece.text)
            .collect()
    }

    #[test]
    fn a_cut_is_made_where_it_hurts_least() {
        assert_eq!(texts("a b c, d e f", 6), ["a b c, d e f"]);
        assert_eq!(texts("a b, c d; e f, g h", 6), ["a b, c d;", "e f, g h"]);
        assert_eq!(texts("a b c, d e f g", 5), ["a b c,", "d e f g"]);
        assert_eq!(texts("a b c und d e f", 5), ["a b c", "und d e f"]);
        assert_eq!(texts("a b c d e f g h", 5), ["a b c d", "e f g h"]);
        assert_eq!(
            texts("Es war (wie immer) sehr schön dort", 4),
            ["Es war (wie immer)", "sehr schön dort"]
        );
    }

    #[test]
    fn what_is_copied_is_not_cut() {
        let shown = |text: &str| words_of(&keep::hide(text).text);
        let placeholder = "{n, plural, one {# file} other {# files}}";
        let text = format!("a b {placeholder} c d");
        for most in 2..5 {
            let pieces = cut(&text, most, shown);
            let whole = |piece: &Piece| piece.text.contains(placeholder);
            assert!(pieces.len() > 1 && pieces.iter().any(whole), "{pieces:?}");
        }
        let address = format!("https://example.org/{}", "a".repeat(2000));
        let pieces = cut(&address, 3, shown);
        assert_eq!(pieces.len(), 1, "{pieces:?}");
    }

    #[test]
    fn a_word_that_is_too_long_is_cut_too() {
        let pieces = cut("abcdefghij kl", 4, str::len);
        assert!(
            pieces.iter().all(|piece| piece.text.len() <= 4),
            "{pieces:?}"
        );
        let ends: Vec<End> = pieces.iter().map(|piece| piece.end).collect();
        assert_eq!(
            ends,
            [End::WithinWord, End::WithinWord, End::Clause, End::Sentence]
        );
        let tight = cut("我去，你来，他走。", 4, |text| {
            text.chars().count()
        });
        let tight: Vec<&str> = tight.iter().map(|piece| piece.text).collect();
        assert_eq!(tight, ["我去，", "你来，", "他走。"]);
    }

    #[test]
    fn two_hundred_clauses_are_cut_between_them() {
        let clauses: Vec<String> = (0..200)
            .map(|n| format!("Hund Nummer {n} bellt laut,"))
            .collect();
        let text = clauses.join(" ");
        let pieces = cut(&text, 64, words_of);
        assert_eq!(pieces.len(), 17);
        assert!(
            pieces
                .iter()
                .all(|piece| piece.text.ends_with(',') && words_of(piece.text) <= 64)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]
        #[test]
        fn nothing_is_lost_and_pieces_fit(
            parts in prop::collection::vec(prop_oneof!["\\PC{0,9}", ".{0,5}", "[a-c,; ]{0,30}"], 0..12),
            most in 1usize..20,
        ) {
            let text = parts.concat();
            let bytes = |text: &str| text.len().div_ceil(2);
            for pieces in [cut(&text, most, words_of), cut(&text, most, bytes)] {
                let joined: String = pieces.iter().flat_map(|piece| [piece.text, piece.gap]).collect();
                prop_assert_eq!(&joined, &text);
                prop_assert!(pieces[..pieces.len() - 1].iter().all(|piece| piece.end != End::Sentence));
                prop_assert!(pieces.iter().all(|piece| piece.gap.trim().is_empty()));
            }
            for piece in cut(&text, most, bytes) {
                prop_assert!(bytes(piece.text) <= most || piece.text.trim().chars().count() <= 1, "{:?}", piece);
            }
        }
    }
}

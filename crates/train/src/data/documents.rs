//! Documents for pre-training a BERT (Devlin et al. 2019, appendix A.1): pairs of spans of sentences, of which half follow
//! each other, with hidden tokens to predict.
//!
//! Blank lines separate documents, and each of their lines is a sentence; a file without blank lines is one document.
//! Neighbors: [`crate::data::text`] reads the files, [`crate::task::masked_language_model`] learns from the pairs.

use attentive_nn::models::bert::text::Framed;
use attentive_text::{
    Tokenizer,
    lines::is_blank,
    special::{BOS, EOS, SPECIALS},
};
use rayon::prelude::*;

use crate::data::random::SplitMix64;

/// Share of the tokens that are to be predicted.
const HIDDEN: f64 = 0.15;

/// Share of these that are replaced by `[MASK]`, and by a random token; the others stay.
const MASKED: f64 = 0.8;
const REPLACED: f64 = 0.1;

/// Share of the pairs that are shorter than they could be, as texts later are.
const SHORT: f64 = 0.1;

/// Encoded text: documents, their sentences, and the tokens of these.
#[derive(Debug, Clone, Default)]
pub struct Documents(Vec<Vec<Vec<u32>>>);

/// What stands behind the first span of a pair; in the order of the classes of the next-sentence head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Second {
    /// What follows in the document.
    Follows,
    /// Something else.
    Random,
}

/// One example.
#[derive(Debug, Clone)]
pub struct Masked {
    /// What the model reads.
    pub text: Framed,
    /// Nothing if the model reads single texts.
    pub second: Option<Second>,
    /// Places of hidden tokens, and which token stood there.
    pub hidden: Vec<(usize, u32)>,
}

/// How examples are made.
#[derive(Debug, Clone, Copy)]
pub struct Masking {
    /// Tokens of an example, special ones included.
    pub longest: usize,
    /// The id of `[MASK]`.
    pub mask: u32,
    /// Size of the vocabulary.
    pub vocab: usize,
    /// Whether an example is a pair of spans.
    pub pairs: bool,
}

impl Documents {
    /// Cuts texts into documents and sentences; sentences without tokens are left out.
    pub fn encode(tokenizer: &Tokenizer, texts: &[String]) -> Self {
        let mut documents = Vec::new();
        for text in texts {
            let lines: Vec<&str> = text.lines().collect();
            for document in lines.split(|line| is_blank(line)) {
                let sentences = document.par_iter().map(|line| tokenizer.encode(line));
                let sentences: Vec<Vec<u32>> =
                    sentences.filter(|tokens| !tokens.is_empty()).collect();
                documents.extend((!sentences.is_empty()).then_some(sentences));
            }
        }
        Self(documents)
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Documents, sentences and tokens.
    pub fn count(&self) -> [usize; 3] {
        let sentences = self.0.iter().flatten();
        let tokens = sentences.clone().map(Vec::len).sum();
        [self.0.len(), sentences.count(), tokens]
    }

    /// The examples of an epoch: every sentence stands in at least one of them.
    pub fn examples(&self, masking: &Masking, seed: u64, epoch: u64) -> Vec<Masked> {
        let mut random = SplitMix64::new(&[seed, epoch]);
        let mut examples = Vec::new();
        for (number, document) in self.0.iter().enumerate() {
            let mut start = 0;
            while start < document.len() {
                let (first, second, end) = self.spans(number, start, masking, &mut random);
                let (behind, second) = second.unzip();
                let text = Framed::new(&first, behind.as_deref(), masking.longest);
                examples.push(Masked::new(text, second, masking, &mut random));
                start = end;
            }
        }
        examples
    }

    /// The spans that begin with a sentence of a document, and the sentence to go on with.
    #[allow(clippy::type_complexity)]
    fn spans(
        &self,
        number: usize,
        start: usize,
        masking: &Masking,
        random: &mut SplitMix64,
    ) -> (Vec<u32>, Option<(Vec<u32>, Second)>, usize) {
        let document = &self.0[number];
        let room = masking.longest.saturating_sub(3).max(2);
        let target = if random.chance(SHORT) {
            2 + random.below(room - 1)
        } else {
            room
        };
        let end = filled(document, start, target);
        if !masking.pairs {
            return (document[start..end].concat(), None, end);
        }
        let sentences = end - start;
        let middle = start + 1 + random.below(sentences.saturating_sub(1).max(1));
        let first = document[start..middle].concat();
        if middle < end && random.chance(0.5) {
            let second = document[middle..end].concat();
            return (first, Some((second, Second::Follows)), end);
        }
        let (other, from) = self.elsewhere(number, middle, random);
        let left = target.saturating_sub(first.len()).max(1);
        let to = filled(&self.0[other], from, left);
        let second = self.0[other][from..to].concat();
        // What was not used is the beginning of the next pair.
        (first, Some((second, Second::Random)), middle)
    }

    /// A sentence of another document, or, if there is only one, of another place.
    fn elsewhere(&self, number: usize, next: usize, random: &mut SplitMix64) -> (usize, usize) {
        let count = self.0.len();
        let other = if count > 1 {
            (number + 1 + random.below(count - 1)) % count
        } else {
            number
        };
        let sentences = self.0[other].len();
        let mut from = random.below(sentences);
        if other == number && from == next && sentences > 1 {
            from = (from + 1) % sentences;
        }
        (other, from)
    }
}

/// Behind the last of the sentences from `start` that together have so many tokens.
fn filled(document: &[Vec<u32>], start: usize, target: usize) -> usize {
    let mut tokens = 0;
    for (number, sentence) in document.iter().enumerate().skip(start) {
        tokens += sentence.len();
        if tokens >= target {
            return number + 1;
        }
    }
    document.len()
}

impl Masked {
    /// Hides some tokens of a text (§3.1 of the paper).
    fn new(
        mut text: Framed,
        second: Option<Second>,
        masking: &Masking,
        random: &mut SplitMix64,
    ) -> Self {
        let tokens = &mut text.tokens;
        let ordinary = |place: &usize| ![BOS, EOS].contains(&tokens[*place]);
        let mut places: Vec<usize> = (0..tokens.len()).filter(ordinary).collect();
        let count = (places.len() as f64 * HIDDEN).round().max(1.0) as usize;
        random.shuffle(&mut places);
        places.truncate(count);
        places.sort_unstable();
        let mut hidden = Vec::with_capacity(places.len());
        for place in places {
            hidden.push((place, tokens[place]));
            if random.chance(MASKED) {
                tokens[place] = masking.mask;
            } else if random.chance(REPLACED / (1.0 - MASKED)) {
                let specials = SPECIALS.len();
                tokens[place] = (specials + random.below(masking.vocab - specials)) as u32;
            }
        }
        Self {
            text,
            second,
            hidden,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASK: u32 = 4;

    /// Documents of sentences of three tokens, each token another one.
    fn documents(sizes: &[usize]) -> Documents {
        let mut next = 5;
        let mut sentence = || {
            next += 3;
            vec![next - 3, next - 2, next - 1]
        };
        let document = |size: &usize| (0..*size).map(|_| sentence()).collect();
        Documents(sizes.iter().map(document).collect())
    }

    fn masking(pairs: bool) -> Masking {
        Masking {
            longest: 24,
            mask: MASK,
            vocab: 5000,
            pairs,
        }
    }

    /// The tokens as they were before some were hidden.
    fn original(example: &Masked) -> Vec<u32> {
        let mut tokens = example.text.tokens.clone();
        for (place, token) in &example.hidden {
            tokens[*place] = *token;
        }
        tokens
    }

    #[test]
    fn fifteen_percent_are_hidden_eighty_ten_ten() {
        let examples = documents(&[700, 700]).examples(&masking(true), 1, 0);
        let (mut all, mut hidden, mut masked, mut same) = (0.0, 0.0, 0.0, 0.0);
        for example in &examples {
            let framing = |token: &&u32| ![BOS, EOS].contains(*token);
            all += original(example).iter().filter(framing).count() as f64;
            hidden += example.hidden.len() as f64;
            for (place, token) in &example.hidden {
                let now = example.text.tokens[*place];
                masked += f64::from(u8::from(now == MASK));
                same += f64::from(u8::from(now == *token));
            }
        }
        assert!((hidden / all - 0.15).abs() < 0.015, "{}", hidden / all);
        assert!((masked / hidden - 0.8).abs() < 0.04, "{}", masked / hidden);
        assert!((same / hidden - 0.1).abs() < 0.03, "{}", same / hidden);
    }

    #[test]
    fn half_of_the_pairs_follow_each_other_and_no_sentence_is_lost() {
        let documents = documents(&[300, 200]);
        let examples = documents.examples(&masking(true), 1, 0);
        let mut seen = std::collections::HashSet::new();
        let mut follows = 0;
        for example in &examples {
            let tokens = original(example);
            assert!(tokens.len() <= 24);
            let cut = tokens
                .iter()
                .position(|token| *token == EOS)
                .expect("a first end");
            let (first, second) = (&tokens[1..cut], &tokens[cut + 1..tokens.len() - 1]);
            let joined = first[first.len() - 1] + 1 == second[0];
            assert_eq!(
                example.second,
                Some(if joined {
                    Second::Follows
                } else {
                    Second::Random
                })
            );
            follows += usize::from(joined);
            seen.extend(tokens);
        }
        let share = follows as f64 / examples.len() as f64;
        assert!((0.35..0.6).contains(&share), "{share}");
        // Those that were cut off at the end of a pair aside.
        assert!(seen.len() as f64 > 0.9 * 1500.0, "{}", seen.len());
    }

    #[test]
    fn an_epoch_is_a_pure_function_of_seed_and_number() {
        let documents = documents(&[40]);
        let tokens = |seed, epoch| -> Vec<Vec<u32>> {
            let examples = documents.examples(&masking(true), seed, epoch);
            examples.into_iter().map(|it| it.text.tokens).collect()
        };
        assert_eq!(tokens(1, 0), tokens(1, 0));
        assert_ne!(tokens(1, 0), tokens(1, 1));
        assert_ne!(tokens(1, 0), tokens(2, 0));
        let single = documents.examples(&masking(false), 1, 0);
        assert!(single.iter().all(|example| example.second.is_none()));
    }

    #[test]
    fn blank_lines_separate_documents() {
        let mut words = ["a b c d"].into_iter();
        let options = attentive_text::tokenizer::TokenizerOptions {
            kind: attentive_text::tokenizer::TokenizerKind::WordPiece,
            vocab_size: 50,
            min_frequency: 1,
            lowercase: true,
        };
        let tokenizer = Tokenizer::train(&options, &mut words).unwrap();
        let texts = ["a b\nc\n\n \nd\n".to_owned(), "a\nb\n".to_owned()];
        assert_eq!(Documents::encode(&tokenizer, &texts).count(), [3, 5, 6]);
    }
}

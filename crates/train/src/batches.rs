//! Encoded pairs -> batches of similar length, so that padding is rare (§5.1).
//!
//! [`plan`] decides which pairs stand together, [`Batch::collect`] pads them. The plan is a pure
//! function of seed and epoch, so that a continued run goes on with the very next batch. Pairs come
//! from [`crate::corpus`], batches go to the trainer.

use attentive_text::special::PAD;

use crate::corpus::Pair;
use crate::random::SplitMix64;
use crate::recipe::Training;

/// How much goes into a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// At most so many tokens on the longer side, padding included; a longer pair stands alone.
    Tokens(usize),
    /// Exactly so many pairs; the last batch takes what is left.
    Sentences(usize),
}

impl Budget {
    /// What a recipe says.
    pub fn of(training: &Training) -> Self {
        match training.batch_sentences {
            0 => Budget::Tokens(training.batch_tokens),
            sentences => Budget::Sentences(sentences),
        }
    }
}

/// Pairs that are sorted together when batches have a fixed number of sentences: whole epochs would
/// make neighbours for life, single batches would be padded to their longest sentence.
const POOL_BATCHES: usize = 100;

/// The batches of an epoch as indices into `pairs`; every pair stands in exactly one.
pub fn plan(pairs: &[Pair], budget: Budget, seed: u64, epoch: usize) -> Vec<Vec<usize>> {
    let mut random = SplitMix64::new(&[seed, epoch as u64]);
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    // What the sort below leaves in this order, being stable, is what differs between epochs.
    random.shuffle(&mut order);
    let mut batches = match budget {
        Budget::Tokens(tokens) => {
            sort_by_length(pairs, &mut order);
            cut(pairs, &order, tokens)
        }
        Budget::Sentences(sentences) => {
            let sentences = sentences.max(1);
            for pool in order.chunks_mut(sentences * POOL_BATCHES) {
                sort_by_length(pairs, pool);
            }
            order.chunks(sentences).map(<[usize]>::to_vec).collect()
        }
    };
    random.shuffle(&mut batches);
    batches
}

/// Batches in the order of the pairs, for validation: nothing random, little padding.
pub fn plan_in_order(pairs: &[Pair], budget: Budget) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    sort_by_length(pairs, &mut order);
    match budget {
        Budget::Tokens(tokens) => cut(pairs, &order, tokens),
        Budget::Sentences(sentences) => order
            .chunks(sentences.max(1))
            .map(<[usize]>::to_vec)
            .collect(),
    }
}

/// Pairs padded to rectangles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Source tokens, each row ending in `</s>` and then padding; row-major `[batch, src_len]`.
    pub src: Vec<u32>,
    /// Target tokens, each row `<s> ... </s>` and then padding; row-major `[batch, tgt_len]`.
    pub tgt: Vec<u32>,
    /// Tokens of each source row without its padding.
    pub src_lens: Vec<usize>,
    /// Tokens of each target row without its padding.
    pub tgt_lens: Vec<usize>,
    /// Columns of `src`.
    pub src_len: usize,
    /// Columns of `tgt`; the model reads all but the last and predicts all but the first.
    pub tgt_len: usize,
    /// Which pair each row is, so that a bad batch can be named.
    pub pairs: Vec<usize>,
}

impl Batch {
    /// The chosen pairs, padded.
    ///
    /// # Panics
    /// If an index is not one of `pairs`.
    pub fn collect(pairs: &[Pair], indices: &[usize]) -> Self {
        let src_lens: Vec<usize> = indices.iter().map(|&i| pairs[i].src.len()).collect();
        let tgt_lens: Vec<usize> = indices.iter().map(|&i| pairs[i].tgt.len()).collect();
        let src_len = src_lens.iter().copied().max().unwrap_or(0);
        let tgt_len = tgt_lens.iter().copied().max().unwrap_or(0);
        Batch {
            src: padded(indices.iter().map(|&i| &pairs[i].src[..]), src_len),
            tgt: padded(indices.iter().map(|&i| &pairs[i].tgt[..]), tgt_len),
            src_lens,
            tgt_lens,
            src_len,
            tgt_len,
            pairs: indices.to_vec(),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.pairs.len()
    }

    /// Source tokens without padding.
    pub fn src_tokens(&self) -> usize {
        self.src_lens.iter().sum()
    }

    /// Target tokens that are predicted: all but the `<s>` of each row, without padding.
    pub fn tgt_tokens(&self) -> usize {
        self.tgt_lens.iter().map(|len| len.saturating_sub(1)).sum()
    }
}

/// The share of the tokens fed to the model, both sides, that is padding.
pub fn padding_share(pairs: &[Pair], batches: &[Vec<usize>]) -> f64 {
    let (mut real, mut fed) = (0usize, 0usize);
    for batch in batches {
        let longest =
            |len: fn(&Pair) -> usize| batch.iter().map(|&i| len(&pairs[i])).max().unwrap_or(0);
        fed += batch.len() * (longest(src_columns) + longest(tgt_columns));
        real += batch
            .iter()
            .map(|&i| src_columns(&pairs[i]) + tgt_columns(&pairs[i]))
            .sum::<usize>();
    }
    if fed == 0 {
        0.0
    } else {
        1.0 - real as f64 / fed as f64
    }
}

/// Columns that a pair takes on the encoder's side.
fn src_columns(pair: &Pair) -> usize {
    pair.src.len()
}

/// Columns that a pair takes on the decoder's side, which never reads the last token.
fn tgt_columns(pair: &Pair) -> usize {
    pair.tgt.len().saturating_sub(1)
}

/// Sorts by target length and, among equals, by source length, there and back again: where the
/// target length changes, neighbours still have similar sources.
fn sort_by_length(pairs: &[Pair], order: &mut [usize]) {
    order.sort_by_key(|&i| {
        let (src, tgt) = (src_columns(&pairs[i]) as i64, tgt_columns(&pairs[i]));
        (tgt, if tgt % 2 == 0 { src } else { -src })
    });
}

/// Cuts the order into batches of at most so many tokens on the longer side.
fn cut(pairs: &[Pair], order: &[usize], tokens: usize) -> Vec<Vec<usize>> {
    let mut batches = Vec::new();
    let mut batch: Vec<usize> = Vec::new();
    let mut columns = 0;
    for &index in order {
        let own = src_columns(&pairs[index]).max(tgt_columns(&pairs[index]));
        if !batch.is_empty() && columns.max(own) * (batch.len() + 1) > tokens {
            batches.push(std::mem::take(&mut batch));
            columns = 0;
        }
        columns = columns.max(own);
        batch.push(index);
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
}

fn padded<'a>(rows: impl Iterator<Item = &'a [u32]>, columns: usize) -> Vec<u32> {
    let mut matrix = Vec::new();
    for row in rows {
        matrix.extend_from_slice(row);
        matrix.resize(matrix.len() + columns - row.len(), PAD);
    }
    matrix
}

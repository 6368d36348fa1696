//! Search: from a model's next-token probabilities to whole sentences.
//!
//! One small trait, [`SearchModel`], is all that search knows of a model; the Burn Transformer, a
//! CPU kernel or a fake with hand-written probabilities implement it alike.

/// A model that continues target sentences, many rows at a time.
///
/// The calls cannot fail: sources are checked before they get here.
pub trait SearchModel {
    /// Everything that changes while decoding: encoder output, key-value cache.
    type State;

    /// Number of target tokens.
    fn vocab(&self) -> usize;

    /// Encodes the sources (each non-empty, ending in `</s>`); row i of the state is source i.
    fn start(&self, sources: &[Vec<u32>]) -> Self::State;

    /// Feeds one token per row (`<s>` first) and returns the log-probabilities of the next ones,
    /// row-major `[rows * vocab]`.
    fn step(&self, state: &mut Self::State, tokens: &[u32]) -> Vec<f32>;

    /// Row i of the new state is row `rows[i]` of the old: the state grows to beams and shrinks
    /// when sentences finish.
    fn reorder(&self, state: &mut Self::State, rows: &[usize]);
}

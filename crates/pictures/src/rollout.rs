//! Attention rollout: where information comes from after several layers (Abnar and Zuidema, 2020).
//!
//! A layer's output is half attention (the mean of its heads) and half residual connection:
//! `0.5 A + 0.5 I`, multiplied over the layers. For cross-attention the paper gives no rule. Here both
//! stacks are followed: each decoder layer first mixes target positions (its self-attention, with the
//! residual connection), then takes half of its content from the source, through the encoder's own
//! rollout; the result is the share of each source token in what came from the source, so rows sum to 1.

use crate::map::Map;

/// Rollout of self-attention over the layers of one stack, given each layer's mean over heads.
pub fn within(layers: &[Map]) -> Map {
    let size = layers.first().map_or(0, Map::rows);
    layers.iter().fold(Map::identity(size), |rolled, layer| {
        with_residual(layer).times(&rolled)
    })
}

/// Rollout of cross-attention: from the target through the decoder's layers and the encoder to the source.
pub fn across(encoder: &[Map], decoder: &[Map], cross: &[Map]) -> Map {
    let read = within(encoder);
    let (targets, sources) = cross.first().map_or((0, 0), |map| (map.rows(), map.cols()));
    let nothing = Map::zeros(targets, sources);
    let flow = decoder
        .iter()
        .zip(cross)
        .fold(nothing, |flow, (own, source)| {
            let mixed = with_residual(own).times(&flow);
            mixed.halfway(&source.times(&read))
        });
    flow.normalized()
}

fn with_residual(layer: &Map) -> Map {
    layer.halfway(&Map::identity(layer.rows())).normalized()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(rows: usize, weights: &[f32]) -> Map {
        Map::new(rows, weights.len() / rows, weights.to_vec()).unwrap()
    }

    fn assert_near(found: &Map, expected: &[f32]) {
        for (a, b) in found.weights().iter().zip(expected) {
            assert!((a - b).abs() < 1e-6, "{found:?} is not {expected:?}");
        }
    }

    #[test]
    fn one_layer_is_half_attention_and_half_residual() {
        let rolled = within(&[map(2, &[0.2, 0.8, 1.0, 0.0])]);
        assert_near(&rolled, &[0.6, 0.4, 0.5, 0.5]);
    }

    #[test]
    fn later_layers_multiply_from_the_left() {
        let first = map(2, &[1.0, 0.0, 1.0, 0.0]);
        let second = map(2, &[0.0, 1.0, 0.0, 1.0]);
        // 0.5 A + 0.5 I: first [[1, 0], [.5, .5]], second [[.5, .5], [0, 1]]; second x first.
        assert_near(&within(&[first, second]), &[0.75, 0.25, 0.5, 0.5]);
    }

    #[test]
    fn one_layer_of_cross_attention_over_an_untouched_source_is_itself() {
        let untouched = Map::identity(3);
        let cross = map(2, &[0.1, 0.2, 0.7, 0.6, 0.3, 0.1]);
        let rolled = across(
            std::slice::from_ref(&untouched),
            &[map(2, &[1.0, 0.0, 0.5, 0.5])],
            std::slice::from_ref(&cross),
        );
        assert_near(&rolled, cross.weights());
    }

    #[test]
    fn cross_attention_reaches_the_source_through_the_target_too() {
        let untouched = Map::identity(2);
        // The first layer: position 0 attends to source 0, position 1 to source 1.
        let first = map(2, &[1.0, 0.0, 0.0, 1.0]);
        // The second: position 1 attends to position 0 alone, and both to source 1.
        let (own, second) = (map(2, &[1.0, 0.0, 1.0, 0.0]), map(2, &[0.0, 1.0, 0.0, 1.0]));
        let rolled = across(&[untouched], &[Map::identity(2), own], &[first, second]);
        // After layer 1: [.5, 0], [0, .5]. Mixed by layer 2: [.5, 0], [.25, .25]. Halved, plus half of
        // source 1: [.25, .5], [.125, .625]; as shares of .75.
        assert_near(&rolled, &[1.0 / 3.0, 2.0 / 3.0, 1.0 / 6.0, 5.0 / 6.0]);
    }
}

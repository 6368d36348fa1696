//! Depth growth: a model begins with the weights of one that has fewer layers, and computes the same function at first.
//!
//! A new layer is added behind the others. Its output projections are zeros, so that with norms before the sub-layers
//! (`x + f(x)`) it adds nothing until training changes that (a function-preserving transformation: "Net2Net", Chen et al.
//! 2016, <https://arxiv.org/abs/1511.05641>). With norms behind the sub-layers there is no such layer, since `LN(x)` is not
//! `x`. Neighbor: [`super::translation`], where a model starts from another (`training.start_from`).

use attentive_model::config::ModelConfig;
use serde_json::Value;

/// The keys of `[model]` of which the recipe asks for more than the given model has, and which may differ.
pub(super) fn grown_keys<C: ModelConfig>(given: &C, asked: &C) -> Vec<&'static str> {
    let [given, asked] = [given, asked].map(|config| serde_json::to_value(config).ok());
    let value = |config: &Option<Value>, key: &str| config.as_ref()?.get(key).cloned();
    if value(&asked, "norm") != Some("pre".into()) {
        return Vec::new();
    }
    let layers = |config, key| value(config, key).and_then(|value| value.as_u64());
    let mut keys = vec!["encoder_layers", "decoder_layers"];
    keys.retain(|key| layers(&asked, key) > layers(&given, key));
    keys
}

/// Whether a tensor of a new layer is what a sub-layer ends with, and so begins with zeros.
pub(super) fn ends_a_sub_layer(name: &str) -> bool {
    let module = name.rsplit('.').nth(1);
    matches!(module, Some("output" | "outer"))
}

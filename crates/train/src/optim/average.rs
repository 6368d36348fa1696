//! Checkpoint averaging: the mean of the last epochs' weights, often a better model than any of them.
//!
//! The paper averages the last 5 (base) or 20 (big) checkpoints (§6.1). Done once, when training ends.

use std::path::PathBuf;

use attentive_nn::parameters;
use burn::tensor::Device;

use crate::{Result, task::Task};

/// The mean of the models in these checkpoints; `None` when there is none.
pub fn average<T: Task>(
    task: &T,
    checkpoints: &[PathBuf],
    device: &Device,
) -> Result<Option<T::Model>> {
    let mut sum: Option<T::Model> = None;
    for checkpoint in checkpoints {
        let model = task.load_model(checkpoint, device)?;
        sum = Some(match sum {
            None => model,
            Some(sum) => {
                let mut values = parameters::named(&model).into_iter().map(|p| p.values);
                parameters::replace(sum, |_, old| match values.next() {
                    Some(new) => old + new,
                    None => old,
                })
            }
        });
    }
    let count = checkpoints.len() as f64;
    Ok(sum.map(|sum| parameters::replace(sum, |_, total| total.div_scalar(count))))
}

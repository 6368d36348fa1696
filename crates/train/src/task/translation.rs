//! A batch of ids -> the loss: the one forward pass of training and validation.
//!
//! Neighbours: [`crate::data::batches`] makes the batch, `attentive_nn` computes, [`crate::trainer`] and
//! [`crate::evaluation`] use the sums.

use attentive_nn::{
    models::transformer::Transformer,
    ops::{SmoothedLoss, kl_divergence, smoothed_loss},
    pass::Pass,
};
use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::{
    data::batches::Batch,
    recipe::{LossKind, Training},
};

/// The smoothing that a recipe asks for; plain cross-entropy is none.
pub fn smoothing(training: &Training) -> f64 {
    match training.loss {
        LossKind::LabelSmoothing => training.label_smoothing,
        LossKind::CrossEntropy => 0.0,
    }
}

/// The weight of the agreement between two looks in an epoch, counted from 0; 0 for one look.
pub fn agreement(training: &Training, epoch: u64) -> f64 {
    match epoch < training.agreement_after as u64 {
        true => 0.0,
        false => training.agreement,
    }
}

/// The loss of a batch that is looked at twice with different dropout (R-Drop, Liang et al. 2021):
/// the mean of both losses and, `weight` times, a quarter of the symmetric divergence between both
/// predictions; that is half of the paper's loss, so that it is still one of `tgt_tokens` tokens.
pub fn batch_loss_twice(
    model: &Transformer,
    batch: &Batch,
    smoothing: f64,
    weight: f64,
    pass: &mut Pass,
) -> SmoothedLoss {
    let (logits, predicted) = predictions(model, &batch.twice(), pass);
    let apart = kl_divergence(logits.clone(), &predicted[..predicted.len() / 2]);
    let loss = smoothed_loss(logits, &predicted, smoothing);
    SmoothedLoss {
        objective: loss.objective.mul_scalar(0.5) + apart.mul_scalar(0.25 * weight),
        cross_entropy: loss.cross_entropy.mul_scalar(0.5),
    }
}

/// Sums over the batch's target tokens: feeds `tgt[:-1]`, predicts `tgt[1:]`.
pub fn batch_loss(
    model: &Transformer,
    batch: &Batch,
    smoothing: f64,
    pass: &mut Pass,
) -> SmoothedLoss {
    let (logits, predicted) = predictions(model, batch, pass);
    smoothed_loss(logits, &predicted, smoothing)
}

/// The logits `[rows * len, vocab]` and the token that each row should predict.
fn predictions(model: &Transformer, batch: &Batch, pass: &mut Pass) -> (Tensor<2>, Vec<u32>) {
    let device = model.device();
    let (rows, len) = (batch.rows(), batch.tgt_len - 1);
    let src = ids(&batch.src, [rows, batch.src_len], &device);
    let (fed, predicted): (Vec<&[u32]>, Vec<&[u32]>) = batch
        .tgt
        .chunks(batch.tgt_len)
        .map(|row| (&row[..len], &row[1..]))
        .unzip();
    let tgt = ids(&fed.concat(), [rows, len], &device);
    let memory = model.encode(src, pass);
    let hidden = model.decode(tgt, &memory, pass).hidden; // [rows, len, d_model]
    let logits = model.logits(hidden, pass);
    let vocab = logits.dims()[2];
    (logits.reshape([rows * len, vocab]), predicted.concat())
}

fn ids(values: &[u32], shape: [usize; 2], device: &Device) -> Tensor<2, Int> {
    let values: Vec<i64> = values.iter().map(|id| i64::from(*id)).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

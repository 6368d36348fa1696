//! ZeRO-1: the optimizer's state of each parameter is kept, and its step made, in one process only.
//!
//! Each process steps the parameters that it owns ([`super::buckets`]) and gets the others from their owners. The
//! weights stay whole everywhere; checkpoints are complete, so that any number of processes can go on from them.

use std::collections::BTreeMap;

use attentive_nn::{ops::sum_of_squares, parameters};
use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use serde::{Deserialize, Serialize};

use super::{Communicator, all_gather, buckets::Buckets, gather, gradients::tensor};
use crate::{
    optim::optimizer::{Gradients, Optimizer},
    recipe::Wire,
};

/// The norm of all gradients taken as one vector, of which each process has those of its own parameters: the same
/// bits as if one had all.
pub fn global_norm(communicator: &dyn Communicator, own: &Gradients) -> f64 {
    let squares: Squares = own
        .iter()
        .map(|(name, gradient)| (name.clone(), sum_of_squares(gradient).to_bits()))
        .collect();
    let mut all = Squares::new();
    for bytes in all_gather(communicator, json(&squares)) {
        all.append(&mut serde_json::from_slice(&bytes).unwrap_or_default());
    }
    all.into_values().map(f64::from_bits).sum::<f64>().sqrt()
}

/// Sums of squares by name, as bits.
type Squares = BTreeMap<String, u64>;

/// The model with the parameters of every process's own step.
pub fn share_parameters<M: Module>(
    communicator: &dyn Communicator,
    buckets: &Buckets,
    model: M,
    device: &Device,
) -> M {
    let rank = communicator.rank();
    let owner = |name: &str| buckets.place(name).and_then(|place| place.owner);
    let named = parameters::named(&model);
    let own = named.iter().filter(|one| owner(&one.name) == Some(rank));
    let own: Named = own
        .map(|one| (one.name.clone(), one.values.clone()))
        .collect();
    let mut theirs = Named::new();
    for (other, bytes) in all_gather(communicator, pack(&own)).iter().enumerate() {
        if other != rank {
            theirs.append(&mut unpack(bytes, device));
        }
    }
    parameters::replace(model, |name, old| theirs.remove(name).unwrap_or(old))
}

/// The moments of all parameters in process 0, which writes them; those of the others stay where they are.
pub fn gather_moments(communicator: &dyn Communicator, optimizer: &mut Optimizer, device: &Device) {
    let own = if communicator.is_root() {
        Vec::new()
    } else {
        pack(optimizer.moments())
    };
    for bytes in gather(communicator, own) {
        optimizer.add_moments(unpack(&bytes, device));
    }
}

/// Forgets the moments of parameters that other processes own.
pub fn keep_own_moments(
    communicator: &dyn Communicator,
    buckets: &Buckets,
    optimizer: &mut Optimizer,
) {
    let rank = communicator.rank();
    optimizer.retain_moments(|parameter| {
        buckets.place(parameter).and_then(|place| place.owner) == Some(rank)
    });
}

type Named = BTreeMap<String, Tensor<1>>;

/// In front of the numbers.
#[derive(Debug, Serialize, Deserialize)]
struct Header(Vec<(String, usize)>);

/// Names and lengths on a line, and the numbers.
fn pack(tensors: &Named) -> Vec<u8> {
    let mut numbers = Vec::new();
    let mut header = Vec::new();
    for (name, values) in tensors {
        let values = parameters::to_vec(values);
        header.push((name.clone(), values.len()));
        numbers.extend(Wire::F32.encode(&values));
    }
    let mut bytes = json(&Header(header));
    bytes.push(b'\n');
    bytes.append(&mut numbers);
    bytes
}

fn unpack(bytes: &[u8], device: &Device) -> Named {
    let line = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let Ok(Header(header)) = serde_json::from_slice(&bytes[..line]) else {
        return Named::new();
    };
    let mut rest = bytes.get(line + 1..).unwrap_or_default();
    let mut tensors = Named::new();
    for (name, length) in header {
        let mut values = vec![0.0; length];
        let (own, others) = rest.split_at(length * Wire::F32.bytes());
        Wire::F32.decode(own, &mut values);
        rest = others;
        tensors.insert(name, tensor(values, device));
    }
    tensors
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain names and numbers")
}

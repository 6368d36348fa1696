//! Gradients of parameters, handed over as soon as the backward pass has found them.
//!
//! Burn returns all gradients at the end of the backward pass. Whoever sends them to other processes wants each as
//! soon as it is final, so that it travels while the rest is computed: [`handing_over`] counts how many operations of
//! ours read a parameter in the forward pass, and hands its gradient over when the last of them has added its share
//! in the backward pass. What Burn's own operations read is not counted: such parameters must not be asked for.

use std::{cell::RefCell, collections::HashMap};

use burn::{
    backend::{Flex, autodiff::NodeId, flex::FlexTensor},
    tensor::Tensor,
};

use super::fused::contiguous;
use crate::parameters::{self, Node};

type Take<'a> = dyn FnMut(&str, Tensor<1>) + 'a;

/// The parameters of one forward and backward pass.
struct Handover {
    /// Those that are asked for, with the operations whose share of the gradient is not known yet.
    readers: HashMap<NodeId, (String, usize)>,
    take: *mut Take<'static>,
}

thread_local! {
    static HANDOVER: RefCell<Option<Handover>> = const { RefCell::new(None) };
}

/// Does `work`, a forward and a backward pass of the model on this thread, and hands the gradients of those parameters
/// that are `wanted` to `take`, flattened, as soon as they are final. On other devices than the CPU there are none.
pub fn handing_over<M: burn::module::Module, R>(
    model: &M,
    wanted: impl Fn(&str) -> bool,
    take: &mut Take<'_>,
    work: impl FnOnce() -> R,
) -> R {
    let nodes = parameters::nodes(model).into_iter();
    let wanted = nodes.filter(|node| wanted(&node.name));
    let readers = wanted.map(|Node { id, name }| (id, (name, 0))).collect();
    let take: *mut Take<'_> = take;
    // SAFETY: the pointer is used only while `work` runs, in which `take` is borrowed: `End` removes it, also if
    // `work` panics.
    let take: *mut Take<'static> = unsafe { std::mem::transmute(take) };
    HANDOVER.set(Some(Handover { readers, take }));
    let _end = End;
    work()
}

/// Ends the handover however the work ends.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        HANDOVER.set(None);
    }
}

/// An operation reads a parameter in the forward pass.
pub(super) fn reads(parameter: NodeId) {
    HANDOVER.with_borrow_mut(|handover| {
        let readers = handover.as_mut().map(|handover| &mut handover.readers);
        if let Some((_, readers)) = readers.and_then(|readers| readers.get_mut(&parameter)) {
            *readers += 1;
        }
    });
}

/// An operation has added its share to the gradient of a parameter.
pub(super) fn added(parameter: NodeId, gradient: impl FnOnce() -> Option<FlexTensor>) {
    let complete = HANDOVER.with_borrow_mut(|handover| {
        let handover = handover.as_mut()?;
        let (_, readers) = handover.readers.get_mut(&parameter)?;
        *readers = readers.saturating_sub(1);
        if *readers > 0 {
            return None;
        }
        let (name, _) = handover.readers.remove(&parameter)?;
        Some((name, handover.take))
    });
    if let Some((name, take)) = complete
        && let Some(gradient) = gradient()
    {
        let count = gradient.layout().num_elements();
        let flat = contiguous(gradient).reshape([count].into());
        // SAFETY: `handing_over` is still running, further up on this thread.
        unsafe { (*take)(&name, Tensor::from_primitive::<Flex>(flat)) };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use attentive_model::{
        config::{Activation, ModelConfig, NormPlacement, Preset, TransformerConfig, Tying},
        tensors::Role,
    };
    use burn::tensor::Device;

    use super::*;
    use crate::{
        models::transformer::{Transformer, search::pad_rows},
        ops::{Precision, check::floats},
        pass::Pass,
    };

    #[test]
    fn gradients_that_are_handed_over_are_those_of_the_end_and_of_every_layer() {
        let tiny = || TransformerConfig {
            d_model: 16,
            d_ff: 32,
            encoder_layers: 2,
            decoder_layers: 2,
            ..Preset::Tiny.config(16, 16)
        };
        let configs = [
            tiny(),
            TransformerConfig {
                tying: Tying::None,
                norm: NormPlacement::Post,
                ..tiny()
            },
            TransformerConfig {
                activation: Activation::Gelu,
                ..tiny()
            },
        ];
        for config in configs {
            let device = Device::flex().autodiff();
            let model = Transformer::new(&config, 5, &device);
            let roles: BTreeMap<String, Role> = (config
                .tensors()
                .into_iter()
                .map(|tensor| (tensor.name, tensor.role)))
            .collect();
            let wanted = |name: &str| !matches!(roles[name], Role::Embedding | Role::Positions);
            let mut early = BTreeMap::new();
            let mut take = |name: &str, gradient: Tensor<1>| {
                let again = early.insert(name.to_owned(), floats(gradient));
                assert!(again.is_none(), "{name} was handed over twice");
            };
            let found = handing_over(&model, wanted, &mut take, || {
                let pass = &mut Pass::training(1, 1, Precision::F32);
                let rows = [vec![4, 5, 6, 1], vec![7, 8, 1]];
                let memory = model.encode(pad_rows(&rows, &device), pass);
                let hidden = model.decode(pad_rows(&rows, &device), &memory, pass).hidden;
                let loss = model.loss(hidden, &[4, 5, 6, 1, 7, 8, 1, 2], 0.1, pass);
                loss.objective.backward()
            });
            let all = parameters::gradients(&model, found);
            for (name, gradient) in &early {
                assert_eq!(gradient, &floats(all[name].clone()), "{name}");
            }
            let linear = roles.iter().filter(|(_, role)| **role == Role::Linear);
            for (name, _) in linear {
                assert!(early.contains_key(name), "{name} was not handed over");
            }
        }
    }
}

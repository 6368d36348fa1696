//! How an operation with a handwritten backward pass joins Burn's gradient graph on the CPU.
//!
//! An operation implements [`CpuOp`] on plain CPU tensors; [`apply`] unwraps Burn's tensors, runs it and
//! registers its backward step. Burn's own way is its `backend_extension` macro. Here: a downcast to
//! the CPU backend, so that the composed form of each operation stays an ordinary function of tensors.

use std::{fmt::Debug, marker::PhantomData};

use burn::{
    backend::{
        Autodiff, Backend, BackendTensor, DispatchKindConversion, DispatchTensor, Flex,
        autodiff::{
            checkpoint::{base::Checkpointer, strategy::NoCheckpointing},
            grads::Gradients,
            ops::{Backward, Ops, OpsKind},
        },
        flex::FlexTensor,
    },
    tensor::{Device, Tensor, TensorData},
};

/// An operation of `N` inputs and one output on CPU tensors, with its gradient.
pub(crate) trait CpuOp<const N: usize>: Clone + Debug + Send + 'static {
    /// What the backward pass needs.
    type Saved: Clone + Debug + Send + 'static;

    /// The result, and what the backward pass needs. Inputs may have any layout.
    fn forward(&self, inputs: [FlexTensor; N]) -> (FlexTensor, Self::Saved);

    /// The gradient of every input for that of the output.
    fn backward(&self, saved: Self::Saved, gradient: FlexTensor) -> [FlexTensor; N];
}

/// True when fused operations can run on tensors of this device.
pub(crate) fn on_cpu(device: &Device) -> bool {
    #[cfg(test)]
    if super::check::only_composed() {
        return false;
    }
    device.clone().without_autodiff() == Device::flex()
}

/// Runs `op`; tracks it when `tracked` (the inputs live on an autodiff device).
pub(crate) fn apply<O: CpuOp<N>, const N: usize, const D: usize>(
    op: O,
    tracked: bool,
    inputs: [DispatchTensor; N],
) -> Tensor<D> {
    type Tracked = Autodiff<Flex, NoCheckpointing>;
    if !tracked {
        let (output, _) = op.forward(inputs.map(unwrap::<Flex>));
        return wrap::<Flex, D>(output);
    }
    let inputs = inputs.map(unwrap::<Tracked>);
    let guards = inputs.each_ref().map(|input| input.node());
    let (output, saved) = op.forward(inputs.map(|input| input.into_primitive()));
    let step = BackwardStep::<O, N>(PhantomData);
    let output = match step
        .prepare::<NoCheckpointing>(guards)
        .compute_bound()
        .stateful()
    {
        OpsKind::Tracked(prepared) => prepared.finish((op, saved), output),
        OpsKind::UnTracked(prepared) => prepared.finish(output),
    };
    wrap::<Tracked, D>(output)
}

#[derive(Debug)]
struct BackwardStep<O, const N: usize>(PhantomData<O>);

impl<O: CpuOp<N>, const N: usize> Backward<Flex, N> for BackwardStep<O, N> {
    type State = (O, O::Saved);

    fn backward(
        self,
        ops: Ops<Self::State, N>,
        gradients: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = gradients.consume::<Flex>(&ops.node);
        let (op, saved) = ops.state;
        let results = op.backward(saved, gradient);
        for (parent, result) in ops.parents.into_iter().zip(results) {
            if let Some(parent) = parent {
                gradients.register::<Flex>(parent.id, result);
            }
        }
    }
}

fn unwrap<B: Backend>(tensor: DispatchTensor) -> B::FloatTensorPrimitive
where
    DispatchTensor: DispatchKindConversion<B>,
{
    match <DispatchTensor as DispatchKindConversion<B>>::try_into_backend(tensor) {
        Ok(BackendTensor::Float(primitive)) => primitive,
        Ok(_) => unreachable!("fused operations take float tensors"),
        Err(message) => unreachable!("callers check the device with on_cpu: {message}"),
    }
}

fn wrap<B: Backend, const D: usize>(primitive: B::FloatTensorPrimitive) -> Tensor<D>
where
    DispatchTensor: DispatchKindConversion<B>,
{
    let tensor = BackendTensor::<B>::Float(primitive);
    Tensor::from_dispatch(<DispatchTensor as DispatchKindConversion<B>>::from_backend(
        tensor,
    ))
}

/// A CPU tensor of the same shape as `like` over new values.
pub(crate) fn tensor_like(like: &FlexTensor, values: Vec<f32>) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, like.layout().shape().clone()))
}

/// The tensor with its values in order; one that is so already stays the only owner of its storage, so that
/// changing it in place costs no copy.
pub(crate) fn contiguous(tensor: FlexTensor) -> FlexTensor {
    let whole = tensor.layout().num_elements() * size_of::<f32>() == tensor.bytes().len();
    if tensor.is_contiguous() && whole {
        tensor
    } else {
        tensor.to_contiguous()
    }
}

/// Adds up partial sums of `width` numbers in their order, whatever thread made them.
pub(crate) fn total(partial: Vec<Vec<f32>>, width: usize) -> Vec<f32> {
    let mut totals = vec![0.0; width];
    for part in partial {
        totals
            .iter_mut()
            .zip(part)
            .for_each(|(total, value)| *total += value);
    }
    totals
}

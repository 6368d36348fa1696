//! How an operation with a handwritten backward pass joins Burn's gradient graph on the CPU.
//!
//! An operation implements [`CpuOp`] on plain CPU tensors; [`apply`] unwraps Burn's tensors, runs it and
//! registers its backward step. Burn's own way is its `backend_extension` macro. Here: a downcast to
//! the CPU backend, so that the composed form of each operation stays an ordinary function of tensors.
//!
//! Where several operations read one tensor, their gradients are added up. Burn would make a new tensor of each
//! two; here an operation gets what the others found ([`CpuOp::backward_onto`]) and adds to it in place, many
//! of them on the way (a matrix product, a norm).

use std::{
    collections::HashMap,
    fmt::Debug,
    marker::PhantomData,
    sync::{
        Arc, LazyLock, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use burn::{
    backend::{
        Autodiff, Backend, BackendTensor, DispatchKindConversion, DispatchTensor, Flex,
        autodiff::{
            NodeId,
            checkpoint::{base::Checkpointer, strategy::NoCheckpointing},
            grads::Gradients,
            ops::{Backward, Ops, OpsKind},
        },
        flex::FlexTensor,
        ops::FloatTensorOps,
    },
    tensor::{Device, Tensor, TensorData},
};
use rayon::prelude::*;

use super::{handover, simd::simd};

/// An operation of `N` inputs and one output on CPU tensors, with its gradient.
pub(crate) trait CpuOp<const N: usize>: Clone + Debug + Send + 'static {
    /// What the backward pass needs.
    type Saved: Clone + Debug + Send + 'static;

    /// The result, and what the backward pass needs. Inputs may have any layout.
    fn forward(&self, inputs: [FlexTensor; N]) -> (FlexTensor, Self::Saved);

    /// The gradient of every input for that of the output.
    fn backward(&self, saved: Self::Saved, gradient: FlexTensor) -> [FlexTensor; N];

    /// The same, added to what is known of the inputs' gradients. For operations that add at no cost, or to
    /// a part only.
    fn backward_onto(
        &self,
        saved: Self::Saved,
        gradient: FlexTensor,
        known: [Option<FlexTensor>; N],
    ) -> [FlexTensor; N] {
        let mut known = known.into_iter();
        self.backward(saved, gradient)
            .map(|found| joined(known.next().flatten(), found))
    }
}

/// True when fused operations can run on tensors of this device.
pub(crate) fn on_cpu(device: &Device) -> bool {
    #[cfg(test)]
    if super::check::only_composed() {
        return false;
    }
    device.clone().without_autodiff() == Device::flex()
}

/// Which node of the gradient graph a tensor on the CPU is.
pub(crate) fn node_id<const D: usize>(tensor: Tensor<D>) -> Option<NodeId> {
    let tracked = on_cpu(&tensor.device()) && tensor.is_autodiff();
    tracked.then(|| unwrap::<Tracked>(tensor.into_dispatch()).id())
}

type Tracked = Autodiff<Flex, NoCheckpointing>;

/// Runs `op`; tracks it when `tracked` (the inputs live on an autodiff device).
pub(crate) fn apply<O: CpuOp<N>, const N: usize, const D: usize>(
    op: O,
    tracked: bool,
    inputs: [DispatchTensor; N],
) -> Tensor<D> {
    if !tracked {
        let (output, _) = op.forward(inputs.map(unwrap::<Flex>));
        return wrap::<Flex, D>(output);
    }
    let inputs = inputs.map(unwrap::<Tracked>);
    let guards = inputs.each_ref().map(|input| input.node());
    let parents = inputs.each_ref().map(Parent::of);
    for parent in &parents {
        if let Parent::Parameter(tensor) = parent {
            handover::reads(tensor.id());
        }
    }
    let (output, saved) = op.forward(inputs.map(|input| input.into_primitive()));
    let step = BackwardStep::<O, N>(PhantomData);
    let output = match step
        .prepare::<NoCheckpointing>(guards)
        .compute_bound()
        .stateful()
    {
        OpsKind::Tracked(prepared) => prepared.finish((op, saved, parents), output),
        OpsKind::UnTracked(prepared) => prepared.finish(output),
    };
    wrap::<Tracked, D>(output)
}

#[derive(Debug)]
struct BackwardStep<O, const N: usize>(PhantomData<O>);

impl<O: CpuOp<N>, const N: usize> Backward<Flex, N> for BackwardStep<O, N> {
    type State = (O, O::Saved, [Parent; N]);

    fn backward(
        self,
        ops: Ops<Self::State, N>,
        gradients: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = gradients.consume::<Flex>(&ops.node);
        let (op, saved, parents) = ops.state;
        let known = std::array::from_fn(|i| {
            let node = ops.parents[i].as_ref()?;
            // Who reads a tensor twice gets what is known of it once.
            let earlier = ops.parents[..i].iter().flatten();
            if earlier.into_iter().any(|other| other.id == node.id) {
                return None;
            }
            match &parents[i] {
                Parent::Parameter(tensor) => gradients.remove::<Flex>(tensor),
                Parent::Result(found) if found.load(Ordering::Relaxed) => {
                    Some(gradients.consume::<Flex>(node))
                }
                Parent::Result(_) => None,
            }
        });
        let results = op.backward_onto(saved, gradient, known);
        for ((node, parent), result) in ops.parents.into_iter().zip(parents).zip(results) {
            if let Some(node) = node {
                gradients.register::<Flex>(node.id, result);
                match parent {
                    Parent::Result(found) => found.store(true, Ordering::Relaxed),
                    Parent::Parameter(tensor) => {
                        let gradient = || gradients.get::<Flex>(&tensor);
                        handover::added(node.id, gradient);
                    }
                }
            }
        }
    }
}

/// An input of an operation in the gradient graph, as far as finding its gradient in the backward pass needs it.
#[derive(Debug, Clone)]
enum Parent {
    /// Burn tells by the tensor whether there is one.
    Parameter(<Tracked as burn::backend::BackendTypes>::FloatTensorPrimitive),
    /// Whether an operation of ours has found a gradient; all that read the tensor share the mark. It cannot be
    /// found by the tensor, for a tensor that is kept keeps the graph above it.
    Result(Arc<AtomicBool>),
}

impl Parent {
    fn of(input: &<Tracked as burn::backend::BackendTypes>::FloatTensorPrimitive) -> Self {
        /// Marks of results that some operation still has.
        static MARKS: LazyLock<Mutex<HashMap<NodeId, Weak<AtomicBool>>>> =
            LazyLock::new(Default::default);
        if Tracked::float_is_require_grad(input) {
            return Self::Parameter(input.clone());
        }
        let mut marks = MARKS.lock().unwrap_or_else(PoisonError::into_inner);
        if marks.len() == marks.capacity() {
            marks.retain(|_, mark| mark.strong_count() > 0);
        }
        let known = marks.get(&input.id()).and_then(Weak::upgrade);
        Self::Result(known.unwrap_or_else(|| {
            let mark = Arc::default();
            marks.insert(input.id(), Arc::downgrade(&mark));
            mark
        }))
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

/// What was found of a gradient, added to what is known of it.
pub(crate) fn joined(known: Option<FlexTensor>, found: FlexTensor) -> FlexTensor {
    const CHUNK: usize = 1 << 14;
    let Some(known) = known else {
        return found;
    };
    let (mut known, found) = (contiguous(known), contiguous(found));
    let values = known.storage_mut::<f32>().par_chunks_mut(CHUNK);
    values
        .zip(found.storage::<f32>().par_chunks(CHUNK))
        .for_each(|(known, found)| add(known, found));
    known
}

simd! {
    fn add(left: &mut [f32], right: &[f32]) {
        left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
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

#[cfg(test)]
mod tests {
    use crate::ops::{
        Precision, affine,
        check::{assert_same_gradients, random},
        dropout_add, layer_norm,
    };
    use burn::tensor::Tensor;

    /// Reads the input with one operation after another, one of which reads it twice, and Burn between them.
    fn many_readers(
        [x, w, b]: [Tensor<1>; 3],
        twice: impl Fn(Tensor<3>) -> Tensor<3>,
        map: impl Fn(Tensor<3>, Tensor<2>, Tensor<1>) -> Tensor<3>,
    ) -> Tensor<3> {
        let (x, w) = (x.reshape([2, 3, 8]), w.reshape([8, 8]));
        let norm = layer_norm(x.clone(), b.clone(), b.clone(), 1e-5);
        let sum = twice(x.clone()) + norm + x.clone() * 0.5;
        let maps = map(x.clone(), w.clone(), b.clone()) + map(x, w.transpose(), b.clone());
        let both = sum + maps;
        twice(both)
    }

    #[test]
    fn gradients_of_a_tensor_with_many_readers_are_added_up() {
        assert_same_gradients(
            [random([48], 1), random([64], 2), random([8], 3)],
            |inputs| {
                let twice = |x: Tensor<3>| dropout_add(x.clone(), x, 0.0, &mut None);
                many_readers(inputs, twice, |x, w, b| affine(x, w, b, Precision::F32))
            },
            |inputs| {
                let map = |x: Tensor<3>, w, b: Tensor<1>| {
                    let rows: Tensor<2> = x.reshape([6, 8]).matmul(w) + b.unsqueeze();
                    rows.reshape([2, 3, 8])
                };
                many_readers(inputs, |x| x.clone() + x, map)
            },
        );
    }
}

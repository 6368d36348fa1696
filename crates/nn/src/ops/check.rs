//! Test support: a fused operation beside its composed form, outputs and gradients.

use std::cell::Cell;

use burn::tensor::{Device, Tensor, TensorData};

use crate::random::mix;

thread_local! {
    static ONLY_COMPOSED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs composed forms on the CPU, too.
pub(crate) fn only_composed() -> bool {
    ONLY_COMPOSED.get()
}

/// Runs `work` with every operation in its composed form.
pub(crate) fn with_composed_forms<T>(work: impl FnOnce() -> T) -> T {
    ONLY_COMPOSED.set(true);
    let result = work();
    ONLY_COMPOSED.set(false);
    result
}

/// Values in -1..1 that depend on `seed` only, flattened.
pub(crate) fn random<const D: usize>(shape: [usize; D], seed: u64) -> Vec<f32> {
    let count: usize = shape.iter().product();
    (0..count as u64)
        .map(|i| (mix(seed << 32 | i) >> 40) as f32 / 8_388_608.0 - 1.0)
        .collect()
}

/// Both forms give the same output and the same gradients, within 1e-5 of the largest element.
///
/// Inputs are handed over flat; the forms reshape them.
pub(crate) fn assert_same_gradients<const N: usize, const D: usize>(
    inputs: [Vec<f32>; N],
    fused: impl Fn([Tensor<1>; N]) -> Tensor<D>,
    composed: impl Fn([Tensor<1>; N]) -> Tensor<D>,
) {
    let run = |form: &dyn Fn([Tensor<1>; N]) -> Tensor<D>| {
        let device = Device::flex().autodiff();
        let inputs = inputs.each_ref().map(|values| {
            Tensor::<1>::from_data(TensorData::new(values.clone(), [values.len()]), &device)
                .require_grad()
        });
        // `* 1.0`: the operation must not be able to change a parameter in place.
        let output = form(inputs.each_ref().map(|input| input.clone() * 1.0));
        let [count] = output.clone().flatten::<1>(0, D - 1).dims();
        let weights =
            Tensor::<1>::from_data(TensorData::new(random([count], 77), [count]), &device);
        let gradients = (output.clone().flatten::<1>(0, D - 1) * weights)
            .sum()
            .backward();
        let mut results = vec![floats(output)];
        for input in &inputs {
            results.push(floats(input.grad(&gradients).expect("a gradient")));
        }
        results
    };
    for (index, (fused, composed)) in run(&fused).iter().zip(&run(&composed)).enumerate() {
        let largest = composed.iter().fold(1.0f32, |max, v| max.max(v.abs()));
        assert_eq!(fused.len(), composed.len());
        for (f, c) in fused.iter().zip(composed) {
            assert!(
                (f - c).abs() <= 1e-5 * largest,
                "result {index}: fused {f}, composed {c}"
            );
        }
    }
}

/// The tensor's values on the host.
pub(crate) fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

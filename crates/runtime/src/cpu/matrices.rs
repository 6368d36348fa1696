//! The weights of all matrices of a file, as the kernels read them.
//!
//! f32 is packed; int8 is used where the file is mapped, or made from f32. That is most of the work of loading, so
//! all cores take part. Neighbors: [`super::load`] hands the weights to the layers, [`super::cache`] keeps packed f32.

use std::collections::HashMap;
use std::num::NonZero;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use attentive_model::ModelError;
use attentive_model::int8::{packed_shape, scale_name};
use attentive_model::tensors::TensorSpec;
use attentive_model::weights::Weights;

use super::Compute;
use super::load::{MatrixLayout, plain};
use super::matrix::{Bytes, Floats, Int8, Numbers};
use super::packing::{pack, quantize};
use super::simd::Isa;
use crate::error::{Result, RuntimeError};

/// More threads than this do not get more out of the memory.
const MOST_THREADS: usize = 8;

/// A weights file, and what is to be computed with.
pub(crate) struct WeightsFile {
    pub weights: Arc<Weights>,
    pub stored_int8: bool,
    pub compute: Compute,
    pub isa: Isa,
}

impl WeightsFile {
    /// The weights of these matrices, by name.
    pub fn numbers(&self, specs: &[&TensorSpec]) -> Result<HashMap<String, Numbers>> {
        let next = AtomicUsize::new(0);
        let work = || -> Result<Vec<(String, Numbers)>> {
            let mut done = Vec::new();
            while let Some(spec) = specs.get(next.fetch_add(1, Ordering::Relaxed)) {
                done.push((spec.name.clone(), self.matrix(spec)?));
            }
            Ok(done)
        };
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = cores.min(MOST_THREADS).min(specs.len());
        thread::scope(|scope| {
            // Where a thread cannot be had, the others do its work.
            let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
            let others: Vec<_> = (1..threads).filter_map(start).collect();
            let mut all: HashMap<_, _> = work()?.into_iter().collect();
            for other in others {
                all.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic))?);
            }
            Ok(all)
        })
    }

    fn matrix(&self, spec: &TensorSpec) -> Result<Numbers> {
        let name = &spec.name;
        let layout = self.layout(spec)?;
        let MatrixLayout { k, n, .. } = layout;
        if self.stored_int8 {
            let place = self.weights.i8_place(name, &packed_shape(k, n))?;
            let scale = self.weights.f32_place(&scale_name(name), &[n])?;
            let panels = Bytes::Mapped(self.weights.clone(), place);
            if panels.get().contains(&i8::MIN) {
                let reason = format!("tensor `{name}` holds -128, which is never written");
                return Err(self.damaged(reason));
            }
            let int8 = Int8::new(k, panels, &self.floats(scale), self.isa);
            return Ok(Numbers::Int8(int8));
        }
        let plain = plain(&self.weights, spec, layout)?;
        let numbers = match self.compute {
            Compute::F32 | Compute::F32Int8Output | Compute::Auto => {
                Numbers::F32(Floats::Own(pack(plain)))
            }
            Compute::Int8 => {
                let (panels, scales) = quantize(plain);
                Numbers::Int8(Int8::new(k, Bytes::Own(panels), &scales, self.isa))
            }
        };
        // The file's own form is not read again: it need not stay in memory beside ours.
        self.weights
            .release(self.weights.f32_place(name, &spec.shape)?);
        Ok(numbers)
    }

    /// How a tensor serves as a matrix.
    pub fn layout(&self, spec: &TensorSpec) -> Result<MatrixLayout> {
        MatrixLayout::of(spec)
            .ok_or_else(|| self.damaged(format!("tensor `{}` is not a matrix", spec.name)))
    }

    /// A vector.
    pub fn floats(&self, place: Range<usize>) -> Vec<f32> {
        let values = self.weights.bytes(place).as_chunks().0.iter();
        values.map(|&value| f32::from_le_bytes(value)).collect()
    }

    pub fn damaged(&self, reason: String) -> RuntimeError {
        let path = self.weights.path().to_path_buf();
        ModelError::DamagedWeights { path, reason }.into()
    }
}

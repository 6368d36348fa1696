//! Training over several processes: data parallelism.
//!
//! Every process has the whole model and computes a share of each step's batches
//! ([`crate::data::batches::Round`]); a [`Communicator`] sums their gradients, and all of them take the same
//! optimizer step. Process 0 alone writes files and validates. [`SingleProcess`] is the communicator of one
//! process.

mod single;

use attentive_model::tensors::TensorSpec;
use attentive_nn::parameters::to_vec;
use burn::tensor::{Device, Tensor, TensorData};

pub use single::SingleProcess;

use crate::optim::optimizer::Gradients;

/// What processes that train together say to each other.
///
/// Every process must call the same methods in the same order. A process that fails must end the others, which
/// would wait for it forever.
pub trait Communicator {
    /// Which process this is, from 0.
    fn rank(&self) -> usize;

    /// How many processes there are.
    fn size(&self) -> usize;

    /// Replaces the values by their sums over all processes; the same bits in each of them.
    fn all_reduce(&self, values: &mut [f32]);

    /// [`Communicator::all_reduce`] for a few numbers in double precision.
    fn all_reduce_scalars(&self, values: &mut [f64]);

    /// Replaces the bytes by those of process 0.
    fn broadcast(&self, bytes: &mut Vec<u8>);

    /// Waits until every process is here.
    fn barrier(&self);

    /// Whether this is the process that writes.
    fn is_root(&self) -> bool {
        self.rank() == 0
    }

    /// Whether any process says yes: a decision that all of them take together.
    fn any(&self, yes: bool) -> bool {
        let mut votes = [f64::from(u8::from(yes))];
        self.all_reduce_scalars(&mut votes);
        votes[0] > 0.0
    }
}

/// Sums the gradients of all processes; one that had no batch of the step adds zeros.
pub fn all_reduce_gradients(
    communicator: &dyn Communicator,
    gradients: &mut Gradients,
    tensors: &[TensorSpec],
    device: &Device,
) {
    for tensor in tensors {
        let mut values = match gradients.get(&tensor.name) {
            Some(gradient) => to_vec(gradient),
            None => vec![0.0; tensor.len()],
        };
        communicator.all_reduce(&mut values);
        let sum = Tensor::from_data(TensorData::new(values, [tensor.len()]), device);
        gradients.insert(tensor.name.clone(), sum);
    }
}

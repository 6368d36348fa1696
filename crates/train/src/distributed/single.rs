//! The communicator of a process that trains alone: there is nobody to talk to.

use super::Communicator;

/// One process.
#[derive(Debug, Clone, Copy)]
pub struct SingleProcess;

impl Communicator for SingleProcess {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn all_reduce(&self, _values: &mut [f32]) {}

    fn all_reduce_scalars(&self, _values: &mut [f64]) {}

    fn broadcast(&self, _bytes: &mut Vec<u8>) {}

    fn barrier(&self) {}
}

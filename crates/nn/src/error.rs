//! What can go wrong between a model directory and a model on a device.

use attentive_model::ModelError;

/// Errors of loading models and choosing devices.
#[derive(Debug, thiserror::Error)]
pub enum NnError {
    /// The device asked for does not exist in this build.
    #[error("unknown device `{asked}`: this build has {available}. GPU devices are cargo features: build with `--features {}`", asked.split(':').next().unwrap_or("wgpu"))]
    UnknownDevice {
        /// What the user wrote.
        asked: String,
        /// What would have worked.
        available: String,
    },
    /// The machine has fewer devices.
    #[error(
        "there is no device `{asked}`: {found} of this kind were found, and they are counted from 0"
    )]
    NoSuchDevice {
        /// What the user wrote.
        asked: String,
        /// How many there are.
        found: usize,
    },
    /// The model directory cannot be read, or its weights do not fit its configuration.
    #[error(transparent)]
    Model(#[from] ModelError),
}

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
    /// A parameter of the model is missing in the file.
    #[error(
        "{file}: no tensor `{name}`, which this architecture needs; config.json and model.safetensors do not belong together"
    )]
    MissingTensor {
        /// The weights file.
        file: String,
        /// The parameter's name.
        name: String,
    },
    /// A parameter has another shape in the file than in the model.
    #[error(
        "{file}: tensor `{name}` has shape {found:?}, the architecture in config.json needs {expected:?}"
    )]
    WrongShape {
        /// The weights file.
        file: String,
        /// The parameter's name.
        name: String,
        /// What the architecture asks for.
        expected: Vec<usize>,
        /// What the file holds.
        found: Vec<usize>,
    },
    /// Reading the model directory failed.
    #[error(transparent)]
    Model(#[from] ModelError),
}

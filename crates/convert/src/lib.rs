//! Other programs' models, read and turned into model directories.
//!
//! ```text
//! weights of another program --files--> named tensors --> model directory (attentive-model)
//! ```
//!
//! - [`files`]: the readers of the files themselves, each with strict limits; nothing in them is ever executed.
//! - [`import`]: a folder or file of another program becomes a model directory.
//! - [`error`]: the one error type; each message names the file, the place and the remedy.

pub mod error;
pub mod export;
pub mod files;
mod import;
mod transpose;

pub use error::{ConvertError, Result};
pub use import::{Format, ImportOptions, Imported, WeightKind, detect, import};

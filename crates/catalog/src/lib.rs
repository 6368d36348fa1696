//! Which model a name means, for every program that opens models: the binary, Python, C.
//!
//! ```text
//! "de-en", a folder --Choice::of_any--> Choice --open--> ModelDir --(attentive-runtime)--> Translator
//! ```
//!
//! - [`choice`]: a built-in model (`attentive-models`), one that was pulled (`attentive-hub`), or a model directory; and
//!   the options that are usual for each.
//! - [`foreign`]: models of other programs (`attentive-convert`), imported into the [`cache`] the first time.
//! - [`error`]: the one error type; each message names what was asked for and the remedy.

pub mod cache;
pub mod choice;
pub mod error;
pub mod foreign;

pub use choice::{Choice, built_in_names, choose_target};
pub use error::{CatalogError, Result};
pub use foreign::Notice;

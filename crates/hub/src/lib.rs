//! Models of the Hugging Face hub: fetched, converted, and kept where `--from` and `--to` find them.
//!
//! ```text
//! fr-en --name--> Helsinki-NLP/opus-mt-fr-en --repository--> commit and files --download--> the shared HF cache
//!                                                                                                  |
//! translate --from fr --to en <--route-- store <--pull-- (attentive-convert) ----------------------+
//! ```
//!
//! - [`name`]: what the user calls a model, and which repositories may be meant.
//! - [`settings`]: endpoint, token, cache and the other things that the environment decides.
//! - `http` asks the server, `repository` what it has, `download` fetches a file, `checksum` verifies it.
//! - [`fetch`]: all files of a model that are needed, into the cache.
//! - [`store`]: the models that were converted, in the user's data folder.
//! - [`mod@pull`]: from a name to a model in the store.
//! - [`route`]: which models lead from one language to another.
//! - [`error`]: the one error type; each message names what was asked for and the remedy.
//!
//! A server is not trusted: names are checked before they become paths, sizes are bounded, contents must have
//! the checksum that was announced, and the token goes to the endpoint alone.

mod checksum;
mod download;
pub mod error;
pub mod fetch;
mod http;
pub mod name;
pub mod pull;
mod repository;
pub mod route;
pub mod settings;
pub mod store;

pub use error::{HubError, Result};
pub use fetch::Event;
pub use name::{ModelName, Repository};
pub use pull::{Pulled, pull};
pub use settings::Settings;
pub use store::{Store, StoredModel};

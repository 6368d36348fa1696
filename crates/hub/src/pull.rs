//! From a name to a model in the store: found, fetched, converted.
//!
//! [`crate::fetch`] fetches, a converter makes a model directory of what came, [`crate::store`] keeps it.

use std::path::Path;

use crate::error::HubError;
use crate::fetch::{Event, Hub};
use crate::name::ModelName;
use crate::settings::Settings;
use crate::store::{Source, Store, StoredModel};

/// A model that is in the store now.
#[derive(Debug)]
pub struct Pulled<T> {
    /// The model.
    pub model: StoredModel,
    /// What the converter said; nothing if the model was there already.
    pub converted: Option<T>,
}

/// Puts the newest version of a model into the store. `convert` makes a model directory (its second argument) out
/// of the files in a folder (its first).
pub fn pull<T, E: From<HubError>>(
    name: &ModelName,
    settings: &Settings,
    store: &Store,
    observe: &dyn Fn(Event<'_>),
    convert: impl FnOnce(&Path, &Path) -> std::result::Result<T, E>,
) -> std::result::Result<Pulled<T>, E> {
    let hub = Hub::new(settings, observe);
    let found = hub.find(name)?;
    let source = Source {
        name: found.repository.clone(),
        commit: found.commit.clone(),
        license: found.license.clone(),
    };
    let converted = if store.has(&source) {
        None
    } else {
        let files = hub.fetch(&found)?;
        let waiting = || observe(Event::Waiting);
        store.install(&source, waiting, |out| {
            observe(Event::Converting);
            convert(&files, out)
        })?
    };
    let model = store.read(&source.name)?;
    Ok(Pulled { model, converted })
}

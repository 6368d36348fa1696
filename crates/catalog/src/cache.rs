//! Where things are kept that can be made again: packed weights, and models of other programs that were imported.

use std::env;
use std::path::PathBuf;

/// The folder that `ATTENTIVE_CACHE` names, none if it is empty, and without it where the system keeps such things.
pub fn folder() -> Option<PathBuf> {
    let path = |name| env::var_os(name).map(PathBuf::from);
    if let Some(folder) = path("ATTENTIVE_CACHE") {
        return Some(folder).filter(|folder| !folder.as_os_str().is_empty());
    }
    let caches = if cfg!(windows) {
        path("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        path("HOME").map(|home| home.join("Library/Caches"))
    } else {
        let chosen = path("XDG_CACHE_HOME").filter(|folder| folder.is_absolute());
        chosen.or_else(|| path("HOME").map(|home| home.join(".cache")))
    };
    caches
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("attentive"))
}

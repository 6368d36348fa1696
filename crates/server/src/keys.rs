//! API keys: one in each line of a file, compared without telling by time how much was right.

use std::path::Path;

use crate::error::ServerError;

/// The keys that may be used.
#[derive(Debug)]
pub struct Keys(Vec<blake3::Hash>);

impl Keys {
    /// Reads a file; empty lines and those that begin with `#` are no keys.
    pub fn read(path: &Path) -> Result<Self, ServerError> {
        let text = std::fs::read_to_string(path).map_err(|source| ServerError::KeyFile {
            path: path.to_owned(),
            source,
        })?;
        let lines = text.lines().map(str::trim);
        let keys = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let keys: Vec<_> = keys.map(|key| blake3::hash(key.as_bytes())).collect();
        if keys.is_empty() {
            return Err(ServerError::NoKeys(path.to_owned()));
        }
        Ok(Self(keys))
    }

    /// Whether this is one of them. Hashes are compared in constant time, and all of them.
    pub fn allow(&self, key: &str) -> bool {
        let given = blake3::hash(key.as_bytes());
        let equal = self.0.iter().filter(|known| **known == given);
        equal.count() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_lines_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        std::fs::write(&path, "# people\n one \n\ntwo\n").unwrap();
        let keys = Keys::read(&path).unwrap();
        for (key, allowed) in [
            ("one", true),
            ("two", true),
            ("", false),
            ("# people", false),
        ] {
            assert_eq!(keys.allow(key), allowed, "{key}");
        }
        std::fs::write(&path, "# nobody\n").unwrap();
        let message = Keys::read(&path).unwrap_err().to_string();
        assert!(message.contains("holds no key"), "{message}");
    }
}

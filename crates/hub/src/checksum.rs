//! The checksum that the hub announces for a file in its ETag: SHA-256 of large files, git's own of small ones.
//!
//! `download` compares it with what came.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};

/// What a file's checksum must be; also the name of its blob in the cache, so it has hexadecimal digits only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checksum {
    hex: String,
}

impl Checksum {
    /// Reads an ETag: `"HEX"`, or `W/"HEX"`, of 40 or 64 digits.
    pub fn of_etag(etag: &str) -> Option<Self> {
        let hex = etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"');
        let digits = hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        (digits && [SHA1, SHA2].contains(&hex.len())).then(|| Self {
            hex: hex.to_owned(),
        })
    }

    pub fn hex(&self) -> &str {
        &self.hex
    }

    /// Begins to compute the checksum of a file of this size.
    pub fn begin(&self, size: u64) -> Digest {
        if self.hex.len() == SHA2 {
            return Digest(Context::new(&SHA256));
        }
        let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        context.update(format!("blob {size}\0").as_bytes());
        Digest(context)
    }

    /// Whether a file has this size and this checksum.
    pub fn is_of(&self, path: &Path, size: u64) -> io::Result<bool> {
        let mut file = File::open(path)?;
        if file.metadata()?.len() != size {
            return Ok(false);
        }
        let mut digest = self.begin(size);
        digest.read(&mut file)?;
        Ok(digest.finish() == self.hex)
    }
}

/// A checksum in the making.
#[derive(Clone)]
pub(crate) struct Digest(Context);

impl Digest {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Takes in all that a file still holds; how much that was.
    pub fn read(&mut self, file: &mut impl Read) -> io::Result<u64> {
        let mut buffer = vec![0; 1 << 16];
        let mut read = 0;
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(read),
                count => {
                    self.update(&buffer[..count]);
                    read += count as u64;
                }
            }
        }
    }

    pub fn finish(self) -> String {
        let digest = self.0.finish();
        let bytes = digest.as_ref().iter();
        bytes.map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Digits of either kind.
const SHA1: usize = 40;
const SHA2: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_are_those_of_git_and_of_sha256sum() {
        // printf hello | git hash-object --stdin; printf hello | sha256sum
        for hex in [
            "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0",
            "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
        ] {
            let checksum = Checksum::of_etag(&format!("\"{hex}\"")).expect("a sound ETag");
            let mut digest = checksum.begin(5);
            digest.update(b"hel");
            digest.update(b"lo");
            assert_eq!(digest.finish(), hex);
        }
    }

    #[test]
    fn an_etag_that_is_no_checksum_is_refused() {
        let sha1 = "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0";
        assert!(Checksum::of_etag(&format!("W/\"{sha1}\"")).is_some());
        for etag in [
            "",
            "\"abc\"",
            "../../../etc/passwd",
            &sha1[1..],
            &sha1.to_uppercase(),
            &format!("../{}", &sha1[3..]),
        ] {
            assert_eq!(Checksum::of_etag(etag), None, "{etag}");
        }
    }
}

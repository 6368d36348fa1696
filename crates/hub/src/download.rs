//! One file from the hub into the shared cache: whole and with the right checksum, or not at all.
//!
//! ```text
//! models--ORG--NAME/blobs/CHECKSUM.incomplete     what has come so far; the next attempt goes on there
//! models--ORG--NAME/blobs/CHECKSUM                the file
//! .locks/models--ORG--NAME/CHECKSUM.lock          held by whoever fetches it
//! ```
//!
//! These are the names that other programs of the hub use too, so that none fetches what another has. Before it:
//! `http`; around it: [`crate::fetch`].

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use attentive_model::durable;
use ureq::Body;
use ureq::http::{Response, StatusCode, header};

use crate::checksum::{Checksum, Digest};
use crate::error::{HubError, Result};
use crate::fetch::Event;
use crate::http::{Client, StatusInfo, bad_answer, is_redirect, text_header};
use crate::name::Repository;

/// A file on the hub.
#[derive(Debug)]
pub(crate) struct RemoteFile {
    pub url: String,
    pub checksum: Checksum,
    pub size: u64,
}

impl RemoteFile {
    /// Asks the hub about a file that may have at most `limit` bytes.
    pub fn find(
        client: &Client<'_>,
        repository: &Repository,
        url: String,
        limit: u64,
    ) -> Result<Self> {
        let response = client.head(&url)?;
        let status = response.status();
        if !status.is_success() && !is_redirect(status) {
            let has_token = client.settings.token.is_some();
            return Err(StatusInfo::of(&response).error(&url, repository, has_token));
        }
        let either =
            |linked, own| text_header(&response, linked).or_else(|| text_header(&response, own));
        let etag = either("x-linked-etag", "etag").unwrap_or_default();
        let Some(checksum) = Checksum::of_etag(&etag) else {
            return Err(bad_answer(
                &url,
                format!("its ETag {etag:?} is no checksum"),
            ));
        };
        let size = either("x-linked-size", "content-length").and_then(|size| size.parse().ok());
        let Some(size) = size else {
            return Err(bad_answer(&url, "its size is not told"));
        };
        if size > limit {
            return Err(HubError::TooLarge {
                url,
                found: size,
                limit,
            });
        }
        Ok(Self {
            url,
            checksum,
            size,
        })
    }

    /// Puts the file into `blobs`, unless it is there; returns its path. `progress` is told how many bytes there are,
    /// which can become fewer.
    pub fn download(
        &self,
        client: &Client<'_>,
        blobs: &Path,
        locks: &Path,
        progress: &dyn Fn(u64),
    ) -> Result<PathBuf> {
        let name = self.checksum.hex();
        let (blob, part) = (blobs.join(name), blobs.join(format!("{name}.incomplete")));
        fs::create_dir_all(blobs).map_err(HubError::io("create", blobs))?;
        let _lock = lock(&locks.join(format!("{name}.lock")), || {
            client.observe(Event::Waiting)
        })?;
        if blob.exists() {
            let io = HubError::io("read", &blob);
            if self.checksum.is_of(&blob, self.size).map_err(io)? {
                progress(self.size);
                return Ok(blob);
            }
            fs::remove_file(&blob).map_err(HubError::io("remove", &blob))?;
        }
        // What an interrupted attempt left may be damaged, which shows at the end; then once more from the start.
        let mut found = self.complete(client, &part, progress)?;
        if found != name {
            fs::remove_file(&part).map_err(HubError::io("remove", &part))?;
            found = self.complete(client, &part, progress)?;
        }
        if found != name {
            fs::remove_file(&part).map_err(HubError::io("remove", &part))?;
            return Err(HubError::Checksum {
                url: self.url.clone(),
                expected: name.to_owned(),
                found,
            });
        }
        durable::sync_file(&part).map_err(HubError::io("write", &part))?;
        durable::rename(&part, &blob).map_err(HubError::io("write", &blob))?;
        Ok(blob)
    }

    /// Fetches what is still missing in `part`; returns the checksum of the whole.
    fn complete(&self, client: &Client<'_>, part: &Path, progress: &dyn Fn(u64)) -> Result<String> {
        let mut part = Part::open(part, self)?;
        progress(part.length);
        let mut failures = 0;
        while part.length < self.size {
            let began_at = part.length;
            let response = client.get_from(&self.url, began_at)?;
            let lost = match self.begins_at(&response, began_at)? {
                Some(first) => {
                    if first != part.length {
                        part.clear()?;
                    }
                    part.fill(response.into_body(), progress)?
                }
                None => {
                    part.clear()?;
                    Some("the server cannot go on where the download ended".to_owned())
                }
            };
            let Some(reason) = lost else { break };
            // A server that sends a little each time would be asked for ever.
            if part.length < began_at.saturating_add(WORTH_ASKING_AGAIN) {
                failures += 1;
            } else {
                failures = 1;
            }
            if failures >= client.settings.retry.attempts {
                return Err(client.lost(&self.url, &reason, failures));
            }
            client.pause(&reason, client.wait_before(failures + 1));
        }
        Ok(part.digest.finish())
    }

    /// The position of the first byte of an answer; none if the server says that there is no such position.
    fn begins_at(&self, response: &Response<Body>, asked: u64) -> Result<Option<u64>> {
        let (first, end) = match response.status() {
            StatusCode::OK => {
                let length = text_header(response, "content-length").and_then(|n| n.parse().ok());
                (0, length.unwrap_or(self.size))
            }
            StatusCode::PARTIAL_CONTENT => {
                let range =
                    text_header(response, header::CONTENT_RANGE.as_str()).unwrap_or_default();
                let parsed = content_range(&range);
                parsed.ok_or_else(|| bad_answer(&self.url, format!("its range is {range:?}")))?
            }
            StatusCode::RANGE_NOT_SATISFIABLE if asked > 0 => return Ok(None),
            status => {
                let (url, status, attempts) = (self.url.clone(), status.as_u16(), 1);
                return Err(HubError::Status {
                    url,
                    status,
                    attempts,
                });
            }
        };
        if end != self.size {
            return Err(HubError::Length {
                url: self.url.clone(),
                expected: self.size,
                found: end,
            });
        }
        if first != 0 && first != asked {
            let reason = format!("byte {asked} was asked for, but {first} came");
            return Err(bad_answer(&self.url, reason));
        }
        Ok(Some(first))
    }
}

/// A file that is not complete yet.
struct Part<'a> {
    remote: &'a RemoteFile,
    path: PathBuf,
    file: File,
    length: u64,
    digest: Digest,
}

impl<'a> Part<'a> {
    /// Goes on with what an earlier attempt left.
    fn open(path: &Path, remote: &'a RemoteFile) -> Result<Self> {
        let io = HubError::io("write", path);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).map_err(&io)?;
        let mut left = file.metadata().map_err(&io)?.len();
        if left > remote.size {
            file.set_len(0).map_err(&io)?;
            left = 0;
        }
        let mut digest = remote.checksum.begin(remote.size);
        let length = digest.read(&mut (&mut file).take(left)).map_err(&io)?;
        Ok(Self {
            remote,
            path: path.to_path_buf(),
            file,
            length,
            digest,
        })
    }

    /// Begins anew.
    fn clear(&mut self) -> Result<()> {
        let io = HubError::io("write", &self.path);
        self.file.set_len(0).map_err(&io)?;
        self.file.seek(SeekFrom::Start(0)).map_err(&io)?;
        self.length = 0;
        self.digest = self.remote.checksum.begin(self.remote.size);
        Ok(())
    }

    /// Appends what comes, up to the file's size and no further; tells why it ended early, if it did.
    fn fill(&mut self, body: Body, progress: &dyn Fn(u64)) -> Result<Option<String>> {
        let mut body = body.into_reader();
        let mut buffer = vec![0; 1 << 16];
        while self.length < self.remote.size {
            let missing = usize::try_from(self.remote.size - self.length).unwrap_or(usize::MAX);
            let most = buffer.len().min(missing);
            let count = match body.read(&mut buffer[..most]) {
                Ok(0) => return Ok(Some("the connection ended early".to_owned())),
                Ok(count) => count,
                Err(error) => return Ok(Some(error.to_string())),
            };
            let written = self.file.write_all(&buffer[..count]);
            written.map_err(HubError::io("write", &self.path))?;
            self.digest.update(&buffer[..count]);
            self.length += count as u64;
            progress(self.length);
        }
        Ok(None)
    }
}

/// A connection that brought so many bytes was none that failed.
const WORTH_ASKING_AGAIN: u64 = 1 << 20;

/// `bytes 100-199/200`: the first byte, and the size of the whole file.
fn content_range(range: &str) -> Option<(u64, u64)> {
    let (span, size) = range.strip_prefix("bytes ")?.split_once('/')?;
    let (first, _) = span.split_once('-')?;
    Some((first.parse().ok()?, size.parse().ok()?))
}

/// A lock that is held until it is dropped, or its process ends; `waiting` is called if somebody else has it.
pub(crate) fn lock(path: &Path, waiting: impl FnOnce()) -> Result<File> {
    let io = HubError::io("lock", path);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(&io)?;
    }
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(&io)?;
    if file.try_lock().is_err() {
        waiting();
        file.lock().map_err(&io)?;
    }
    Ok(file)
}

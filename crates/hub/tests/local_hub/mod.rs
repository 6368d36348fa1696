//! A server with the layout of the Hugging Face hub, for tests: repositories in memory, on this machine.
//!
//! Large files are redirected to another server, as the hub does it. A test can change any answer, to be the server
//! that loses connections, sends something else or means harm.

#![allow(dead_code)] // Each test uses a part of this.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

/// A running server; it ends with the process.
pub struct LocalHub {
    pub endpoint: String,
    /// Where large files are.
    pub storage: String,
    state: Arc<State>,
}

struct State {
    repositories: Mutex<BTreeMap<String, Files>>,
    requests: Mutex<Vec<Request>>,
    change: Box<Change>,
}

pub type Files = BTreeMap<String, Vec<u8>>;

/// Changes an answer.
pub type Change = dyn Fn(&Request, &mut Answer) + Send + Sync;

/// What was asked.
#[derive(Debug, Clone)]
pub struct Request {
    /// `GET /path`
    pub line: String,
    pub server: Server,
    pub authorization: Option<String>,
    /// The first byte that was asked for.
    pub range: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    Hub,
    Storage,
}

/// What is answered.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// After so many bytes of the body the connection ends.
    pub cut: Option<usize>,
    /// After the body there comes more, without an end.
    pub endless: bool,
    /// After the body, or where it is cut, nothing happens for so long.
    pub stall: Duration,
}

impl Answer {
    pub fn status(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.set(name, value);
        self
    }

    pub fn set(&mut self, name: &str, value: impl ToString) {
        self.headers.retain(|(key, _)| key != name);
        self.headers.push((name.to_owned(), value.to_string()));
    }
}

/// The commit of every repository.
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

impl LocalHub {
    /// A server that behaves.
    pub fn start(repositories: &[(&str, Files)]) -> Self {
        Self::with_change(repositories, |_, _| {})
    }

    /// A server whose answers a test changes.
    pub fn with_change(
        repositories: &[(&str, Files)],
        change: impl Fn(&Request, &mut Answer) + Send + Sync + 'static,
    ) -> Self {
        let repositories = repositories
            .iter()
            .map(|(name, files)| ((*name).to_owned(), files.clone()));
        let state = Arc::new(State {
            repositories: Mutex::new(repositories.collect()),
            requests: Mutex::default(),
            change: Box::new(change),
        });
        let listen = || TcpListener::bind("127.0.0.1:0").expect("a free port");
        let (hub, storage) = (listen(), listen());
        let port = |listener: &TcpListener| listener.local_addr().expect("bound").port();
        let endpoint = format!("http://127.0.0.1:{}", port(&hub));
        let address = format!("http://localhost:{}", port(&storage));
        for (listener, server) in [(hub, Server::Hub), (storage, Server::Storage)] {
            let (state, address) = (state.clone(), address.clone());
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let (state, address) = (state.clone(), address.clone());
                    // A client that leaves early is none of our business.
                    thread::spawn(move || drop(state.serve(stream, server, &address)));
                }
            });
        }
        Self {
            endpoint,
            storage: address,
            state,
        }
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().expect("sound").clone()
    }

    /// The requests for the content of files.
    pub fn downloads(&self, part: &str) -> Vec<Request> {
        let mut requests = self.requests();
        requests.retain(|request| request.line.starts_with("GET ") && request.line.contains(part));
        requests
    }

    /// Changes a file of a repository.
    pub fn put(&self, repository: &str, file: &str, content: &[u8]) {
        let mut repositories = self.state.repositories.lock().expect("sound");
        let files = repositories.get_mut(repository).expect("a repository");
        files.insert(file.to_owned(), content.to_vec());
    }
}

impl State {
    fn serve(&self, mut stream: TcpStream, server: Server, storage: &str) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        let first = lines.next().unwrap_or(Ok(String::new()))?;
        let mut request = Request {
            line: first.trim_end_matches(" HTTP/1.1").to_owned(),
            server,
            authorization: None,
            range: None,
        };
        for line in lines {
            let line = line?;
            let Some((name, value)) = line.split_once(": ") else {
                break;
            };
            match name.to_lowercase().as_str() {
                "authorization" => request.authorization = Some(value.to_owned()),
                "range" => {
                    let first = value.trim_start_matches("bytes=").trim_end_matches('-');
                    request.range = first.parse().ok();
                }
                _ => {}
            }
        }
        self.requests.lock().expect("sound").push(request.clone());
        let mut answer = self.answer(&request, storage);
        (self.change)(&request, &mut answer);

        let mut head = format!("HTTP/1.1 {} x\r\nConnection: close\r\n", answer.status);
        let named = |name: &str| answer.headers.iter().any(|(key, _)| key == name);
        if !answer.endless && !named("Content-Length") {
            let _ = write!(head, "Content-Length: {}\r\n", answer.body.len());
        }
        for (name, value) in &answer.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n").as_bytes())?;
        if request.line.starts_with("HEAD ") {
            return Ok(());
        }
        let end = answer
            .cut
            .unwrap_or(answer.body.len())
            .min(answer.body.len());
        stream.write_all(&answer.body[..end])?;
        thread::sleep(answer.stall);
        if answer.endless {
            loop {
                stream.write_all(&[b'x'; 1 << 14])?;
            }
        }
        Ok(())
    }

    fn answer(&self, request: &Request, storage: &str) -> Answer {
        let repositories = self.repositories.lock().expect("sound");
        let path = request.line.split(' ').nth(1).unwrap_or_default();
        if let Some(hash) = path.strip_prefix("/storage/") {
            let mut contents = repositories.values().flat_map(|files| files.values());
            return match contents.find(|content| sha256(content) == hash) {
                Some(content) => part(content, request.range),
                None => Answer::status(404),
            };
        }
        if let Some(query) = path.strip_prefix("/api/models?") {
            let value = |name: &str| {
                let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
                pairs
                    .find(|(key, _)| *key == name)
                    .map_or("", |(_, value)| value)
            };
            let wanted = |name: &&String| {
                name.starts_with(value("author")) && name.contains(value("search"))
            };
            let ids: Vec<String> = repositories
                .keys()
                .filter(wanted)
                .map(|id| format!("{{\"id\":\"{id}\"}}"))
                .collect();
            let body = format!("[{}]", ids.join(",")).into_bytes();
            return Answer {
                body,
                ..Answer::status(200)
            };
        }
        if let Some(name) = path
            .strip_prefix("/api/models/")
            .and_then(|rest| rest.strip_suffix("/revision/main"))
        {
            let Some(files) = repositories.get(name) else {
                return Answer::status(401).with("X-Error-Code", "RepoNotFound");
            };
            let names: Vec<String> = files
                .keys()
                .map(|file| format!("{{\"rfilename\":\"{file}\"}}"))
                .collect();
            let names = names.join(",");
            let tags = "\"marian\",\"license:apache-2.0\"";
            let body = format!("{{\"sha\":\"{COMMIT}\",\"siblings\":[{names}],\"tags\":[{tags}]}}")
                .into_bytes();
            return Answer {
                body,
                ..Answer::status(200)
            };
        }
        let mut parts = path.trim_start_matches('/').split("/resolve/");
        let (repository, rest) = (
            parts.next().unwrap_or_default(),
            parts.next().unwrap_or_default(),
        );
        let file = rest.split_once('/').map_or("", |(_, file)| file);
        let Some(content) = repositories
            .get(repository)
            .and_then(|files| files.get(file))
        else {
            return Answer::status(404).with("X-Error-Code", "EntryNotFound");
        };
        let answer = if content.len() > SMALL {
            let hash = sha256(content);
            Answer::status(302)
                .with("Location", format!("{storage}/storage/{hash}"))
                .with("X-Linked-Etag", format!("\"{hash}\""))
                .with("X-Linked-Size", content.len())
        } else {
            let mut blob = format!("blob {}\0", content.len()).into_bytes();
            blob.extend(content);
            let hash = hex(digest(&SHA1_FOR_LEGACY_USE_ONLY, &blob).as_ref());
            part(content, request.range).with("ETag", format!("\"{hash}\""))
        };
        answer.with("X-Repo-Commit", COMMIT)
    }
}

/// Larger files are elsewhere.
const SMALL: usize = 1000;

/// The bytes of a file that were asked for.
fn part(content: &[u8], first: Option<usize>) -> Answer {
    let (size, last) = (content.len(), content.len().saturating_sub(1));
    match first {
        None => Answer {
            body: content.to_vec(),
            ..Answer::status(200)
        },
        Some(first) if first < size => Answer {
            body: content[first..].to_vec(),
            ..Answer::status(206).with("Content-Range", format!("bytes {first}-{last}/{size}"))
        },
        Some(_) => Answer::status(416).with("Content-Range", format!("bytes */{size}")),
    }
}

pub fn sha256(content: &[u8]) -> String {
    hex(digest(&SHA256, content).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Files of a model that nobody can translate with: the weights are noise.
pub fn noise() -> Files {
    let mut seed = 7u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 56) as u8
    };
    let weights: Vec<u8> = std::iter::repeat_with(&mut next).take(400_000).collect();
    let vocab: Vec<u8> = std::iter::repeat_with(&mut next).take(5000).collect();
    [
        ("config.json", b"{}".to_vec()),
        ("source.spm", b"source".to_vec()),
        ("vocab.json", vocab),
        ("model.safetensors", weights.clone()),
        ("pytorch_model.bin", weights[1..].to_vec()),
        ("tf_model.h5", weights[2..].to_vec()),
        ("README.md", b"# A model".to_vec()),
    ]
    .map(|(name, content)| (name.to_owned(), content))
    .into()
}

//! Pulling models from a server that has the hub's layout, and behaves well, badly or worse.
//!
//! What was fetched is "converted" into a model directory that holds the size of the weights, so that these tests
//! are about fetching and keeping; `tests/pull.rs` of the workspace converts and translates.

mod local_hub;

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use attentive_hub::settings::{Network, Retry};
use attentive_hub::{Event, HubError, Pulled, Settings, Store};
use attentive_model::fake_dir;
use local_hub::{Answer, COMMIT, Files, LocalHub, Request, Server, noise, sha256};

const NAME: &str = "Helsinki-NLP/opus-mt-fr-en";
const WEIGHTS: usize = 400_000;

/// A user: a cache and a store of their own.
struct User {
    folder: tempfile::TempDir,
    settings: Settings,
}

impl User {
    fn of(endpoint: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let settings = Settings {
            endpoint: endpoint.to_owned(),
            token: None,
            cache: folder.path().join("cache"),
            network: Network::Online,
            retry: Retry {
                attempts: 3,
                wait: Duration::from_millis(1),
            },
            largest_weights: 1 << 20,
        };
        Self { folder, settings }
    }

    fn store(&self) -> Store {
        Store::at(self.folder.path().join("store"))
    }

    fn pull(&self, name: &str) -> Result<Pulled<u64>, HubError> {
        self.pull_seeing(name, &|_| {})
    }

    fn pull_seeing(
        &self,
        name: &str,
        observe: &dyn Fn(Event<'_>),
    ) -> Result<Pulled<u64>, HubError> {
        let name = name.parse()?;
        attentive_hub::pull(
            &name,
            &self.settings,
            &self.store(),
            observe,
            |files, out| {
                fake_dir::write(out)?;
                let weights = fs::metadata(files.join("model.safetensors"));
                Ok(weights.map_or(0, |weights| weights.len()))
            },
        )
    }

    /// The message of a pull that must fail, and leave no model and no file that looks complete.
    #[track_caller]
    fn refused(&self, name: &str) -> String {
        let error = self.pull(name).expect_err("this must not succeed");
        assert!(self.store().list().expect("readable").is_empty());
        for path in self.blobs() {
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            let content = fs::read(&path).expect("readable");
            let complete = name.len() == 64 && sha256(&content) != name;
            assert!(!complete, "{name} is in the cache, but is something else");
        }
        error.to_string()
    }

    fn blobs(&self) -> Vec<PathBuf> {
        let folder = self.cached().join("blobs");
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries
            .map(|entry| entry.expect("readable").path())
            .collect()
    }

    fn cached(&self) -> PathBuf {
        self.settings
            .cache
            .join("models--Helsinki-NLP--opus-mt-fr-en")
    }

    fn incomplete(&self) -> PathBuf {
        let hash = sha256(&noise()["model.safetensors"]);
        self.cached()
            .join("blobs")
            .join(format!("{hash}.incomplete"))
    }
}

fn hub() -> [(&'static str, Files); 1] {
    [(NAME, noise())]
}

fn is_weights(request: &Request) -> bool {
    request.server == Server::Storage
        && request
            .line
            .contains(&sha256(&noise()["model.safetensors"]))
}

#[test]
fn what_is_needed_is_fetched_and_kept_and_nothing_else() {
    let server = LocalHub::start(&hub());
    let user = User::of(&server.endpoint);
    let seen = Cell::new((0, 0));
    let pulled = user.pull_seeing("fr-en", &|event| {
        let (before, total) = seen.get();
        match event {
            Event::Fetching { total } => seen.set((0, total)),
            Event::Progress { done } => {
                assert!(done >= before, "progress goes forward");
                seen.set((done, total));
            }
            _ => {}
        }
    });
    let pulled = pulled.expect("a server that behaves");
    assert_eq!(pulled.converted, Some(WEIGHTS as u64));
    let total = 2 + 6 + 5000 + WEIGHTS as u64;
    assert_eq!(seen.get(), (total, total));

    let model = pulled.model;
    assert_eq!(model.name.to_string(), NAME);
    assert_eq!(model.languages, Some(("fr".to_owned(), "en".to_owned())));
    assert_eq!(model.license.as_deref(), Some("apache-2.0"));
    assert_eq!(model.origin, Some(format!("{NAME}@{COMMIT}")));
    assert_eq!(model.precision, "f32");
    assert!(model.bytes > 1000);

    for unwanted in ["pytorch_model.bin", "tf_model.h5", "README.md"] {
        assert!(
            server.downloads(unwanted).is_empty(),
            "{unwanted} was fetched"
        );
    }
    // The layout that other programs of the hub have.
    assert_eq!(
        fs::read_to_string(user.cached().join("refs/main")).expect("there"),
        COMMIT
    );
    let weights = user
        .cached()
        .join("snapshots")
        .join(COMMIT)
        .join("model.safetensors");
    assert_eq!(
        fs::read(&weights).expect("there"),
        noise()["model.safetensors"]
    );
    let link = fs::read_link(&weights).expect("a link");
    assert!(link.starts_with("../../blobs"), "{link:?}");

    let before = server.requests().len();
    assert_eq!(user.pull("fr-en").expect("there already").converted, None);
    assert_eq!(
        server.requests().len(),
        before + 1,
        "only the commit is asked for"
    );
}

#[test]
fn an_interrupted_download_goes_on_at_every_quarter() {
    for quarter in 0..=4 {
        let cut = WEIGHTS * quarter / 4;
        let times = AtomicUsize::new(0);
        let server = LocalHub::with_change(&hub(), move |request, answer| {
            if is_weights(request) && times.fetch_add(1, Ordering::SeqCst) == 0 {
                answer.cut = Some(cut);
            }
        });
        let mut user = User::of(&server.endpoint);
        user.settings.retry.attempts = 1;
        if quarter < 4 {
            let message = user.refused(NAME);
            assert!(message.contains("goes on where it ended"), "{message}");
            assert_eq!(
                fs::metadata(user.incomplete()).expect("kept").len(),
                cut as u64
            );
        }
        user.pull(NAME).expect("the second time");
        let ranges: Vec<_> = server
            .downloads("/storage/")
            .into_iter()
            .filter(is_weights)
            .collect();
        let asked = ranges.last().expect("asked for").range;
        let expected = (quarter > 0 && quarter < 4).then_some(cut);
        assert_eq!(asked, expected, "after {quarter} quarters");
    }
}

#[test]
fn a_connection_that_is_lost_again_and_again_is_taken_up_within_one_pull() {
    let server = LocalHub::with_change(&hub(), |request, answer| {
        if is_weights(request) && request.range.unwrap_or(0) < WEIGHTS / 2 {
            answer.cut = Some(WEIGHTS / 4);
        }
    });
    let user = User::of(&server.endpoint);
    let retries = Cell::new(0);
    let observe = |event: Event<'_>| {
        retries.set(retries.get() + u32::from(matches!(event, Event::Retry { .. })))
    };
    user.pull_seeing(NAME, &observe)
        .expect("two losses are not too many");
    assert_eq!(retries.get(), 2);
}

#[test]
fn a_server_that_sends_one_byte_at_a_time_is_not_asked_for_ever() {
    let server = LocalHub::with_change(&hub(), |request, answer| {
        if is_weights(request) {
            answer.cut = Some(1);
        }
    });
    let message = User::of(&server.endpoint).refused(NAME);
    assert!(message.contains("(3 times)"), "{message}");
}

#[test]
fn damaged_content_is_refused_and_a_damaged_beginning_is_fetched_again() {
    let damage = |request: &Request, answer: &mut Answer| {
        if is_weights(request) {
            answer.body[10] ^= 1;
        }
    };
    let user = User::of(&LocalHub::with_change(&hub(), damage).endpoint);
    let message = user.refused(NAME);
    assert!(message.contains("checksum"), "{message}");
    assert!(!user.incomplete().exists(), "nothing damaged is kept");

    // Small files have git's checksum.
    let damage = |request: &Request, answer: &mut Answer| {
        if request.line.starts_with("GET ") && request.line.ends_with("config.json") {
            answer.body[0] ^= 1;
        }
    };
    let message = User::of(&LocalHub::with_change(&hub(), damage).endpoint).refused(NAME);
    assert!(message.contains("checksum"), "{message}");

    let server = LocalHub::start(&hub());
    let user = User::of(&server.endpoint);
    for left in [vec![0; 1000], vec![0; WEIGHTS], vec![0; WEIGHTS + 1]] {
        fs::create_dir_all(user.cached().join("blobs")).expect("writable");
        fs::write(user.incomplete(), left).expect("writable");
        user.pull(NAME).expect("a server that behaves");
        fs::remove_dir_all(user.cached()).expect("there");
        user.store()
            .remove(&NAME.parse().expect("sound"))
            .expect("there");
    }
}

#[test]
fn a_blob_that_was_damaged_in_the_cache_is_replaced() {
    let server = LocalHub::start(&hub());
    let user = User::of(&server.endpoint);
    user.pull(NAME).expect("a server that behaves");
    let weights = user
        .cached()
        .join("blobs")
        .join(sha256(&noise()["model.safetensors"]));
    for damage in [vec![0; WEIGHTS], vec![0; 10]] {
        fs::write(&weights, damage).expect("writable");
        user.store()
            .remove(&NAME.parse().expect("sound"))
            .expect("there");
        user.pull(NAME).expect("a server that behaves");
        assert_eq!(
            fs::read(&weights).expect("there"),
            noise()["model.safetensors"]
        );
    }
}

#[test]
fn a_length_that_is_not_as_announced_is_refused() {
    let longer = |request: &Request, answer: &mut Answer| {
        if is_weights(request) {
            answer.body.push(0);
        }
    };
    let shorter = |request: &Request, answer: &mut Answer| {
        if is_weights(request) {
            answer.body.pop();
        }
    };
    for server in [
        LocalHub::with_change(&hub(), longer),
        LocalHub::with_change(&hub(), shorter),
    ] {
        let message = User::of(&server.endpoint).refused(NAME);
        assert!(message.contains("400000 bytes were announced"), "{message}");
    }
    // A range of something else.
    let server = LocalHub::with_change(&hub(), |request, answer| {
        if is_weights(request) && request.range.is_some() {
            answer.set("Content-Range", "bytes 5-9/10");
        }
    });
    let user = User::of(&server.endpoint);
    fs::create_dir_all(user.cached().join("blobs")).expect("writable");
    fs::write(user.incomplete(), &noise()["model.safetensors"][..10]).expect("writable");
    let message = user.refused(NAME);
    assert!(message.contains("but 10 came"), "{message}");
}

#[test]
fn a_server_without_ranges_sends_everything_again() {
    let server = LocalHub::with_change(&hub(), |request, answer| {
        if is_weights(request) && request.range.is_some() {
            *answer = Answer {
                body: noise()["model.safetensors"].clone(),
                ..Answer::status(200)
            };
        }
    });
    let user = User::of(&server.endpoint);
    fs::create_dir_all(user.cached().join("blobs")).expect("writable");
    fs::write(user.incomplete(), &noise()["model.safetensors"][..10]).expect("writable");
    user.pull(NAME).expect("from the start");
    let weights = server.requests().into_iter().filter(is_weights);
    assert_eq!(weights.count(), 1, "what came was used");
}

#[test]
fn what_is_closed_opens_with_the_right_token_only() {
    let server = LocalHub::with_change(&hub(), |request, answer| {
        if request.server == Server::Hub && request.authorization.as_deref() != Some("Bearer right")
        {
            *answer = Answer::status(401).with("X-Error-Code", "GatedRepo");
            if request.authorization.is_none() {
                *answer = Answer::status(401);
            }
        }
    });
    let mut user = User::of(&server.endpoint);
    let message = user.refused(NAME);
    assert!(
        message.contains("name a token that may read it in HF_TOKEN"),
        "{message}"
    );
    user.settings.token = Some("wrong".to_owned());
    let message = user.refused(NAME);
    assert!(
        message.contains("accept it on the page") && !message.contains("wrong"),
        "{message}"
    );
    user.settings.token = Some("right".to_owned());
    user.pull(NAME).expect("the right token");

    let requests = server.requests();
    let stored: Vec<_> = requests
        .iter()
        .filter(|request| request.server == Server::Storage)
        .collect();
    assert!(!stored.is_empty());
    for request in stored {
        assert_eq!(request.authorization, None, "another server got the token");
    }
}

#[test]
fn no_redirect_carries_the_token_to_another_server() {
    let times = AtomicUsize::new(0);
    let other = LocalHub::start(&hub());
    let (elsewhere, storage) = (other.endpoint.clone(), other.storage.clone());
    let server = LocalHub::with_change(&hub(), move |request, answer| {
        let path = request.line.split(' ').nth(1).expect("a path").to_owned();
        // From the hub to another hub, and small files to another storage.
        if path.starts_with("/api/") {
            *answer = Answer::status(307).with("Location", format!("{elsewhere}{path}"));
        } else if request.line.starts_with("GET ") {
            let target = if times.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
                &elsewhere
            } else {
                &storage
            };
            *answer = Answer::status(302).with("Location", format!("{target}{path}"));
        }
    });
    let mut user = User::of(&server.endpoint);
    user.settings.token = Some("secret".to_owned());
    user.pull(NAME).expect("redirects are followed");
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.authorization.is_some())
    );
    let others = other.requests();
    assert!(others.len() > 3, "{others:?}");
    assert!(
        others.iter().all(|request| request.authorization.is_none()),
        "{others:?}"
    );
}

#[test]
fn redirects_without_an_end_or_to_nowhere_are_refused() {
    for (location, part) in [
        ("/api/models/x", "more than 10 redirects"),
        ("//127.0.0.1:1/x", "cannot reach"),
        ("file:///etc/passwd", "redirects to"),
        ("ftp://127.0.0.1:1/x", "redirects to"),
        ("x/y", "redirects to"),
        ("http://", "redirects to"),
        ("", "redirects to"),
    ] {
        let server = LocalHub::with_change(&hub(), move |request, answer| {
            if request.line.contains("/api/") {
                *answer = Answer::status(302).with("Location", location);
            }
        });
        let message = User::of(&server.endpoint).refused(NAME);
        assert!(message.contains(part), "{location}: {message}");
    }
    let server = LocalHub::with_change(&hub(), move |request, answer| {
        if request.line.contains("/resolve/") {
            let path = request.line.split(' ').nth(1).expect("a path");
            *answer = Answer::status(307).with("Location", path);
        }
    });
    let message = User::of(&server.endpoint).refused(NAME);
    assert!(message.contains("more than 10 redirects"), "{message}");
}

#[test]
fn a_name_that_is_not_there_is_answered_with_similar_ones() {
    let names = ["opus-mt-fr-en", "opus-mt-fr-es", "opus-mt-de-en"]
        .map(|name| format!("Helsinki-NLP/{name}"));
    let repositories = names.each_ref().map(|name| (name.as_str(), noise()));
    let server = LocalHub::start(&repositories);
    let user = User::of(&server.endpoint);
    for name in ["fr-eng", "Helsinki-NLP/opus-mt-fr-ene"] {
        let message = user.refused(name);
        for part in [
            "has no model Helsinki-NLP/opus-mt-fr-en",
            "did you mean Helsinki-NLP/opus-mt-fr-en or",
        ] {
            assert!(message.contains(part), "{message}");
        }
    }
    let message = user.refused("nobody/nothing");
    assert!(
        message.ends_with("has no model nobody/nothing"),
        "{message}"
    );
}

#[test]
fn a_pair_that_has_only_a_big_model_gets_that() {
    let server = LocalHub::start(&[("Helsinki-NLP/opus-mt-tc-big-fr-en", noise())]);
    let pulled = User::of(&server.endpoint)
        .pull("fr-en")
        .expect("the big one");
    assert_eq!(
        pulled.model.name.to_string(),
        "Helsinki-NLP/opus-mt-tc-big-fr-en"
    );
    assert_eq!(
        pulled.model.languages,
        Some(("fr".to_owned(), "en".to_owned()))
    );
}

#[test]
fn weights_in_several_files_are_fetched_with_their_index_and_only_whole() {
    let mut files = noise();
    let weights = files.remove("model.safetensors").expect("weights");
    files.retain(|name, _| name != "pytorch_model.bin");
    let (first, second) = weights.split_at(weights.len() / 2);
    let index = "model.safetensors.index.json";
    let names = [1, 2].map(|number| format!("model-0000{number}-of-00002.safetensors"));
    files.insert(index.to_owned(), b"{}".to_vec());
    files.insert(names[0].clone(), first.to_vec());
    files.insert(
        "../../model-00003-of-00003.safetensors".to_owned(),
        vec![7; 9],
    );

    // The second one is missing.
    let server = LocalHub::start(&[(NAME, files.clone())]);
    let message = User::of(&server.endpoint).refused(NAME);
    assert!(message.contains("all of the several files"), "{message}");
    assert!(server.downloads(&names[0]).is_empty(), "nothing is fetched");

    files.insert(names[1].clone(), second.to_vec());
    let server = LocalHub::start(&[(NAME, files)]);
    let user = User::of(&server.endpoint);
    let name = NAME.parse().expect("a name");
    let convert = |files: &Path, out: &Path| -> Result<(), HubError> {
        let read = |name: &String| fs::read(files.join(name)).expect("it was fetched");
        assert!(files.join(index).is_file());
        assert!(names.iter().flat_map(read).eq(weights.iter().copied()));
        Ok(fake_dir::write(out)?)
    };
    attentive_hub::pull(&name, &user.settings, &user.store(), &|_| {}, convert).expect("all files");
}

#[test]
fn a_busy_server_is_asked_again_and_a_broken_one_not_for_ever() {
    for status in [429, 500, 502, 503, 504] {
        let times = AtomicUsize::new(0);
        let server = LocalHub::with_change(&hub(), move |_, answer| {
            if !times.fetch_add(1, Ordering::SeqCst).is_multiple_of(3) {
                *answer = Answer::status(status).with("Retry-After", 0);
            }
        });
        User::of(&server.endpoint)
            .pull(NAME)
            .expect("every third answer is good");
    }
    let server = LocalHub::with_change(&hub(), |_, answer| *answer = Answer::status(503));
    let message = User::of(&server.endpoint).refused(NAME);
    assert!(message.contains("HTTP 503 (3 times)"), "{message}");
    assert_eq!(server.requests().len(), 3);

    // Nobody waits for an hour.
    let server = LocalHub::with_change(&hub(), |_, answer| {
        *answer = Answer::status(429).with("Retry-After", 3600)
    });
    let message = User::of(&server.endpoint).refused(NAME);
    assert!(message.contains("HTTP 429"), "{message}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_server_that_is_not_there_is_said_so() {
    let message = User::of("http://127.0.0.1:1").refused(NAME);
    for part in [
        "cannot reach http://127.0.0.1:1",
        "HF_ENDPOINT",
        "HF_HUB_OFFLINE",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_body_without_an_end_ends_here() {
    let server = LocalHub::with_change(&hub(), |request, answer| {
        answer.endless = request.line.contains("/api/")
    });
    let message = User::of(&server.endpoint).refused(NAME);
    assert!(message.contains("more than the 8388608"), "{message}");

    let server = LocalHub::with_change(&hub(), |request, answer| {
        if is_weights(request) {
            answer.body.clear();
            answer.endless = true;
        }
    });
    let message = User::of(&server.endpoint).refused(NAME);
    assert!(message.contains("checksum"), "{message}");

    let server = LocalHub::with_change(&hub(), |request, answer| {
        if request.line.starts_with("HEAD ") {
            answer.set("X-Linked-Size", u64::MAX);
        }
    });
    let message = User::of(&server.endpoint).refused(NAME);
    assert!(message.contains("more than"), "{message}");
}

#[test]
fn nothing_that_a_server_says_becomes_a_path() {
    let tricks: [fn(&Request, &mut Answer); 6] = [
        |request, answer| replace(request, answer, "config.json", "../../../../evil"),
        |request, answer| {
            replace(
                request,
                answer,
                "model.safetensors",
                "x/../../../model.safetensors",
            )
        },
        |request, answer| replace(request, answer, COMMIT, "../../../../evil"),
        |request, answer| replace(request, answer, COMMIT, "/tmp/evil"),
        |request, answer| header(request, answer, "ETag", "\"../../../../evil\""),
        |request, answer| header(request, answer, "X-Linked-Etag", "/evil"),
    ];
    fn replace(request: &Request, answer: &mut Answer, from: &str, to: &str) {
        if request.line.contains("/api/") {
            let text = String::from_utf8(std::mem::take(&mut answer.body)).expect("text");
            answer.body = text.replace(from, to).into_bytes();
        }
    }
    fn header(request: &Request, answer: &mut Answer, name: &str, value: &str) {
        if request.line.starts_with("HEAD ") {
            answer.set(name, value);
        }
    }
    for trick in tricks {
        let server = LocalHub::with_change(&hub(), trick);
        let user = User::of(&server.endpoint);
        // Some are refused, others ignored.
        let _ = user.pull(NAME);
        let root = user.folder.path();
        for path in all_files(root) {
            let inside = path.starts_with(user.cached())
                || path.starts_with(user.settings.cache.join(".locks"))
                || path.starts_with(user.store().folder());
            assert!(inside, "{path:?} is outside");
            assert!(!path.to_string_lossy().contains("evil"), "{path:?}");
        }
    }
    // What is no commit is refused before anything is fetched: a path outside of the folder would not be seen above.
    for trick in &tricks[2..4] {
        let server = LocalHub::with_change(&hub(), *trick);
        let message = User::of(&server.endpoint).refused(NAME);
        assert!(message.contains("is no commit"), "{message}");
    }
}

fn all_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .expect("readable")
        .map(|entry| entry.expect("readable").path());
    let (folders, mut files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.extend(folders.iter().flat_map(|folder| all_files(folder)));
    files
}

#[test]
fn nonsense_is_an_error_that_says_what_it_is() {
    for (body, part) in [
        ("<html>", "is no JSON"),
        ("{}", "missing field `sha`"),
        ("[1]", "HF_ENDPOINT"),
        ("{\"sha\": \"x\"}", "is no commit"),
        (
            &format!("{{\"sha\": \"{COMMIT}\"}}"),
            "it has none of model.safetensors",
        ),
    ] {
        let body = body.to_owned();
        let server =
            LocalHub::with_change(&hub(), move |_, answer| answer.body = body.clone().into());
        let message = User::of(&server.endpoint).refused(NAME);
        assert!(message.contains(part), "{message}");
    }
    for (name, value, part) in [
        (
            "ETag",
            "W/\"5d41402abc4b2a76b9719d911017c592\"",
            "is no checksum",
        ),
        ("X-Linked-Size", "many", "its size is not told"),
    ] {
        let server = LocalHub::with_change(&hub(), move |request, answer| {
            if request.line.starts_with("HEAD ") {
                answer.set(name, value);
            }
        });
        let message = User::of(&server.endpoint).refused(NAME);
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn without_a_network_the_cache_is_used() {
    let server = LocalHub::start(&hub());
    let mut user = User::of(&server.endpoint);
    user.settings.network = Network::Offline;
    let message = user.refused("fr-en");
    assert!(
        message.contains("HF_HUB_OFFLINE") && message.contains(NAME),
        "{message}"
    );
    user.settings.network = Network::Online;
    user.pull("fr-en").expect("a server that behaves");
    user.store()
        .remove(&"fr-en".parse().expect("sound"))
        .expect("there");

    let before = server.requests().len();
    user.settings.network = Network::Offline;
    let pulled = user.pull("fr-en").expect("from the cache");
    assert_eq!(pulled.model.origin, Some(format!("{NAME}@{COMMIT}")));
    assert_eq!(server.requests().len(), before);
}

#[test]
fn two_at_once_fetch_and_convert_once() {
    let server = LocalHub::with_change(&hub(), |request, _| {
        if is_weights(request) {
            std::thread::sleep(Duration::from_millis(300));
        }
    });
    let user = User::of(&server.endpoint);
    let pulled: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| user.pull(NAME))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    let converted = pulled
        .into_iter()
        .filter(|pulled| pulled.as_ref().expect("pulled").converted.is_some());
    assert_eq!(converted.count(), 1);
    let downloads = server.requests().into_iter().filter(is_weights);
    assert_eq!(downloads.count(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_so() {
    let server = LocalHub::start(&hub());
    let user = User::of(&server.endpoint);
    fs::create_dir_all(user.cached().join("blobs")).expect("writable");
    std::os::unix::fs::symlink("/dev/full", user.incomplete()).expect("writable");
    let error = user.pull(NAME).expect_err("no space").to_string();
    assert!(
        error.contains("the disk is full") && error.contains("Free some space"),
        "{error}"
    );
}

//! A server for a test: in this process, on a free port, with small models that say nonsense, but always the same.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use attentive_model::{ModelDir, fake_dir};
use attentive_runtime::cpu::Compute;
use attentive_runtime::translator::{Lines, Translator, TranslatorOptions};
use attentive_server::{App, Limits, Loader, Options, Served, Server};
use tokio::sync::watch;

pub struct TestServer {
    pub address: SocketAddr,
    pub app: Arc<App>,
    /// The same model, asked without a server.
    pub translator: Translator,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

/// Knows the letters from a to z as words, German to English and back, sentence by sentence.
pub fn fake(folder: &Path) -> Translator {
    let options = TranslatorOptions {
        lines: Lines::RawText,
        threads: Some(1),
        ..TranslatorOptions::default()
    };
    let directory = ModelDir::open(folder).expect("a sound model");
    Translator::of_model(directory, Compute::Auto, options).expect("a sound model")
}

/// Longer than anything takes here, on any machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub fn options() -> Options {
    Options {
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        threads: 2,
        limits: Limits {
            header_time: PATIENCE,
            body_time: PATIENCE,
            translation_time: PATIENCE,
            ..Limits::default()
        },
        ..Options::default()
    }
}

impl TestServer {
    pub fn start() -> Self {
        Self::with(options())
    }

    pub fn with(options: Options) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fake_dir::write(folder.path()).expect("written");
        let path = folder.path().to_owned();
        let loader: Loader = Box::new(move || {
            Ok(vec![
                Served::new("a".to_owned(), "de", "en", fake(&path)),
                Served::new("b".to_owned(), "en", "de", fake(&path)),
            ])
        });
        Self::of(options, loader, folder)
    }

    pub fn of(options: Options, loader: Loader, folder: tempfile::TempDir) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("threads");
        let server = runtime
            .block_on(Server::bind(options, loader))
            .expect("a free port");
        let (address, app) = (server.address().expect("bound"), Arc::clone(server.app()));
        let (stop, stopped) = watch::channel(false);
        let thread = thread::spawn(move || {
            runtime.block_on(server.run(stopped)).expect("it runs");
        });
        Self {
            address,
            app,
            translator: fake(folder.path()),
            stop,
            thread: Some(thread),
            _folder: folder,
        }
    }

    /// A number of the metrics, without a request that would count itself.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.app.metrics.write(self.app.scheduler.waiting(), &[]);
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let value = line.and_then(|value| value.trim().parse().ok());
        value.unwrap_or_else(|| panic!("{name} is not in {text}"))
    }

    /// Waits until something is so, however busy the machine is.
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            assert!(began.elapsed() < PATIENCE, "still waiting: {what}");
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// What the model says without a server.
    pub fn expected(&self, text: &str) -> String {
        self.translator.translate(&[text]).remove(0).text
    }

    /// Tells it to end, and waits until it has.
    pub fn end(&mut self) {
        self.tell_to_end();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic");
        }
    }

    pub fn tell_to_end(&self) {
        self.stop.send_replace(true);
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.tell_to_end();
        if let Some(thread) = self.thread.take()
            && !thread::panicking()
        {
            thread.join().expect("no panic");
        }
    }
}

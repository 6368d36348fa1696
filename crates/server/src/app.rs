//! What all requests share: the models, the queue, the cache, the numbers.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use attentive_runtime::Translator;
use tokio::sync::{Semaphore, watch};

use crate::cache::Cache;
use crate::deepl::glossaries::Glossaries;
use crate::error::ServerError;
use crate::files::Files;
use crate::http::body::Fields;
use crate::http::client::Client;
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::models::{Registry, Served};
use crate::options::Options;
use crate::refusal::Refusal;
use crate::run::Run;
use crate::scheduler::{Answer, Scheduler, Task};

/// Loads the models: at the start, and again when the process gets SIGHUP.
pub type Loader =
    Box<dyn Fn() -> Result<Vec<Served>, Box<dyn std::error::Error + Send + Sync>> + Send + Sync>;

/// What all requests share.
pub struct App {
    /// How the server behaves.
    pub options: Options,
    /// The queue.
    pub scheduler: Scheduler,
    /// Recent sentences.
    pub cache: Cache,
    /// Counts and times.
    pub metrics: Arc<Metrics>,
    /// Translated files that wait to be fetched.
    pub files: Files,
    /// The glossaries of DeepL's clients.
    pub glossaries: Glossaries,
    /// Characters that DeepL's clients had translated.
    pub characters: AtomicU64,
    /// The training run that is watched.
    pub run: Option<Run>,
    keys: RwLock<Option<Arc<Keys>>>,
    loader: Loader,
    registry: watch::Sender<Option<Arc<Registry>>>,
    draining: AtomicBool,
    inspections: Semaphore,
    /// Places for requests that are refused, but not at once.
    held: Semaphore,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// How long it takes to be told that the queue is full.
const BUSY_PAUSE: Duration = Duration::from_millis(1000);

impl App {
    /// Starts the threads that search; models are not loaded yet.
    pub fn new(options: Options, loader: Loader) -> Result<Self, ServerError> {
        let metrics = Arc::new(Metrics::default());
        let limits = &options.limits;
        let app = Self {
            scheduler: Scheduler::start(options.threads, limits.queue, Arc::clone(&metrics))?,
            cache: Cache::new(limits.cache),
            metrics,
            files: Files::default(),
            glossaries: Glossaries::default(),
            characters: AtomicU64::new(0),
            run: options.run.as_deref().map(Run::new),
            keys: RwLock::new(None),
            loader,
            registry: watch::channel(None).0,
            draining: AtomicBool::new(false),
            inspections: Semaphore::new(options.threads),
            held: Semaphore::new(options.limits.connections / 2),
            options,
        };
        app.load_keys()?;
        Ok(app)
    }

    /// Loads models and keys, in place of those that are there. If that fails, these stay.
    pub fn load(&self) -> Result<(), ServerError> {
        self.load_keys()?;
        let models = (self.loader)().map_err(ServerError::Models)?;
        self.registry
            .send_replace(Some(Arc::new(Registry::new(models))));
        Ok(())
    }

    fn load_keys(&self) -> Result<(), ServerError> {
        let Some(path) = &self.options.key_file else {
            return Ok(());
        };
        let keys = Arc::new(Keys::read(path)?);
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Some(keys);
        Ok(())
    }

    /// The models, as soon as they are loaded.
    pub async fn registry(&self) -> Result<Arc<Registry>, Refusal> {
        let mut registry = self.registry.subscribe();
        let loaded = registry.wait_for(Option::is_some);
        let limit = self.options.limits.translation_time;
        let loaded = tokio::time::timeout(limit, loaded).await;
        let loaded = loaded.ok().and_then(Result::ok);
        let loaded = loaded.and_then(|registry| registry.clone());
        loaded.ok_or(Refusal::NotReady("the models are not loaded yet"))
    }

    /// The models, if they are loaded.
    pub fn loaded(&self) -> Option<Arc<Registry>> {
        self.registry.borrow().clone()
    }

    /// Whether a request with this key may translate.
    pub fn check_key(&self, key: Option<&str>) -> Result<(), Refusal> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        match &*keys {
            Some(keys) if !key.is_some_and(|key| keys.allow(key)) => Err(Refusal::Forbidden),
            _ => Ok(()),
        }
    }

    /// Whether requests need a key.
    pub fn needs_key(&self) -> bool {
        self.options.key_file.is_some()
    }

    /// Looks inside a model on a thread of its own, and on no more of them than search.
    pub async fn inspect<R: Send + 'static>(
        &self,
        look: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Refusal> {
        let limit = self.options.limits.translation_time;
        let place = tokio::time::timeout(limit, self.inspections.acquire()).await;
        let _place = place.map_err(|_late| Refusal::Busy)?;
        let looked = tokio::task::spawn_blocking(look).await;
        looked.map_err(|_panic| Refusal::Failed)
    }

    /// Who asks: a key where keys are needed, an address otherwise.
    pub fn client(&self, fields: &Fields) -> Client {
        fields.client(self.needs_key())
    }

    /// Refuses if the queue is full, but not at once: clients that ask again and again without a pause would take the
    /// processor from the translations of the others. So many may be held up; more than that are refused at once.
    pub async fn check_room(&self, client: Client) -> Result<(), Refusal> {
        if self.is_draining() || !self.scheduler.is_full(client) {
            return Ok(());
        }
        if let Ok(_place) = self.held.try_acquire() {
            tokio::time::sleep(BUSY_PAUSE).await;
        }
        Err(Refusal::Busy)
    }

    /// All answers to sentences that go to the queue as they are.
    pub async fn search(
        &self,
        client: Client,
        translator: &Arc<Translator>,
        tasks: Vec<Task>,
    ) -> Result<Vec<Answer>, Refusal> {
        if self.is_draining() {
            return Err(Refusal::Draining);
        }
        self.check_room(client).await?;
        let count = tasks.len();
        let submitted = self.scheduler.submit(client, translator, tasks);
        let mut answers = submitted.map_err(|_full| Refusal::Busy)?;
        let all = async {
            let mut all = Vec::with_capacity(count);
            while all.len() < count {
                all.push(answers.recv().await.ok_or(Refusal::Failed)?);
            }
            Ok(all)
        };
        let limit = self.options.limits.translation_time;
        let all = tokio::time::timeout(limit, all).await;
        all.map_err(|_late| Refusal::TimedOut)?
    }

    /// From now on nothing new is accepted.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether the server is about to end.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}

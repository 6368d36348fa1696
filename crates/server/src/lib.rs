//! Translation for other programs over HTTP: LibreTranslate's API, DeepL's and our own.
//!
//! ```text
//! http: connections -> guard -> libretranslate, deepl, v1 -> markup -> translating -> scheduler -> models
//!                                                                          |
//!                                                                        cache
//! ```
//!
//! - [`http`] is everything about connections, bodies and headers; [`refusal`] says no.
//! - [`libretranslate`], [`deepl`] and [`v1`] are the APIs, [`pages`] what the server says about itself.
//! - [`page`] is for people who translate, [`run`] for those who watch a training run.
//! - [`translating`] cuts texts into sentences and puts them together again, [`markup`] is for text with tags,
//!   [`documents`] for files, [`files`] keeps them until they are fetched.
//! - [`scheduler`] is the queue that the sentences of all clients share, [`cache`] remembers recent ones.
//! - [`models`] are the models by their [`languages`], [`app`] is what all requests share, [`keys`] are API keys.
//! - [`options`] says how the server behaves, [`metrics`] how it does, [`error`] what keeps it from starting.
//!
//! [`process::run`] is a whole server with its signals. [`Server::bind`] starts to listen, [`Server::run`] serves until it is told to stop.

pub mod app;
pub mod cache;
pub mod deepl;
pub mod documents;
pub mod error;
pub mod files;
pub mod http;
pub mod keys;
pub mod languages;
pub mod libretranslate;
pub mod markup;
pub mod metrics;
pub mod models;
pub mod options;
pub mod page;
pub mod pages;
pub mod process;
pub mod refusal;
pub mod run;
pub mod scheduler;
pub mod translating;
pub mod v1;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use tokio::net::TcpListener;
use tokio::sync::watch;

pub use app::{App, Loader};
pub use error::ServerError;
pub use models::Served;
pub use options::{Limits, Options};
use refusal::Refusal;

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    listener: TcpListener,
}

impl Server {
    /// Starts to listen. Connections wait until [`Server::run`].
    pub async fn bind(options: Options, loader: Loader) -> Result<Self, ServerError> {
        let address = options.address;
        let listener = TcpListener::bind(address)
            .await
            .map_err(|source| ServerError::Listen { address, source })?;
        let app = Arc::new(App::new(options, loader)?);
        Ok(Self { app, listener })
    }

    /// Where it listens.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What all requests share.
    pub fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Loads the models while the first connections are accepted, and serves until `stop` turns true. Then it drains:
    /// what has come is answered. Returns early if the models cannot be loaded.
    pub async fn run(self, stop: watch::Receiver<bool>) -> Result<(), ServerError> {
        let app = Arc::clone(&self.app);
        let loaded = tokio::task::spawn_blocking(move || app.load());
        let loaded = async {
            match loaded.await {
                Ok(Ok(())) => std::future::pending().await,
                Ok(Err(error)) => Err(error),
                Err(panic) => Err(ServerError::Models(Box::new(panic))),
            }
        };
        let router = router(&self.app);
        let watching = self
            .app
            .run
            .as_ref()
            .map(|_| tokio::spawn(run::watch(Arc::clone(&self.app))));
        let serve = http::connections::serve(self.app, router, self.listener, stop);
        let ended = tokio::select! {
            failed = loaded => failed,
            () = serve => Ok(()),
        };
        if let Some(watching) = watching {
            watching.abort();
        }
        ended
    }
}

/// All paths.
pub fn router(app: &Arc<App>) -> Router {
    Router::new()
        .merge(libretranslate::router())
        .merge(deepl::router())
        .merge(v1::router())
        .merge(pages::router())
        .merge(run::router())
        .method_not_allowed_fallback(|| async { Refusal::Method.error() })
        .fallback(|| async { Refusal::NotFound("there is nothing at this path").error() })
        .layer(from_fn_with_state(Arc::clone(app), http::guard::guard))
        .with_state(Arc::clone(app))
}

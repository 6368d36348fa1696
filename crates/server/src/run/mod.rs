//! Watching a training run: its curves, its samples, its attention after every checkpoint.
//!
//! ```text
//! RUN/metrics.jsonl -> log ----------------+-> /run/history
//! RUN/checkpoints  -> checkpoints -> maps -+-> /run/attention        RUN/last moves -> models are loaded again
//! ```
//!
//! The folder is looked at once a second, by one thread, and only read. A checkpoint gets its name when it is complete
//! (`attentive-train` renames it), so a half-written one is never seen; one that vanishes while it is read is left out.
//! Pages ask again and again and are not told by a stream: an open stream would hold up a server that drains.

mod checkpoints;
mod log;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use attentive_pictures::json;
use attentive_pictures::record::Kind;
use attentive_pictures::selection::{Heads, Selection, Unit};
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::get;
use serde_json::Value;

use crate::app::App;
use crate::http::answer;
use crate::http::body::Fields;
use crate::refusal::{Refusal, invalid};
use crate::v1::attention::{Drawn, explorer};
use checkpoints::Checkpoints;
use log::Log;

/// A run that is watched.
#[derive(Debug)]
pub struct Run {
    name: String,
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    log: Log,
    checkpoints: Checkpoints,
}

/// The most events in an answer; whoever wants more asks again.
const MOST_EVENTS: usize = 5000;

/// How often the folder is looked at.
const PAUSE: Duration = Duration::from_secs(1);

impl Run {
    /// The run in a folder, of which nothing is read yet.
    pub fn new(folder: &Path) -> Self {
        let whole = folder.canonicalize();
        let whole = whole.unwrap_or_else(|_| PathBuf::from(folder));
        let name = whole.file_name().unwrap_or(whole.as_os_str());
        Self {
            name: name.to_string_lossy().into_owned(),
            seen: Mutex::new(Seen {
                log: Log::new(folder.join("metrics.jsonl")),
                checkpoints: Checkpoints::new(folder),
            }),
        }
    }

    /// Reads what is new. True if `last` or `best` points to another model than before.
    pub fn look(&self) -> bool {
        let mut seen = self.lock();
        seen.log.read_on();
        seen.checkpoints.look()
    }

    /// Looks at the attention of checkpoints that are new.
    fn inspect(&self) {
        let wanted = {
            let seen = self.lock();
            seen.checkpoints.wanted(seen.log.samples())
        };
        // Without the lock: a large model takes a while, and pages ask meanwhile.
        for job in wanted {
            let done = job.run();
            self.lock().checkpoints.keep(done);
        }
    }

    /// The links count as moved the next time.
    fn look_again(&self) {
        self.lock().checkpoints.forget_links();
    }

    /// `loaded` is the number of the model that translates.
    fn history(&self, version: Option<u64>, from: usize, loaded: Option<u64>) -> String {
        let seen = self.lock();
        let own = seen.log.version();
        let from = if version == Some(own) { from } else { 0 };
        let lines = seen.log.lines();
        let from = from.min(lines.len());
        let to = lines.len().min(from + MOST_EVENTS);
        format!(
            "{{\"name\":{},\"version\":{own},\"from\":{from},\"more\":{},\"events\":[{}],\"checkpoints\":{},\"loaded\":{}}}",
            Value::from(self.name.as_str()),
            to < lines.len(),
            lines[from..to].join(","),
            seen.checkpoints.list(),
            Value::from(loaded),
        )
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks at the run for as long as the server lives, and loads the models again when there is a newer one.
pub async fn watch(app: Arc<App>) {
    loop {
        let looking = Arc::clone(&app);
        let looked = tokio::task::spawn_blocking(move || {
            let Some(run) = &looking.run else { return };
            // A model that was removed meanwhile is no harm: there is a newer one, which is loaded next time; so is one that
            // came while the first models were loaded.
            if run.look() && (looking.loaded().is_none() || looking.load().is_err()) {
                run.look_again();
            }
            run.inspect();
        });
        let _ = looked.await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// The paths.
pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/run", get(page))
        .route("/run/history", get(history))
        .route("/run/attention", get(attention).post(attention))
}

fn run_of(app: &App) -> Result<&Run, Refusal> {
    let nothing = Refusal::NotFound("no training run is watched: start the server with --run RUN");
    app.run.as_ref().ok_or(nothing)
}

async fn page(State(app): State<Arc<App>>) -> Response {
    match run_of(&app) {
        Ok(_) => crate::page::run().await,
        Err(refusal) => refusal.error(),
    }
}

async fn history(State(app): State<Arc<App>>, request: Request) -> Response {
    let history = async {
        let run = run_of(&app)?;
        let fields = checked(&app, request).await?;
        let version = fields.number("version")?;
        let from = fields.number("from")?.unwrap_or(0);
        let models = app.loaded();
        let loaded = models.and_then(|models| models.models().first().map(|model| model.id));
        Ok(run.history(version.map(|number| number as u64), from, loaded))
    };
    match history.await {
        Ok(text) => answer::of_type("application/json", text),
        Err(refusal) => Refusal::error(&refusal),
    }
}

/// The attention of the fixed sentence after a checkpoint, as numbers or as the attention explorer.
async fn attention(State(app): State<Arc<App>>, request: Request) -> Response {
    let drawn = async {
        let run = run_of(&app)?;
        let fields = checked(&app, request).await?;
        let name = fields.text("checkpoint");
        let name = name.ok_or_else(|| invalid("checkpoint is missing"))?;
        let record = run.lock().checkpoints.record(&name);
        let record = record.ok_or(Refusal::NotFound("there is no such checkpoint"))?;
        let kinds = match fields.text("format").as_deref() {
            None | Some("json") => vec![Kind::Cross],
            Some("html") => Kind::ALL.to_vec(),
            Some(other) => return Err(invalid(format!("{other} format is not supported"))),
        };
        let selection = Selection {
            kinds,
            layer: None,
            heads: Heads::All,
            unit: Unit::Tokens,
        };
        let refused = |error: attentive_pictures::PictureError| invalid(error.to_string());
        if selection.kinds.len() > 1 {
            let name = format!("{}, {name}", run.name);
            return explorer(&record, &name, &selection).map(Drawn::Page);
        }
        let sections = selection.of(&record).map_err(refused)?;
        Ok(Drawn::Json(json::write(&record, &sections, &name)))
    };
    match drawn.await {
        Ok(drawn) => drawn.answer(),
        Err(refusal) => refusal.error(),
    }
}

async fn checked(app: &Arc<App>, request: Request) -> Result<Fields, Refusal> {
    let fields = Fields::read(request, &app.options.limits).await?;
    fields.check_texts(&["checkpoint", "format", "api_key"])?;
    let field = fields.text("api_key");
    app.check_key(fields.authorization("bearer").or(field.as_deref()))?;
    Ok(fields)
}

//! Work without the GIL that can be interrupted: by Ctrl-C, and by whoever does not need the answer any more.
//!
//! Python runs signal handlers on its main thread alone, and only while that has the GIL. So a call on the main thread
//! takes the GIL for a moment, several times a second: between two steps of a search that it does itself, or while it
//! waits for other threads. A handler that raises (as that of Ctrl-C does) stops the searches.

use std::cell::Cell;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Instant;

use attentive_runtime::engine::Stop;
use pyo3::exceptions::PyInterruptedError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::raise;

/// Signals are looked for this often.
const MILLISECONDS: u64 = 40;

/// Says to calls that nobody waits for them any more.
#[pyclass(frozen, module = "attentive._attentive")]
#[derive(Default)]
pub struct Cancel {
    asked: Arc<AtomicBool>,
}

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// The calls that got this object end soon, with an InterruptedError.
    pub fn cancel(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }
}

/// One call that can be interrupted.
struct Watch {
    /// The thread that looks for signals; nothing if it is not Python's main thread.
    main: Option<ThreadId>,
    begin: Instant,
    /// When signals were looked for last, in milliseconds.
    looked: AtomicU64,
    cancelled: Option<Arc<AtomicBool>>,
    /// What a signal handler raised.
    raised: Mutex<Option<PyErr>>,
    stopped: AtomicBool,
}

impl Watch {
    fn is_asked(&self) -> bool {
        if self.stopped.load(Ordering::Relaxed) {
            return true;
        }
        let cancelled = self.cancelled.as_ref();
        let stopped = cancelled.is_some_and(|asked| asked.load(Ordering::Relaxed)) || self.signal();
        if stopped {
            self.stopped.store(true, Ordering::Relaxed);
        }
        stopped
    }

    /// Whether a signal handler has raised an exception.
    fn signal(&self) -> bool {
        if self.main != Some(thread::current().id()) {
            return false;
        }
        let now = self.begin.elapsed().as_millis() as u64;
        if now < self.looked.load(Ordering::Relaxed) + MILLISECONDS {
            return false;
        }
        let handled = Python::attach(|py| py.check_signals());
        let now = self.begin.elapsed().as_millis() as u64;
        self.looked.store(now, Ordering::Relaxed);
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        *raised = handled.err().or(raised.take());
        raised.is_some()
    }
}

thread_local! {
    /// Whether this thread is in a call, so that a further one comes from a signal handler.
    static IN_CALL: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in a call already. The threads of that call's engine may all be waiting for it.
pub fn is_in_call() -> bool {
    IN_CALL.get()
}

/// Does some work without the GIL; it is given a [`Stop`] that it must obey.
pub fn without_gil<R: Send>(
    py: Python<'_>,
    cancel: Option<&Cancel>,
    work: impl FnOnce(Stop) -> R + Send,
) -> PyResult<R> {
    let watch = Arc::new(Watch {
        main: is_main_thread(py)?.then(|| thread::current().id()),
        begin: Instant::now(),
        looked: AtomicU64::new(0),
        cancelled: cancel.map(|cancel| cancel.asked.clone()),
        raised: Mutex::default(),
        stopped: AtomicBool::new(false),
    });
    let asked = watch.clone();
    let outer = IN_CALL.replace(true);
    let answer = py.detach(|| work(Stop::when(move || asked.is_asked())));
    IN_CALL.set(outer);
    if !watch.stopped.load(Ordering::Relaxed) {
        return Ok(answer);
    }
    let mut raised = watch.raised.lock().unwrap_or_else(PoisonError::into_inner);
    Err(raised
        .take()
        .unwrap_or_else(|| PyInterruptedError::new_err("the call was cancelled")))
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    threading.call_method0("get_ident")?.eq(main)
}

/// Whether the process is another than the last time, and remembers it. Ask with the GIL: who forks has it.
pub struct Process(AtomicU32);

impl Process {
    pub fn here() -> Self {
        Self(AtomicU32::new(process::id()))
    }

    pub fn has_changed(&self) -> bool {
        let here = process::id();
        self.0.swap(here, Ordering::Relaxed) != here
    }
}

/// Threads for scores: those of a parent process do not exist in its children.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Does some work on all processors, without the GIL.
pub fn on_all_processors<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    let pool = {
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        match &*pool {
            Some((process, pool)) if *process == process::id() => pool.clone(),
            _ => {
                let new = Arc::new(ThreadPoolBuilder::new().build().map_err(raise)?);
                // Joining threads of another process would wait for ever.
                std::mem::forget(pool.replace((process::id(), new.clone())));
                new
            }
        }
    };
    Ok(py.detach(|| pool.install(work)))
}

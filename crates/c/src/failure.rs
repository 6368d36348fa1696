//! Errors as C knows them: a value that says "failed", and a text for the thread that asks.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Does some work; if it fails or panics, that is remembered, and `failed` is the answer.
pub fn caught<R>(failed: R, work: impl FnOnce() -> Result<R, String>) -> R {
    let done = catch_unwind(AssertUnwindSafe(work));
    let error = match done {
        Ok(Ok(answer)) => return answer,
        Ok(Err(error)) => error,
        Err(_) => "an unexpected failure inside of attentive: please report it".to_owned(),
    };
    let error = CString::new(error.replace('\0', " ")).unwrap_or_default();
    LAST.set(error);
    failed
}

/// The text of the last error of this thread.
pub fn last_error() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr())
}

//! Rust's errors as Python's exceptions, with the same text.

use std::fmt::Display;

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

create_exception!(
    attentive,
    AttentiveError,
    PyValueError,
    "What attentive cannot do: a model that is not there, a damaged file, options that make no sense. The text says what \
     was expected, what was found and what to do."
);

/// Any error as an [`AttentiveError`].
pub fn raise(error: impl Display) -> PyErr {
    AttentiveError::new_err(error.to_string())
}

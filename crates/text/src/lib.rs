//! stub

pub mod metrics;

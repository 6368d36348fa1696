//! HTTP itself: connections and their timeouts, bodies and their limits, and what holds for every answer.

pub mod answer;
pub mod body;
pub mod client;
pub mod connections;
pub mod guard;
mod timed;

//! The real server over real sockets: its APIs, its queue, hostile clients, and how it ends.

mod batching;
mod client;
mod deepl;
mod drain;
mod hostile;
mod libretranslate;
mod markup;
mod own;
mod server;

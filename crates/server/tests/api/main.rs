//! The real server over real sockets: its APIs, its queue, hostile clients, its pages in a browser, and how it ends.

mod batching;
mod browser;
mod client;
mod deepl;
mod drain;
mod hostile;
mod libretranslate;
mod markup;
mod own;
mod page;
mod page_run;
mod page_safety;
mod server;

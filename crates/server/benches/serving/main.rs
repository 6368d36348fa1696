//! The clients of `benchmarks/run serving`: many connections on one thread, so that they take little of the processor
//! from the server beside them.
//!
//! ```text
//! serving load ADDRESS CLIENTS SECONDS SENTENCES [PAUSE]      each client asks for one sentence after the other
//! serving flood ADDRESS RATE SECONDS SENTENCES                so many requests per second, whatever the answers
//! serving check ADDRESS CLIENTS SENTENCES EXPECTED            each sentence once: is its translation the expected one?
//! serving drain ADDRESS CLIENTS SENTENCES                     until the server ends: is every request answered?
//! ```
//! Each prints one line of JSON. The first second of `load` and `flood` is not counted; a client that is refused asks
//! again after PAUSE milliseconds (10 unless told).

mod check;
mod client;
mod load;

use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|one| !one.starts_with("--"))
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let report = tokio::task::LocalSet::new().block_on(&runtime, run(&arguments));
    match report {
        Some(report) => println!("{report}"),
        // `cargo bench` and `cargo test --benches` call without arguments.
        None => println!("usage: serving load|flood|check|drain ADDRESS ..."),
    }
}

async fn run(arguments: &[&str]) -> Option<Value> {
    let number = |text: &str| text.parse::<usize>().expect("a number");
    let seconds = |text: &str| Duration::from_secs_f64(text.parse().expect("a number of seconds"));
    Some(match *arguments {
        ["load", address, clients, time, sentences, ref rest @ ..] => {
            let pause = rest.first().map_or(10, |pause| number(pause));
            let requests = requests(sentences);
            let pause = Duration::from_millis(pause as u64);
            load::load(address, number(clients), seconds(time), requests, pause).await
        }
        ["flood", address, rate, time, sentences] => {
            load::flood(address, number(rate), seconds(time), requests(sentences)).await
        }
        ["check", address, clients, sentences, expected] => {
            let expected = lines(expected);
            check::check(address, number(clients), requests(sentences), expected).await
        }
        ["drain", address, clients, sentences] => {
            check::until_the_end(address, number(clients), requests(sentences)).await
        }
        _ => return None,
    })
}

fn lines(path: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a file");
    text.lines().map(str::to_owned).collect()
}

/// A request for each sentence of a file.
fn requests(path: &str) -> Rc<Vec<String>> {
    let lines = lines(path);
    let sentences = lines.iter().filter(|line| !line.trim().is_empty());
    Rc::new(sentences.map(|line| client::request(line)).collect())
}

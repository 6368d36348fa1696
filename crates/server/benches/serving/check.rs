//! Whether every request gets its own answer: while the server runs, and when it ends.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::client::{Client, Outcome};

/// Asks for every sentence once, of as many clients at a time, until each has its translation.
pub async fn check(
    address: &str,
    clients: usize,
    requests: Rc<Vec<String>>,
    expected: Vec<String>,
) -> Value {
    assert_eq!(requests.len(), expected.len(), "one line for each sentence");
    let expected = Rc::new(expected);
    let next = Rc::new(Cell::new(0));
    let wrong: Rc<RefCell<Vec<(usize, String)>>> = Rc::default();
    let statuses: Rc<RefCell<BTreeMap<u16, usize>>> = Rc::default();
    let mut running = JoinSet::new();
    for _ in 0..clients {
        let (requests, expected) = (Rc::clone(&requests), Rc::clone(&expected));
        let (next, wrong, statuses) = (Rc::clone(&next), Rc::clone(&wrong), Rc::clone(&statuses));
        let address = address.to_owned();
        running.spawn_local(async move {
            let mut client = Client::new(&address);
            loop {
                let number = next.replace(next.get() + 1);
                let Some(request) = requests.get(number) else {
                    return;
                };
                let body = loop {
                    let outcome = client.ask(request).await;
                    *statuses.borrow_mut().entry(outcome.status()).or_default() += 1;
                    match outcome {
                        Outcome::Answered(200, body) => break body,
                        _ => sleep(Duration::from_millis(100)).await,
                    }
                };
                let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
                let text = answer["translatedText"].as_str().unwrap_or_default();
                if text != expected[number] {
                    wrong.borrow_mut().push((number, text.to_owned()));
                }
            }
        });
    }
    while running.join_next().await.is_some() {}
    let wrong = wrong.borrow();
    json!({
        "asked": requests.len(), "wrong": wrong.len(), "first_wrong": wrong.iter().take(3).collect::<Vec<_>>(),
        "statuses": *statuses.borrow(),
    })
}

/// Asks until the server ends. A request on a connection that there was must have an answer.
pub async fn until_the_end(address: &str, clients: usize, requests: Rc<Vec<String>>) -> Value {
    let mut running = JoinSet::new();
    for first in 0..clients {
        let requests = Rc::clone(&requests);
        let address = address.to_owned();
        running.spawn_local(async move {
            let mut client = Client::new(&address);
            let mut ends: BTreeMap<String, usize> = BTreeMap::new();
            for request in requests.iter().cycle().skip(first) {
                let outcome = client.ask(request).await;
                let end = match &outcome {
                    Outcome::Answered(status, _) => status.to_string(),
                    Outcome::Lost => "lost".to_owned(),
                    Outcome::NotConnected => break,
                };
                *ends.entry(end).or_default() += 1;
            }
            ends
        });
    }
    let mut all: BTreeMap<String, usize> = BTreeMap::new();
    while let Some(ends) = running.join_next().await {
        for (end, count) in ends.unwrap_or_default() {
            *all.entry(end).or_default() += count;
        }
    }
    json!(all)
}

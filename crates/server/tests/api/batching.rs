//! The shared queue: nothing is swapped or lost, short texts come first, and nobody works for those who are gone.

use std::collections::HashSet;
use std::io::BufReader;
use std::thread;
use std::time::Duration;

use attentive_server::Options;
use serde_json::json;

use super::client::{begin, get, post_json, raw, read_answer, request};
use super::server::{TestServer, options};

/// Texts that all differ.
fn texts(count: usize) -> Vec<String> {
    let letter = |number: usize| char::from(b'a' + (number % 26) as u8);
    let text = |n: usize| {
        format!(
            "{} {} {} {}",
            letter(n),
            letter(n / 26),
            letter(n / 7),
            letter(n / 676)
        )
    };
    (0..count).map(text).collect()
}

fn ask(server: &TestServer, text: &str) -> serde_json::Value {
    let body = json!({"q": text, "source": "de", "target": "en"});
    post_json(server.address, "/translate", &body).json()["translatedText"].clone()
}

/// Until a document is in the queue.
fn wait_for_queue(server: &TestServer) {
    server.wait_until("a document is in the queue", |server| {
        server.app.scheduler.waiting() > 100
    });
}

/// A document that takes minutes: whoever asks for it must go before it is done.
fn endless_document() -> String {
    let sentence = texts(25).join(" ") + "! X ";
    sentence.repeat(15_000)
}

/// Without a cache, with one thread and room for endless documents.
fn slow() -> Options {
    let mut options = options();
    options.threads = 1;
    options.limits.cache = 0;
    options.limits.characters = 10_000_000;
    options
}

#[test]
fn sentences_of_many_clients_share_batches_and_are_never_swapped() {
    let mut options = options();
    options.limits.cache = 0;
    let server = TestServer::with(options);
    let texts = texts(2000);
    let expected = server.translator.translate(&texts).into_iter();
    let expected: Vec<(String, f64)> = expected.map(|t| (t.text, t.log_prob)).collect();
    // Many texts have the same translation, but hardly any the same log-probability.
    let different: HashSet<u64> = expected
        .iter()
        .map(|(_, logprob)| logprob.to_bits())
        .collect();
    assert!(
        different.len() > 1500,
        "the model can hardly tell: {}",
        different.len()
    );
    thread::scope(|scope| {
        for client in 0..16 {
            let (server, texts, expected) = (&server, &texts, &expected);
            scope.spawn(move || {
                for place in (client..texts.len()).step_by(16) {
                    let body = json!({"text": texts[place], "source": "de", "target": "en"});
                    let answer = post_json(server.address, "/v1/translate", &body).json();
                    let found = &answer["translations"][0];
                    let (text, logprob) = &expected[place];
                    assert_eq!(found["text"], *text, "{}", texts[place]);
                    assert_eq!(found["logprob"], *logprob, "{}", texts[place]);
                }
            });
        }
    });
    assert_eq!(server.metric("attentive_sentences_total"), 2000.0);
    let batches = server.metric("attentive_batch_size_count");
    let alone = server.metric("attentive_batch_size_bucket{le=\"1\"}");
    assert!(alone < batches, "no sentence had company");
}

#[test]
fn a_short_text_does_not_wait_for_a_long_document() {
    let server = TestServer::with(slow());
    let document = begin(server.address, &endless_document());
    wait_for_queue(&server);
    for text in texts(5) {
        assert_eq!(ask(&server, &text), server.expected(&text));
    }
    assert!(server.app.scheduler.waiting() > 100);
    drop(document);
}

#[test]
fn nobody_works_for_a_client_that_is_gone() {
    let server = TestServer::with(slow());
    let document = begin(server.address, &endless_document());
    wait_for_queue(&server);
    drop(document);
    server.wait_until("nobody works for it", |server| {
        server.metric("attentive_requests_in_flight") == 0.0
    });
    assert_eq!(ask(&server, "a"), server.expected("a"));
    assert_eq!(server.app.scheduler.waiting(), 0);
}

#[test]
fn a_full_queue_is_told_to_come_back_before_the_body_is_read() {
    let mut options = slow();
    options.limits.queue = 2;
    let server = TestServer::with(options);
    let document = endless_document();
    let documents = [(); 2].map(|()| begin(server.address, &document));
    server.wait_until("both documents are in the queue", |server| {
        server.app.scheduler.waiting() > 20_000
    });
    thread::scope(|scope| {
        for (path, key) in [
            ("/translate", "error"),
            ("/v1/translate", "error"),
            ("/v2/translate", "message"),
        ] {
            let server = &server;
            scope.spawn(move || {
                // Of this body nothing ever comes.
                let head = format!(
                    "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n"
                );
                let answer = raw(server.address, head.as_bytes()).expect("an answer");
                assert_eq!(answer.status, 429, "{path}: {}", answer.text());
                assert!(answer.header("retry-after").is_some());
                let message = answer.json()[key].as_str().map(str::to_owned);
                assert!(message.is_some_and(|message| message.starts_with("Slowdown: ")));
            });
        }
    });
    assert_eq!(server.metric("attentive_refused_requests_total"), 3.0);
    // What needs no queue is answered, and so is a client that has nothing in it.
    assert_eq!(get(server.address, "/health").status, 200);
    let other = request(
        server.address,
        "POST",
        "/translate?q=a&source=de&target=en",
        "x-forwarded-for: 192.0.2.7\r\n",
        b"",
    );
    assert_eq!(other.json()["translatedText"], server.expected("a"));
    drop(documents);
    server.wait_until("the documents are given up", |server| {
        server.metric("attentive_requests_in_flight") == 0.0
    });
    assert_eq!(ask(&server, "a"), server.expected("a"));
}

#[test]
fn a_translation_that_takes_too_long_is_given_up() {
    let mut options = slow();
    options.limits.translation_time = Duration::from_secs(1);
    let server = TestServer::with(options);
    let document = begin(server.address, &endless_document());
    let answer = read_answer(&mut BufReader::new(document)).expect("an answer");
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert!(answer.header("retry-after").is_some());
    server.wait_until("nobody works for it", |server| {
        server.metric("attentive_requests_in_flight") == 0.0
    });
}

#[test]
fn recent_sentences_are_remembered_and_are_the_same() {
    let server = TestServer::start();
    let first = ask(&server, "a b! c d!");
    let second = ask(&server, "c d! a b!");
    assert_eq!(first, server.expected("a b! c d!"));
    assert_eq!(second, server.expected("c d! a b!"));
    assert_eq!(server.metric("attentive_cached_sentences_total"), 2.0);
    assert_eq!(server.metric("attentive_sentences_total"), 2.0);
}

#[test]
fn loading_models_again_loses_no_request() {
    let mut options = options();
    options.limits.cache = 0;
    let server = TestServer::with(options);
    let texts = texts(400);
    let expected: Vec<String> = server
        .translator
        .translate(&texts)
        .into_iter()
        .map(|t| t.text)
        .collect();
    thread::scope(|scope| {
        for client in 0..4 {
            let (server, texts, expected) = (&server, &texts, &expected);
            scope.spawn(move || {
                for place in (client..texts.len()).step_by(4) {
                    assert_eq!(ask(server, &texts[place]), expected[place]);
                }
            });
        }
        for _ in 0..10 {
            server.app.load().expect("the same models");
            thread::sleep(Duration::from_millis(10));
        }
    });
}

//! The shared queue: nothing is swapped or lost, short texts come first, and nobody works for those who are gone.

use std::collections::HashSet;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::{connect, get, post_json};
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

fn metric(server: &TestServer, name: &str) -> f64 {
    let text = get(server.address, "/metrics").text();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|value| value.trim().parse().ok());
    value.unwrap_or_else(|| panic!("{name} is not in {text}"))
}

/// Until a document is in the queue.
fn wait_for_queue(server: &TestServer) {
    let began = Instant::now();
    while server.app.scheduler.waiting() < 100 {
        assert!(began.elapsed() < Duration::from_secs(20), "nothing waits");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A document of `sentences` sentences that takes a while.
fn document(sentences: usize) -> String {
    texts(sentences).join("! X ") + "!"
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
    assert_eq!(metric(&server, "attentive_sentences_total"), 2000.0);
    let batches = metric(&server, "attentive_batch_size_count");
    let alone = metric(&server, "attentive_batch_size_bucket{le=\"1\"}");
    assert!(alone < batches, "no sentence had company");
}

#[test]
fn a_short_text_does_not_wait_for_a_long_document() {
    let mut options = options();
    options.threads = 1;
    options.limits.cache = 0;
    let server = TestServer::with(options);
    let long = document(3000);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            ask(&server, &long);
            done.store(true, Ordering::SeqCst);
        });
        wait_for_queue(&server);
        for text in texts(5) {
            assert_eq!(ask(&server, &text), server.expected(&text));
        }
        assert!(
            !done.load(Ordering::SeqCst),
            "the document was too short for this test"
        );
    });
}

#[test]
fn nobody_works_for_a_client_that_is_gone() {
    let mut options = options();
    options.threads = 1;
    options.limits.cache = 0;
    options.limits.characters = 10_000_000;
    let server = TestServer::with(options);
    let body = json!({"q": document(20_000), "source": "de", "target": "en"}).to_string();
    let head = format!(
        "POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = connect(server.address);
    stream.write_all((head + &body).as_bytes()).expect("sent");
    wait_for_queue(&server);
    drop(stream);
    let began = Instant::now();
    while metric(&server, "attentive_requests_in_flight") > 1.0 {
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "the request goes on"
        );
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(ask(&server, "a"), server.expected("a"));
    assert_eq!(metric(&server, "attentive_queue_size"), 0.0);
    let searched = metric(&server, "attentive_sentences_total");
    assert!(
        searched < 15_000.0,
        "{searched} sentences were searched for"
    );
}

#[test]
fn a_full_queue_and_a_slow_translation_are_told_to_come_back() {
    let mut options = options();
    options.threads = 1;
    options.limits.queue = 1;
    options.limits.cache = 0;
    options.limits.characters = 10_000_000;
    options.limits.translation_time = Duration::from_secs(3);
    let server = TestServer::with(options);
    let long = document(40_000);
    thread::scope(|scope| {
        let long = scope.spawn(|| {
            let body = json!({"q": long, "source": "de", "target": "en"});
            post_json(server.address, "/translate", &body)
        });
        wait_for_queue(&server);
        for (path, text, key) in [
            ("/translate", "q", "error"),
            ("/v1/translate", "text", "error"),
            ("/v2/translate", "text", "message"),
        ] {
            let body = json!({text: "a", "source": "de", "target": "en", "target_lang": "en", "source_lang": "de"});
            let answer = post_json(server.address, path, &body);
            assert_eq!(answer.status, 429, "{path}: {}", answer.text());
            assert!(answer.header("retry-after").is_some());
            let message = answer.json()[key].as_str().map(str::to_owned);
            assert!(message.is_some_and(|message| message.starts_with("Slowdown: ")));
        }
        let answer = long.join().expect("no panic");
        assert_eq!(answer.status, 503, "{}", answer.text());
        assert!(answer.header("retry-after").is_some());
    });
    assert_eq!(metric(&server, "attentive_refused_requests_total"), 3.0);
    assert_eq!(ask(&server, "a"), server.expected("a"));
}

#[test]
fn recent_sentences_are_remembered_and_are_the_same() {
    let server = TestServer::start();
    let first = ask(&server, "a b! c d!");
    let second = ask(&server, "c d! a b!");
    assert_eq!(first, server.expected("a b! c d!"));
    assert_eq!(second, server.expected("c d! a b!"));
    assert_eq!(metric(&server, "attentive_cached_sentences_total"), 2.0);
    assert_eq!(metric(&server, "attentive_sentences_total"), 2.0);
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

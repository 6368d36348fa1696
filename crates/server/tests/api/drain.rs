//! How the server ends: what it accepted is answered, the rest is refused, and nothing hangs.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Instant;

use serde_json::json;

use super::client::{begin, connect, read_answer};
use super::server::{PATIENCE, TestServer, options};

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Translated,
    Refused,
    /// The server no longer listened, or had read nothing of this request when the connection ended.
    NotAccepted,
}

/// Asks again and again on one connection until the server ends; a wrong or a half answer is a panic.
fn ask_until_the_end(address: SocketAddr, expected: &str) -> Vec<End> {
    let mut ends = Vec::new();
    let body = json!({"q": "a b c d", "source": "de", "target": "en"}).to_string();
    let request = format!(
        "POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    'connection: loop {
        let Ok(mut stream) = TcpStream::connect(address) else {
            ends.push(End::NotAccepted);
            return ends;
        };
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut reader = BufReader::new(stream.try_clone().expect("a clone"));
        loop {
            if stream.write_all(request.as_bytes()).is_err() {
                ends.push(End::NotAccepted);
                continue 'connection;
            }
            let Some(answer) = read_answer(&mut reader) else {
                // Whether the server had read it is told by the server's own count.
                ends.push(End::NotAccepted);
                continue 'connection;
            };
            match answer.status {
                200 => {
                    assert_eq!(answer.json(), json!({"translatedText": expected}));
                    ends.push(End::Translated);
                }
                503 => ends.push(End::Refused),
                other => panic!("{other}: {}", answer.text()),
            }
            if answer.header("connection") == Some("close") {
                continue 'connection;
            }
        }
    }
}

#[test]
fn a_drain_under_load_answers_what_was_accepted() {
    for round in 0..10 {
        let mut options = options();
        options.limits.cache = 0;
        let mut server = TestServer::with(options);
        let (address, expected) = (server.address, server.expected("a b c d"));
        let clients: Vec<_> = (0..8)
            .map(|_| {
                let expected = expected.clone();
                thread::spawn(move || ask_until_the_end(address, &expected))
            })
            .collect();
        // In the middle of it, wherever that is.
        let enough = |server: &TestServer| server.app.metrics.requests_ended() > 10 + 7 * round;
        server.wait_until("some requests are answered", enough);
        server.end();
        let ends: Vec<End> = clients
            .into_iter()
            .flat_map(|client| client.join().expect("nothing lost"))
            .collect();
        assert!(ends.contains(&End::Translated), "{ends:?}");
        let answered = ends.iter().filter(|end| **end != End::NotAccepted).count();
        assert_eq!(answered as u64, server.app.metrics.requests_ended());
    }
}

#[test]
fn a_long_translation_is_finished_and_new_ones_are_refused() {
    let mut options = options();
    options.threads = 1;
    options.limits.cache = 0;
    options.limits.drain_time = PATIENCE;
    let mut server = TestServer::with(options);
    let text = "a b c d e f! X ".repeat(300);
    let long = begin(server.address, &text);
    server.wait_until("the text is accepted", |server| {
        server.metric("attentive_sentences_total") > 0.0
    });
    let mut idle = connect(server.address);
    server.tell_to_end();
    server.wait_until("it drains", |server| server.app.is_draining());
    let ask = b"POST /translate?q=a&source=de&target=en HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n";
    // A connection on which nothing happened for a second may be closed by now.
    if idle.write_all(ask).is_ok()
        && let Some(refused) = read_answer(&mut BufReader::new(idle))
    {
        assert_eq!(
            (refused.status, refused.header("connection")),
            (503, Some("close"))
        );
        assert!(refused.header("retry-after").is_some());
    }
    let answer = read_answer(&mut BufReader::new(long)).expect("an answer");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["translatedText"], server.expected(&text));
    server.end();
}

#[test]
fn idle_connections_do_not_keep_the_server() {
    let mut options = options();
    options.limits.header_time = 2 * PATIENCE;
    options.limits.drain_time = 2 * PATIENCE;
    let mut server = TestServer::with(options);
    let idle: Vec<_> = (0..5).map(|_| connect(server.address)).collect();
    server.wait_until("they are accepted", |server| {
        server.metric("attentive_connections") == 5.0
    });
    let began = Instant::now();
    server.end();
    assert!(began.elapsed() < PATIENCE);
    drop(idle);
}

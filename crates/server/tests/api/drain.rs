//! How the server ends: what it accepted is answered, the rest is refused, and nothing hangs.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::read_answer;
use super::server::{TestServer, options};

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
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("a timeout");
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
        thread::sleep(Duration::from_millis(60 + 7 * round));
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
    let mut server = TestServer::with(options);
    let text = "a b c d e f! X ".repeat(2000);
    let body = json!({"q": text, "source": "de", "target": "en"}).to_string();
    let head = format!(
        "POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut long = super::client::connect(server.address);
    long.write_all((head + &body).as_bytes()).expect("sent");
    let began = Instant::now();
    while server.app.scheduler.waiting() < 100 {
        assert!(began.elapsed() < Duration::from_secs(20), "nothing waits");
        thread::sleep(Duration::from_millis(1));
    }
    let mut idle = super::client::connect(server.address);
    server.tell_to_end();
    while !server.app.is_draining() {
        thread::sleep(Duration::from_millis(1));
    }
    let ask = b"POST /translate?q=a&source=de&target=en HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n";
    idle.write_all(ask).expect("sent");
    let refused = read_answer(&mut BufReader::new(idle)).expect("an answer");
    assert_eq!(
        (refused.status, refused.header("connection")),
        (503, Some("close"))
    );
    assert!(refused.header("retry-after").is_some());
    let answer = read_answer(&mut BufReader::new(long)).expect("an answer");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["translatedText"], server.expected(&text));
    let began = Instant::now();
    server.end();
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "idle connections keep it"
    );
}

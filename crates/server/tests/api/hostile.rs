//! Clients that are slow, broken or malicious get a clear status, and the others their translations.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use super::client::{connect, post_json, raw, read_answer, request};
use super::server::{PATIENCE, TestServer, options};

/// The server still translates.
fn assert_alive(server: &TestServer) {
    let body = json!({"q": "a b c", "source": "de", "target": "en"});
    let answer = post_json(server.address, "/translate", &body);
    assert_eq!(
        answer.json(),
        json!({"translatedText": server.expected("a b c")})
    );
}

#[test]
fn slow_headers_and_slow_bodies_do_not_keep_others_from_translating() {
    let mut options = options();
    options.limits.header_time = Duration::from_secs(2);
    options.limits.body_time = Duration::from_secs(2);
    let server = TestServer::with(options);
    let begin = |head: &str| -> TcpStream {
        let mut stream = connect(server.address);
        stream.write_all(head.as_bytes()).expect("sent");
        stream
    };
    let headers: Vec<TcpStream> = (0..150)
        .map(|_| begin("POST /translate HTTP/1.1\r\nhost: loc"))
        .collect();
    let bodies: Vec<TcpStream> = (0..50)
        .map(|_| {
            begin("POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nq=a")
        })
        .collect();
    assert_alive(&server);
    // Each is ended after its time.
    for mut stream in headers {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    for stream in bodies {
        let answer = read_answer(&mut BufReader::new(stream)).expect("an answer");
        assert_eq!(answer.status, 408);
    }
    assert_alive(&server);
    server.wait_until("all are closed", |server| {
        server.metric("attentive_connections") == 0.0
    });
}

#[test]
fn an_answer_that_nobody_reads_is_given_up() {
    let mut options = options();
    options.limits.characters = 10_000_000;
    options.limits.body = 16 << 20;
    options.limits.body_time = Duration::from_secs(5);
    let server = TestServer::with(options);
    // A copy, so that only the answer is large.
    let text = "1 ".repeat(4_000_000);
    let body = json!({"q": text, "source": "de", "target": "de"}).to_string();
    let mut stream = connect(server.address);
    let head = format!(
        "POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("sent");
    stream.write_all(body.as_bytes()).expect("sent");
    server.wait_until("the request is read", |server| {
        server.metric("attentive_http_request_duration_seconds_count") == 1.0
    });
    server.wait_until("the answer is given up", |server| {
        server.metric("attentive_connections") == 0.0
    });
    drop(stream);
    assert_alive(&server);
}

#[test]
fn bodies_that_are_too_long_or_end_early_are_refused() {
    let mut options = options();
    options.limits.body = 100_000;
    let server = TestServer::with(options);
    let long = vec![b'a'; 5_000_000];
    let answer = request(server.address, "POST", "/translate", "", &long);
    assert_eq!(answer.status, 413, "{}", answer.text());
    // The same without saying so before.
    let mut chunked = b"POST /translate HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..50 {
        chunked.extend_from_slice(b"10000\r\n");
        chunked.extend_from_slice(&long[..0x10000]);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    assert_eq!(
        raw(server.address, &chunked).expect("an answer").status,
        413
    );
    // One that claims more than anyone has.
    let huge =
        b"POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999\r\n\r\nq=";
    assert_eq!(raw(server.address, huge).expect("an answer").status, 413);
    // Half a body, and then nobody.
    for _ in 0..200 {
        let mut stream = connect(server.address);
        let half = b"POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nq=a";
        stream.write_all(half).expect("sent");
    }
    assert_alive(&server);
}

#[test]
fn nonsense_is_answered_with_what_is_wrong() {
    let server = TestServer::start();
    let json_body = |body: &[u8]| {
        let kind = "content-type: application/json\r\n";
        request(server.address, "POST", "/translate", kind, body)
    };
    let deep = "[".repeat(100_000);
    let deep_object = "{\"q\":".repeat(10_000);
    for body in [
        deep.as_bytes(),
        deep_object.as_bytes(),
        b"{\"q\": \"\xff\xfe\"}",
        b"{\"q\": \"\\ud800\", \"source\": \"de\", \"target\": \"en\"}",
        b"[1]",
        b"nothing",
        b"",
    ] {
        let answer = json_body(body);
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert!(
            answer.text().contains("Invalid JSON format"),
            "{}",
            answer.text()
        );
    }
    let form = "content-type: application/x-www-form-urlencoded\r\n";
    for body in [
        &b"q=\xff\xfe&source=de&target=en"[..],
        b"q=%ff%fe&source=de&target=en",
    ] {
        let answer = request(server.address, "POST", "/translate", form, body);
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert!(
            answer.text().contains("not valid UTF-8"),
            "{}",
            answer.text()
        );
    }
    let parts = "content-type: multipart/form-data; boundary=x\r\n";
    for body in [
        &b"--x\r\nbroken"[..],
        b"",
        b"--x\r\ncontent-disposition: form-data; name=\"q\"\r\n\r\n\xff\r\n--x--\r\n",
    ] {
        let answer = request(server.address, "POST", "/translate", parts, body);
        assert_eq!(answer.status, 400, "{}", answer.text());
    }
    let fields = "x=1&".repeat(20_000);
    let answer = request(
        server.address,
        "POST",
        "/translate",
        form,
        fields.as_bytes(),
    );
    assert!(answer.text().contains("fields"), "{}", answer.text());
    // Text that looks like markup is text.
    let body = json!({"q": "<script>alert(1)</script> a", "source": "de", "target": "en"});
    let answer = post_json(server.address, "/translate", &body);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_alive(&server);
}

#[test]
fn floods_of_headers_and_broken_requests_end_their_connections_alone() {
    let server = TestServer::start();
    let many = format!(
        "GET /health HTTP/1.1\r\nhost: localhost\r\n{}\r\n",
        "x: y\r\n".repeat(1000)
    );
    let long = format!(
        "GET /health HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
        "y".repeat(1 << 20)
    );
    let path = format!(
        "GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "y".repeat(1 << 20)
    );
    for bytes in [
        many,
        long,
        path,
        "nonsense\r\n\r\n".to_owned(),
        "\0\u{1}\u{2}".repeat(1000),
    ] {
        if let Some(answer) = raw(server.address, bytes.as_bytes()) {
            assert!((400..500).contains(&answer.status), "{}", answer.status);
        }
    }
    assert_alive(&server);
}

#[test]
fn a_name_that_was_made_to_mean_this_machine_is_refused() {
    let server = TestServer::with(attentive_server::Options {
        allowed_hosts: vec!["translate.example".into()],
        ..options()
    });
    let ask = |host: &str| {
        let bytes = format!("GET /languages HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        raw(server.address, bytes.as_bytes())
            .expect("an answer")
            .status
    };
    for (host, status) in [
        ("localhost", 200),
        ("LOCALHOST:5000", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:5000", 200),
        ("translate.example:80", 200),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example:5000", 403),
        ("10.0.0.1", 403),
    ] {
        assert_eq!(ask(host), status, "{host}");
    }
}

#[test]
fn more_connections_than_allowed_are_told_so() {
    let mut options = options();
    options.limits.connections = 5;
    options.limits.header_time = PATIENCE;
    let server = TestServer::with(options);
    let idle: Vec<TcpStream> = (0..5).map(|_| connect(server.address)).collect();
    let connections =
        |count| move |server: &TestServer| server.metric("attentive_connections") == count;
    server.wait_until("they are accepted", connections(5.0));
    let answer = read_answer(&mut BufReader::new(connect(server.address))).expect("an answer");
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("2"))
    );
    assert_eq!(answer.json()["error"], "too many connections");
    drop(idle);
    server.wait_until("they are closed", connections(0.0));
    assert_alive(&server);
}

#[test]
fn clients_that_go_in_the_middle_leave_nothing_behind() {
    let server = TestServer::start();
    let request = "POST /translate?q=a+b+c&source=de&target=en HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for number in 0..1000 {
        let mut stream = connect(server.address);
        // Nothing, a part of a line, of the headers, or all of it.
        let part = request.len() * (number % 5) / 4;
        let sent = stream.write_all(&request.as_bytes()[..part.min(request.len())]);
        sent.expect("sent");
    }
    server.wait_until("all are gone", |server| {
        server.metric("attentive_connections") == 0.0
            && server.metric("attentive_requests_in_flight") == 0.0
            && server.app.scheduler.waiting() == 0
    });
    assert_alive(&server);
}

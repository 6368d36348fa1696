//! `attentive serve` as a process: what it refuses to do by accident, its signals, and how it ends.
//!
//! Everything about HTTP is tested in crates/server/tests.

#![cfg(unix)]

mod program;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use program::{Folder, attentive, command};

/// A server on a free port, which is killed if the test fails.
struct Serving {
    child: Child,
    address: String,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Serving {
    fn start(arguments: &[&str]) -> Self {
        let arguments = [&["serve", "--port", "0"], arguments].concat();
        let mut child = command(&arguments)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("a line");
        let address = line
            .trim()
            .rsplit_once("http://")
            .map(|(_, address)| address);
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        Self {
            child,
            address,
            stderr,
        }
    }

    fn signal(&self, name: &str) {
        let process = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &process]).status();
        assert!(status.expect("kill is there").success());
    }

    /// The next line that it says.
    fn says(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).expect("a line");
        line
    }

    /// The status and the body of the answer to a POST of fields.
    fn post(&self, path: &str, fields: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let patience = Some(Duration::from_secs(120));
        stream.set_read_timeout(patience).expect("a timeout");
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{fields}",
            fields.len()
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a whole answer");
        let status = head.split(' ').nth(1).unwrap_or_default();
        (status.to_owned(), body.to_owned())
    }

    fn end(mut self) -> (i32, String) {
        self.signal("TERM");
        let mut rest = String::new();
        let _ = self.stderr.read_to_string(&mut rest);
        let status = self.child.wait().expect("it ends");
        (status.code().unwrap_or(-1), rest)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const QUESTION: &str = "q=Guten+Morgen!&source=de&target=en";

#[test]
fn it_translates_loads_again_when_told_and_ends_when_told() {
    let mut server = Serving::start(&["--beam", "1"]);
    let expected = attentive(&["translate", "--from", "de", "--beam", "1", "Guten Morgen!"]);
    let expected = format!("{{\"translatedText\":\"{}\"}}", expected.good().trim_end());
    let answer = ("200".to_owned(), expected);
    assert_eq!(server.post("/translate", QUESTION), answer);
    server.signal("HUP");
    assert!(server.says().contains("loaded again"));
    assert_eq!(server.post("/translate", QUESTION), answer);
    let (code, said) = server.end();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("finishing what was accepted"), "{said}");
}

#[test]
fn a_public_address_needs_keys_or_permission() {
    let refused = attentive(&["serve", "--host", "0.0.0.0", "--port", "0"]);
    refused.bad(2, &["0.0.0.0", "--api-key-file", "--allow-public"]);
    let folder = Folder::new();
    let keys = folder.file("keys", "# nobody\n");
    let arguments = [
        "serve",
        "--host",
        "0.0.0.0",
        "--port",
        "0",
        "--api-key-file",
    ];
    attentive(&[&arguments[..], &[&keys]].concat()).bad(1, &["holds no key", &keys]);
    let missing = folder.path("missing");
    attentive(&[&arguments[..], &[&missing]].concat()).bad(1, &[&missing]);
    let keys = folder.file("keys", "first\n");
    let mut server = Serving::start(&["--host", "0.0.0.0", "--api-key-file", &keys]);
    server.address = server.address.replace("0.0.0.0", "127.0.0.1");
    let with = |key: &str| {
        server
            .post("/translate", &format!("{QUESTION}&api_key={key}"))
            .0
    };
    assert_eq!(
        (with("first"), with("second")),
        ("200".into(), "403".into())
    );
    // New keys, and a file that is none: what was there stays.
    folder.file("keys", "second\n");
    server.signal("HUP");
    assert!(server.says().contains("loaded again"));
    let with = |key: &str| {
        server
            .post("/translate", &format!("{QUESTION}&api_key={key}"))
            .0
    };
    assert_eq!(
        (with("first"), with("second")),
        ("403".into(), "200".into())
    );
    folder.file("keys", "");
    server.signal("HUP");
    assert!(server.says().contains("stay as they are"));
    let with = |key: &str| {
        server
            .post("/translate", &format!("{QUESTION}&api_key={key}"))
            .0
    };
    assert_eq!(with("second"), "200");
    assert_eq!(server.end().0, 0);
}

#[test]
fn a_port_that_is_taken_and_a_model_that_is_missing_are_named() {
    let server = Serving::start(&[]);
    let port = server.address.rsplit_once(':').expect("a port").1;
    attentive(&["serve", "--port", port]).bad(1, &[&server.address, "--port"]);
    attentive(&["serve", "--port", "0", "--model", "no/such/model"]).bad(1, &["no/such/model"]);
    assert_eq!(server.end().0, 0);
}

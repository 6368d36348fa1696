//! A client of plain sockets, which can also do what no decent client does.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("UTF-8")
    }

    pub fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    let patience = Some(super::server::PATIENCE);
    stream.set_read_timeout(patience).expect("a timeout");
    stream.set_write_timeout(patience).expect("a timeout");
    stream
}

/// Reads one answer; nothing if the connection ends before one begins.
pub fn read_answer(reader: &mut impl BufRead) -> Option<Answer> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let mut answer = Answer {
        status,
        headers,
        body: Vec::new(),
    };
    if let Some(length) = answer.header("content-length") {
        answer.body = vec![0; length.parse().ok()?];
        reader.read_exact(&mut answer.body).ok()?;
    } else if answer.header("transfer-encoding") == Some("chunked") {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size).ok()?;
            let size = usize::from_str_radix(size.trim(), 16).ok()?;
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk).ok()?;
            if size == 0 {
                break;
            }
            answer.body.extend_from_slice(&chunk[..size]);
        }
    }
    Some(answer)
}

/// Sends a request for a translation from German and does not wait for the answer.
pub fn begin(address: SocketAddr, text: &str) -> TcpStream {
    let body = serde_json::json!({"q": text, "source": "de", "target": "en"}).to_string();
    let head = format!(
        "POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = connect(address);
    stream.write_all((head + &body).as_bytes()).expect("sent");
    stream
}

/// Sends bytes as they are and reads an answer.
pub fn raw(address: SocketAddr, bytes: &[u8]) -> Option<Answer> {
    let mut stream = connect(address);
    // The server may answer and close before it has read everything.
    let _ = stream.write_all(bytes);
    read_answer(&mut BufReader::new(stream))
}

/// A request with these headers, each with its line break.
pub fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &[u8],
) -> Answer {
    let mut bytes = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    raw(address, &bytes).unwrap_or_else(|| panic!("no answer to {method} {path}"))
}

pub fn get(address: SocketAddr, path: &str) -> Answer {
    request(address, "GET", path, "", b"")
}

pub fn post_json(address: SocketAddr, path: &str, body: &Value) -> Answer {
    let kind = "content-type: application/json\r\n";
    request(address, "POST", path, kind, body.to_string().as_bytes())
}

pub fn post_form(address: SocketAddr, path: &str, body: &str) -> Answer {
    let kind = "content-type: application/x-www-form-urlencoded\r\n";
    request(address, "POST", path, kind, body.as_bytes())
}

/// A form of parts; a value with a file name is a file.
pub fn post_parts(
    address: SocketAddr,
    path: &str,
    parts: &[(&str, Option<&str>, &[u8])],
) -> Answer {
    let mut body = Vec::new();
    for (name, file, value) in parts {
        let file = file.map_or(String::new(), |file| format!("; filename=\"{file}\""));
        let head =
            format!("--limit\r\ncontent-disposition: form-data; name=\"{name}\"{file}\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(value);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--limit--\r\n");
    let kind = "content-type: multipart/form-data; boundary=limit\r\n";
    request(address, "POST", path, kind, &body)
}

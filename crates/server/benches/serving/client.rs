//! A client with one connection, which does no more than these measurements need.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection that is opened when it is needed.
#[derive(Debug)]
pub struct Client<'a> {
    address: &'a str,
    stream: Option<TcpStream>,
    bytes: Vec<u8>,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// There is an answer.
    Answered(u16, Vec<u8>),
    /// No connection could be made.
    NotConnected,
    /// The connection ended before there was an answer.
    Lost,
}

impl Outcome {
    /// The status; 0 if there is none.
    pub fn status(&self) -> u16 {
        match self {
            Self::Answered(status, _) => *status,
            Self::NotConnected | Self::Lost => 0,
        }
    }
}

/// The request for a sentence.
pub fn request(sentence: &str) -> String {
    let body = serde_json::json!({"q": sentence, "source": "de", "target": "en"}).to_string();
    format!(
        "POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

impl<'a> Client<'a> {
    pub fn new(address: &'a str) -> Self {
        Self {
            address,
            stream: None,
            bytes: Vec::new(),
        }
    }

    /// Sends a request and reads its answer.
    pub async fn ask(&mut self, request: &str) -> Outcome {
        if self.stream.is_none() {
            let Ok(stream) = TcpStream::connect(self.address).await else {
                return Outcome::NotConnected;
            };
            let _ = stream.set_nodelay(true);
            self.stream = Some(stream);
        }
        match self.try_ask(request).await {
            Ok((status, body, closes)) => {
                if closes {
                    self.stream = None;
                }
                Outcome::Answered(status, body)
            }
            Err(_) => {
                self.stream = None;
                Outcome::Lost
            }
        }
    }

    async fn try_ask(&mut self, request: &str) -> io::Result<(u16, Vec<u8>, bool)> {
        let Some(stream) = &mut self.stream else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        // One that is told that there are too many connections may not get rid of its request.
        let written = stream.write_all(request.as_bytes()).await;
        self.bytes.clear();
        let end = loop {
            if let Some(end) = self.bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            read_some(stream, &mut self.bytes).await?;
        };
        let head = String::from_utf8_lossy(&self.bytes[..end]).to_lowercase();
        let bad = || io::Error::from(io::ErrorKind::InvalidData);
        let field = |name: &str| {
            let mut lines = head.lines();
            let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            value.map(str::trim)
        };
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let length = field("content-length").map_or(Some(0), |length| length.parse().ok());
        let length: usize = length.ok_or_else(bad)?;
        let closes = field("connection") == Some("close") || written.is_err();
        while self.bytes.len() < end + length {
            read_some(stream, &mut self.bytes).await?;
        }
        let body = self.bytes[end..end + length].to_vec();
        Ok((status.ok_or_else(bad)?, body, closes))
    }
}

async fn read_some(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<()> {
    match stream.read_buf(bytes).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

//! A load generator for `benchmarks/run serving`: so many clients, each with a connection of its own, ask for one
//! sentence after the other.
//!
//! ```text
//! serving ADDRESS CLIENTS SECONDS SENTENCES [PAUSE]
//! ```
//! prints one line of JSON: requests and answers by status, requests per second, and the median and the 99th percentile
//! of the time of those that were translated. The first second is not counted. A client that is refused asks again
//! after PAUSE milliseconds (default 10).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|one| !one.starts_with("--"))
        .collect();
    let [address, clients, seconds, sentences, rest @ ..] = &arguments[..] else {
        // `cargo bench` and `cargo test --benches` call without arguments.
        println!("usage: serving ADDRESS CLIENTS SECONDS SENTENCES [PAUSE]");
        return;
    };
    let clients: usize = clients.parse().expect("a number of clients");
    let seconds: f64 = seconds.parse().expect("a number of seconds");
    let pause = rest
        .first()
        .map_or(10, |pause| pause.parse().expect("milliseconds"));
    let text = std::fs::read_to_string(sentences).expect("a file of sentences");
    let requests: Vec<String> = text
        .lines()
        .filter(|l| !l.trim().is_empty())
        .map(request)
        .collect();
    let next = AtomicUsize::new(0);
    let began = Instant::now();
    let warm = began + Duration::from_secs(1);
    let end = warm + Duration::from_secs_f64(seconds);
    let client = || {
        let mut seen: Vec<(u16, Duration)> = Vec::new();
        let mut connection = None;
        while Instant::now() < end {
            let request = &requests[next.fetch_add(1, Ordering::Relaxed) % requests.len()];
            let asked = Instant::now();
            let status = ask(address, &mut connection, request);
            if asked >= warm && Instant::now() <= end {
                seen.push((status, asked.elapsed()));
            }
            if status != 200 {
                thread::sleep(Duration::from_millis(pause));
            }
        }
        seen
    };
    let seen: Vec<(u16, Duration)> = thread::scope(|scope| {
        let clients: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
        clients
            .into_iter()
            .flat_map(|client| client.join().expect("no panic"))
            .collect()
    });
    let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
    for (status, _) in &seen {
        *statuses.entry(*status).or_default() += 1;
    }
    let translated = seen.iter().filter(|(status, _)| *status == 200);
    let mut times: Vec<f64> = translated
        .map(|(_, time)| time.as_secs_f64() * 1000.0)
        .collect();
    times.sort_by(f64::total_cmp);
    let at = |part: f64| {
        times
            .get(((times.len() as f64 - 1.0).max(0.0) * part) as usize)
            .copied()
    };
    let report = serde_json::json!({
        "clients": clients, "statuses": statuses, "per_second": times.len() as f64 / seconds,
        "p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": times.last(),
    });
    println!("{report}");
}

fn request(sentence: &str) -> String {
    let body = serde_json::json!({"q": sentence, "source": "de", "target": "en"}).to_string();
    format!(
        "POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The status of the answer; 0 if there is none.
fn ask(address: &str, connection: &mut Option<BufReader<TcpStream>>, request: &str) -> u16 {
    let status = try_ask(address, connection, request);
    if status.is_none() {
        *connection = None;
    }
    status.unwrap_or(0)
}

fn try_ask(
    address: &str,
    connection: &mut Option<BufReader<TcpStream>>,
    request: &str,
) -> Option<u16> {
    let reader = match connection {
        Some(reader) => reader,
        None => {
            let stream = TcpStream::connect(address).ok()?;
            stream.set_nodelay(true).ok()?;
            connection.insert(BufReader::new(stream))
        }
    };
    reader.get_mut().write_all(request.as_bytes()).ok()?;
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let (mut length, mut closes) = (0, false);
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        match name.to_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "connection" => closes = value.trim() == "close",
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    if closes {
        *connection = None;
    }
    Some(status)
}

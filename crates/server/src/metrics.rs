//! Numbers about the server for Prometheus: counts and times, never a text, an address or a key.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// All numbers; whoever does something counts it here.
#[derive(Debug, Default)]
pub struct Metrics {
    requests: Mutex<BTreeMap<(String, u16), u64>>,
    seconds: Histogram<12>,
    in_flight: AtomicI64,
    connections: AtomicI64,
    batches: Histogram<6>,
    source_tokens: AtomicU64,
    generated_tokens: AtomicU64,
    sentences: AtomicU64,
    cached: AtomicU64,
    refused: AtomicU64,
}

/// Upper bounds in seconds.
const SECONDS: [f64; 12] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// Upper bounds in sentences.
const SENTENCES: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];

/// Counts by size; the sum is in millionths.
#[derive(Debug)]
struct Histogram<const N: usize> {
    counts: [AtomicU64; N],
    count: AtomicU64,
    millionths: AtomicU64,
}

impl<const N: usize> Default for Histogram<N> {
    fn default() -> Self {
        Self {
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            count: AtomicU64::new(0),
            millionths: AtomicU64::new(0),
        }
    }
}

impl<const N: usize> Histogram<N> {
    fn add(&self, bounds: &[f64; N], value: f64) {
        if let Some(place) = bounds.iter().position(|bound| value <= *bound) {
            self.counts[place].fetch_add(1, Relaxed);
        }
        self.count.fetch_add(1, Relaxed);
        self.millionths.fetch_add((value * 1e6) as u64, Relaxed);
    }

    fn write(&self, out: &mut String, name: &str, help: &str, bounds: &[f64; N]) {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} histogram");
        let mut below = 0;
        for (bound, count) in bounds.iter().zip(&self.counts) {
            below += count.load(Relaxed);
            let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {below}");
        }
        let count = self.count.load(Relaxed).max(below);
        let sum = self.millionths.load(Relaxed) as f64 / 1e6;
        let _ = writeln!(
            out,
            "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}"
        );
    }
}

/// Counts something for as long as it lives.
#[derive(Debug)]
pub struct Counted<'a>(&'a AtomicI64);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Metrics {
    /// A request that is being answered.
    pub fn request_begun(&self) -> Counted<'_> {
        self.in_flight.fetch_add(1, Relaxed);
        Counted(&self.in_flight)
    }

    /// An open connection.
    pub fn connection_opened(&self) -> Counted<'_> {
        self.connections.fetch_add(1, Relaxed);
        Counted(&self.connections)
    }

    /// A request has its answer. `endpoint` is the pattern of a route, so there are few of them.
    pub fn request_ended(&self, endpoint: &str, status: u16, time: Duration) {
        self.seconds.add(&SECONDS, time.as_secs_f64());
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((endpoint.to_owned(), status)).or_default() += 1;
    }

    /// How many requests have had their answer.
    pub fn requests_ended(&self) -> u64 {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.values().sum()
    }

    /// A sentence joins a batch.
    pub fn sentence_begun(&self, source_tokens: usize) {
        self.sentences.fetch_add(1, Relaxed);
        self.source_tokens.fetch_add(source_tokens as u64, Relaxed);
    }

    /// A sentence has its translation.
    pub fn sentence_found(&self, tokens: usize) {
        self.generated_tokens.fetch_add(tokens as u64, Relaxed);
    }

    /// A sentence had its translation before it was searched for.
    pub fn sentence_cached(&self) {
        self.cached.fetch_add(1, Relaxed);
    }

    /// Sentences have joined a batch, which has so many now.
    pub fn batch_filled(&self, sentences: usize) {
        self.batches.add(&SENTENCES, sentences as f64);
    }

    /// A request found the queue full.
    pub fn refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    /// The text that Prometheus reads. Each model is a name and two language codes.
    pub fn write(&self, waiting: usize, models: &[(String, String, String)]) -> String {
        let mut out = String::new();
        let name = "attentive_http_requests_total";
        let _ = writeln!(
            out,
            "# HELP {name} Requests answered\n# TYPE {name} counter"
        );
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        for ((endpoint, status), count) in requests.iter() {
            let endpoint = label(endpoint);
            let _ = writeln!(
                out,
                "{name}{{endpoint=\"{endpoint}\",status=\"{status}\"}} {count}"
            );
        }
        drop(requests);
        let name = "attentive_http_request_duration_seconds";
        self.seconds
            .write(&mut out, name, "Time from request to answer", &SECONDS);
        let name = "attentive_batch_size";
        let help = "Sentences in a batch when others have joined it";
        self.batches.write(&mut out, name, help, &SENTENCES);
        let mut one = |name: &str, kind: &str, help: &str, value: i64| {
            let _ = writeln!(
                out,
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}"
            );
        };
        let count = |number: &AtomicU64| number.load(Relaxed) as i64;
        let (gauge, counter) = ("gauge", "counter");
        one(
            "attentive_requests_in_flight",
            gauge,
            "Requests that are being answered",
            self.in_flight.load(Relaxed),
        );
        one(
            "attentive_connections",
            gauge,
            "Open connections",
            self.connections.load(Relaxed),
        );
        one(
            "attentive_queue_size",
            gauge,
            "Sentences that wait for a batch",
            waiting as i64,
        );
        one(
            "attentive_sentences_total",
            counter,
            "Sentences searched for",
            count(&self.sentences),
        );
        one(
            "attentive_cached_sentences_total",
            counter,
            "Sentences answered from the cache",
            count(&self.cached),
        );
        one(
            "attentive_source_tokens_total",
            counter,
            "Source tokens read",
            count(&self.source_tokens),
        );
        one(
            "attentive_generated_tokens_total",
            counter,
            "Target tokens of translations",
            count(&self.generated_tokens),
        );
        one(
            "attentive_refused_requests_total",
            counter,
            "Requests that found the queue full",
            count(&self.refused),
        );
        let name = "attentive_model_info";
        let _ = writeln!(out, "# HELP {name} The models\n# TYPE {name} gauge");
        for (model, source, target) in models {
            let (model, source, target) = (label(model), label(source), label(target));
            let _ = writeln!(
                out,
                "{name}{{model=\"{model}\",source=\"{source}\",target=\"{target}\"}} 1"
            );
        }
        out
    }
}

/// A text as the value of a label.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_written_as_prometheus_reads_it() {
        let metrics = Metrics::default();
        let request = metrics.request_begun();
        metrics.request_ended("/translate", 200, Duration::from_millis(7));
        metrics.request_ended("/translate", 200, Duration::from_secs(60));
        metrics.batch_filled(3);
        let text = metrics.write(5, &[("a\"b".into(), "de".into(), "en".into())]);
        for line in [
            "attentive_http_requests_total{endpoint=\"/translate\",status=\"200\"} 2",
            "attentive_http_request_duration_seconds_bucket{le=\"0.005\"} 0",
            "attentive_http_request_duration_seconds_bucket{le=\"0.01\"} 1",
            "attentive_http_request_duration_seconds_bucket{le=\"30\"} 1",
            "attentive_http_request_duration_seconds_bucket{le=\"+Inf\"} 2",
            "attentive_batch_size_bucket{le=\"4\"} 1",
            "attentive_requests_in_flight 1",
            "attentive_queue_size 5",
            "attentive_model_info{model=\"a\\\"b\",source=\"de\",target=\"en\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        drop(request);
        assert!(metrics.write(0, &[]).contains("in_flight 0"));
    }
}

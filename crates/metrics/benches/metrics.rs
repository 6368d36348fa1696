//! Times one metric on six systems and prints seconds and scores as JSON, for `benchmarks/run metrics`.
//!
//! Only computing is timed: from text in memory to scores.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Instant;

use attentive_metrics::bleu::BleuScorer;
use attentive_metrics::bleu_options::BleuOptions;
use attentive_metrics::chrf::{ChrfOptions, ChrfScorer};
use attentive_metrics::error::MetricError;
use attentive_metrics::input::trimmed;
use attentive_metrics::references::References;
use attentive_metrics::scorer::Scorer;
use attentive_metrics::significance::{PairedTest, Seed, paired_test};
use attentive_metrics::ter::{TerOptions, TerScorer};
use flate2::read::GzDecoder;

const SYSTEMS: [&str; 6] = [
    "C-3MA",
    "FBK",
    "KIT",
    "LIUM-NMT",
    "LMU-nmt-reranked",
    "LMU-nmt-single",
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [task, folder, ..] = arguments.as_slice() else {
        // `cargo bench` without arguments has nothing to measure.
        eprintln!("usage: metrics bleu|chrf|ter|significance FOLDER; run benchmarks/run metrics");
        return;
    };
    let read = |name: &str| {
        let path = Path::new(folder).join(format!("{name}.de.gz"));
        let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let lines = BufReader::new(GzDecoder::new(file)).lines();
        trimmed(lines.collect::<Result<_, _>>().expect("gzip'd UTF-8"))
    };
    let reference = read("reference");
    let systems = SYSTEMS.map(read);
    let start = Instant::now();
    let scores = compute(task, &reference, &systems).unwrap_or_else(|error| panic!("{error}"));
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{}",
        serde_json::json!({"seconds": seconds, "scores": scores})
    );
}

fn compute(
    task: &str,
    reference: &[String],
    systems: &[Vec<String>],
) -> Result<Vec<f64>, MetricError> {
    let references = References::single(reference)?;
    let scorer: Box<dyn Scorer> = match task {
        "chrf" => Box::new(ChrfScorer::new(ChrfOptions::default(), &references)?),
        "ter" => Box::new(TerScorer::new(TerOptions::default(), &references)?),
        _ => Box::new(BleuScorer::new(BleuOptions::default(), &references)?),
    };
    if task != "significance" {
        let score = |system: &Vec<String>| Ok(scorer.corpus_score(system)?.value);
        return systems.iter().map(score).collect();
    }
    let systems: Vec<&[String]> = systems.iter().map(Vec::as_slice).collect();
    let mut values = Vec::new();
    for test in [
        PairedTest::Bootstrap { samples: 1000 },
        PairedTest::Randomization {
            trials: 10_000,
            confidence: None,
        },
    ] {
        for metric in paired_test(&[&*scorer], &systems, test, Seed::DEFAULT)? {
            for result in metric.results {
                values.extend([result.score, result.p_value.unwrap_or(0.0)]);
            }
        }
    }
    Ok(values)
}

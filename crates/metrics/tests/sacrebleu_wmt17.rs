//! Six systems of newstest2017 beside sacreBLEU 2.6.0: scores, statistics, p-values and intervals.
//!
//! The texts are not in this repository: ATTENTIVE_DATA names the folder that has wmt17-en-de. Without it the
//! tests say that they were skipped. `fixtures/make_wmt17.py` wrote the numbers.

#[path = "fixtures/reading.rs"]
mod reading;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use attentive_metrics::input::trimmed;
use attentive_metrics::references::References;
use attentive_metrics::significance::{PairedTest, Seed, paired_test};
use flate2::read::GzDecoder;
use reading::{close, numbers, scorer, strings};
use serde_json::{Value, json};

#[test]
fn six_systems_score_as_sacrebleu_scores_them() {
    let Some(wmt17) = Wmt17::read() else {
        return;
    };
    for case in wmt17.expected["cases"].as_array().unwrap() {
        let label = format!("{} {} {}", case["metric"], case["options"], case["system"]);
        let statistics = scorer(case, &wmt17.references)
            .statistics(wmt17.system(&case["system"]))
            .unwrap();
        let totals = statistics.totals();
        for (found, expected) in totals.iter().zip(numbers(&case["totals"])) {
            close(*found, expected, &label);
        }
        let score = scorer(case, &wmt17.references).score(&totals);
        close(score.value, case["score"].as_f64().unwrap(), &label);
    }
}

#[test]
fn six_systems_differ_as_significantly_as_sacrebleu_says() {
    let Some(wmt17) = Wmt17::read() else {
        return;
    };
    let systems: Vec<&[String]> = wmt17
        .systems
        .iter()
        .map(|(_, lines)| lines.as_slice())
        .collect();
    for expected in wmt17.expected["tests"].as_array().unwrap() {
        let test = match expected["test"].as_str().unwrap() {
            "bs" => PairedTest::Bootstrap { samples: 1000 },
            _ => PairedTest::Randomization {
                trials: 10_000,
                confidence: None,
            },
        };
        let case = json!({"metric": expected["metric"], "options": {}});
        let scorer = scorer(&case, &wmt17.references);
        let found = paired_test(&[&*scorer], &systems, test, Seed::DEFAULT).unwrap();
        assert_eq!(found[0].signature.to_string(), expected["signature"]);
        for (result, expected) in found[0]
            .results
            .iter()
            .zip(expected["results"].as_array().unwrap())
        {
            let pairs = [
                (Some(result.score), &expected[0]),
                (result.p_value, &expected[1]),
                (result.confidence.map(|c| c.mean), &expected[2]),
                (result.confidence.map(|c| c.half_width), &expected[3]),
            ];
            for (found, expected) in pairs {
                assert_eq!(found.is_some(), expected.is_f64(), "{test:?}");
                if let Some(found) = found {
                    close(
                        found,
                        expected.as_f64().unwrap(),
                        &format!("{test:?} {case}"),
                    );
                }
            }
        }
    }
}

/// The texts and what sacreBLEU says about them.
struct Wmt17 {
    expected: Value,
    references: References,
    systems: Vec<(String, Vec<String>)>,
}

impl Wmt17 {
    /// Reads the texts, or says that there are none.
    fn read() -> Option<Self> {
        let Some(folder) = std::env::var_os("ATTENTIVE_DATA") else {
            eprintln!("skipped: ATTENTIVE_DATA is not set to the folder that has wmt17-en-de");
            return None;
        };
        let folder = PathBuf::from(folder).join("wmt17-en-de");
        let read = |name: &str| {
            let file = File::open(folder.join(format!("{name}.de.gz"))).unwrap();
            let lines = BufReader::new(GzDecoder::new(file)).lines();
            trimmed(lines.collect::<Result<_, _>>().unwrap())
        };
        let expected: Value = serde_json::from_str(include_str!("fixtures/wmt17.json")).unwrap();
        let systems = strings(&expected["systems"]);
        Some(Self {
            references: References::single(&read("reference")).unwrap(),
            systems: systems
                .into_iter()
                .map(|name| (name.clone(), read(&name)))
                .collect(),
            expected,
        })
    }

    fn system(&self, name: &Value) -> &[String] {
        let found = self.systems.iter().find(|(system, _)| name == system);
        &found.unwrap().1
    }
}

//! Confidence intervals and paired tests beside sacreBLEU 2.6.0: the same draws, the same p-values.

#[path = "fixtures/reading.rs"]
mod reading;

use attentive_metrics::error::MetricError;
use attentive_metrics::references::References;
use attentive_metrics::report::{ReportOptions, score_line, single_system};
use attentive_metrics::scorer::Scorer;
use attentive_metrics::signature::PROGRAM;
use attentive_metrics::significance::{PairedTest, Seed, paired_test, score_with_confidence};
use reading::{close, fixture, scorer, segments};
use serde_json::{Value, json};

#[test]
fn paired_tests_give_sacrebleus_p_values_and_intervals() {
    let data = fixture();
    let data = &data["significance"];
    check_tests(data, "references", "tests");
}

#[test]
fn paired_tests_agree_with_a_varying_number_of_references() {
    let data = fixture();
    let data = &data["significance"];
    check_tests(data, "varying", "varying_tests");
}

#[test]
fn confidence_intervals_are_sacrebleus() {
    let data = fixture();
    let data = &data["significance"];
    let systems = segments(&data["systems"]);
    for (references, expected, samples, system) in [
        ("references", "confidence", 1000, &systems[0]),
        ("varying", "varying_confidence", 77, &systems[1]),
    ] {
        let references = References::from_segments(segments(&data[references])).unwrap();
        let cases = [
            json!({"metric": "bleu", "options": {}}),
            json!({"metric": "chrf", "options": {}}),
            json!({"metric": "chrf", "options": {"word_order": 2, "eps_smoothing": true}}),
            json!({"metric": "ter", "options": {}}),
            json!({"metric": "bleu", "options": {"smooth_method": "floor", "smooth_value": 0.3}}),
        ];
        for (case, expected) in cases.iter().zip(data[expected].as_array().unwrap()) {
            let scorer = scorer(case, &references);
            let (score, signature) =
                score_with_confidence(&*scorer, system, samples, Seed::DEFAULT).unwrap();
            let confidence = score.confidence.unwrap();
            close(
                confidence.mean,
                expected["mean"].as_f64().unwrap(),
                &case.to_string(),
            );
            close(
                confidence.half_width,
                expected["ci"].as_f64().unwrap(),
                &case.to_string(),
            );
            assert_eq!(signature.to_string(), expected["signature"]);
            let options = ReportOptions {
                width: 6,
                ..ReportOptions::default()
            };
            let line = score_line(&score, &signature, &options);
            assert_eq!(line.replace(&format!("|{signature}"), ""), expected["line"]);
            let options = ReportOptions {
                width: 3,
                ..ReportOptions::default()
            };
            let found = single_system(&[(score, signature)], &options);
            let own = format!(",\n \"program\": \"{PROGRAM}\"");
            assert_eq!(found.replace(&own, ""), expected["json"]);
        }
    }
}

#[test]
fn a_random_seed_is_named_none_and_a_wrong_one_refused() {
    assert_eq!("None".parse::<Seed>().unwrap().to_string(), "none");
    assert_eq!("7".parse::<Seed>().unwrap(), Seed::Fixed(7));
    assert!("-1".parse::<Seed>().is_err());
}

#[test]
fn one_system_cannot_be_compared() {
    let lines = vec!["a".to_owned()];
    let references = References::single(&lines).unwrap();
    let scorer = scorer(&json!({"metric": "ter", "options": {}}), &references);
    let test = PairedTest::Bootstrap { samples: 10 };
    let error = paired_test(&[&*scorer], &[&lines], test, Seed::DEFAULT).unwrap_err();
    assert_eq!(error, MetricError::TooFewSystems { found: 1 });
}

fn check_tests(data: &Value, references: &str, tests: &str) {
    let references = References::from_segments(segments(&data[references])).unwrap();
    let systems = segments(&data["systems"]);
    let systems: Vec<&[String]> = systems.iter().map(Vec::as_slice).collect();
    for expected in data[tests].as_array().unwrap() {
        let samples = expected["samples"].as_u64().unwrap() as usize;
        let test = match expected["test"].as_str().unwrap() {
            "bs" => PairedTest::Bootstrap { samples },
            _ => PairedTest::Randomization {
                trials: samples,
                confidence: expected["confidence"]
                    .as_u64()
                    .map(|samples| samples as usize),
            },
        };
        for column in expected["metrics"].as_array().unwrap() {
            let scorer = named_scorer(column["metric"].as_str().unwrap(), &references);
            let found = paired_test(&[&*scorer], &systems, test, Seed::DEFAULT).unwrap();
            let label = format!("{test:?} {}", column["metric"]);
            assert_eq!(found[0].name, column["name"], "{label}");
            assert_eq!(
                found[0].signature.to_string(),
                column["signature"],
                "{label}"
            );
            for (result, expected) in found[0]
                .results
                .iter()
                .zip(column["results"].as_array().unwrap())
            {
                close(result.score, expected[0].as_f64().unwrap(), &label);
                assert_eq!(result.p_value.is_some(), expected[1].is_f64(), "{label}");
                // Ties among sums of fractions fall as the machine's BLAS library rounds them.
                let rounding_decides = tests == "varying_tests"
                    && column["metric"] == "TER"
                    && matches!(test, PairedTest::Randomization { .. });
                if let Some(p_value) = result.p_value {
                    let said = expected[1].as_f64().unwrap();
                    if rounding_decides {
                        assert!((p_value - said).abs() < 0.05, "{label}: {p_value}, {said}");
                    } else {
                        close(p_value, said, &format!("{label} p-value"));
                    }
                }
                let pair = result.confidence.map(|c| (c.mean, c.half_width));
                assert_eq!(pair.is_some(), expected[2].is_f64(), "{label}");
                if let Some((mean, half_width)) = pair {
                    close(
                        mean,
                        expected[2].as_f64().unwrap(),
                        &format!("{label} mean"),
                    );
                    close(
                        half_width,
                        expected[3].as_f64().unwrap(),
                        &format!("{label} interval"),
                    );
                }
            }
        }
    }
}

/// The metrics that `make.py` tests, by its names.
fn named_scorer(name: &str, references: &References) -> Box<dyn Scorer> {
    let case = match name {
        "BLEU" => json!({"metric": "bleu", "options": {}}),
        "BLEU-k" => {
            json!({"metric": "bleu", "options": {"smooth_method": "add-k", "smooth_value": 0.5}})
        }
        "BLEU-s" => {
            json!({"metric": "bleu", "options": {"smooth_method": "floor", "tokenize": "char"}})
        }
        "CHRF" => json!({"metric": "chrf", "options": {"word_order": 2}}),
        "CHRF-e" => json!({"metric": "chrf", "options": {"eps_smoothing": true}}),
        "TER" => json!({"metric": "ter", "options": {}}),
        other => panic!("metric {other}"),
    };
    scorer(&case, references)
}

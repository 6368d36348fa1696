//! Every metric, tokenizer and option beside sacreBLEU 2.6.0, on the pairs of `fixtures/texts.py`.
//!
//! `fixtures/make.py` wrote down what sacreBLEU says; numbers here must agree to 1e-9, counts and
//! texts exactly.

#[path = "fixtures/reading.rs"]
mod reading;

use attentive_metrics::references::References;
use attentive_metrics::report::{Detail, ReportFormat, ReportOptions, score_line, single_system};
use attentive_metrics::signature::{PROGRAM, SignatureForm};
use reading::{bleu_scorer, close, fixture, numbers, scorer, segments, strings};
use serde_json::Value;

#[test]
fn the_pairs_are_at_least_two_thousand() {
    let data = fixture();
    let corpora = data["corpora"].as_array().unwrap();
    let pairs: usize = corpora
        .iter()
        .map(|corpus| strings(&corpus["outputs"]).len())
        .sum();
    assert!(pairs >= 2000, "{pairs} pairs");
}

#[test]
fn every_option_scores_as_sacrebleu_does() {
    for_each_case(|case, references, outputs, label| {
        let scorer = scorer(case, references);
        let statistics = scorer.statistics(outputs).unwrap();
        let score = scorer.score(&statistics.totals());
        assert_eq!(score.name, case["name"], "{label}");
        close(score.value, case["score"].as_f64().unwrap(), label);
        let Some(rows) = case.get("rows") else {
            return;
        };
        let expected = numbers(rows);
        assert_eq!(
            expected.len(),
            statistics.width() * statistics.segments(),
            "{label}"
        );
        for (index, row) in expected.chunks_exact(statistics.width()).enumerate() {
            let line = format!(
                "{label} line {}: {:?} / {:?}",
                index + 1,
                outputs[index],
                references.segments()[index]
            );
            for (found, expected) in statistics.row(index).iter().zip(row) {
                close(*found, *expected, &line);
            }
        }
    });
}

#[test]
fn bleu_comes_with_the_same_counts_precisions_and_lengths() {
    for_each_case(|case, references, outputs, label| {
        if case["metric"] != "bleu" {
            return;
        }
        let bleu = bleu_scorer(case, references).corpus(outputs).unwrap();
        for (found, name) in [
            (&bleu.counts, "counts"),
            (&bleu.totals, "totals"),
            (&bleu.precisions, "precisions"),
        ] {
            let expected = numbers(&case[name]);
            assert_eq!(found.len(), expected.len(), "{label} {name}");
            for (found, expected) in found.iter().zip(&expected) {
                close(*found, *expected, &format!("{label} {name}"));
            }
        }
        close(bleu.bp, case["bp"].as_f64().unwrap(), label);
        assert_eq!(bleu.sys_len as u64, case["sys_len"], "{label}");
        assert_eq!(bleu.ref_len as u64, case["ref_len"], "{label}");
    });
}

#[test]
fn single_sentences_score_as_sacrebleu_does() {
    for_each_case(|case, references, outputs, label| {
        for (index, expected) in numbers(&case["sentences"]).into_iter().enumerate() {
            let one =
                References::from_segments(vec![references.segments()[index].clone()]).unwrap();
            let score = scorer(case, &one)
                .corpus_score(&outputs[index..=index])
                .unwrap();
            close(
                score.value,
                expected,
                &format!("{label} sentence {}", index + 1),
            );
        }
    });
}

#[test]
fn signatures_and_reports_equal_character_by_character() {
    for_each_case(|case, references, outputs, label| {
        let scorer = scorer(case, references);
        let score = scorer.corpus_score(outputs).unwrap();
        let signature = scorer.signature();
        assert_eq!(signature.to_string(), case["signature"], "{label}");
        assert_eq!(
            signature.format(SignatureForm::Short),
            case["short"],
            "{label}"
        );
        let text = ReportOptions {
            format: ReportFormat::Text,
            width: 3,
            ..ReportOptions::default()
        };
        assert_eq!(
            score_line(&score, &signature, &text),
            case["line"],
            "{label}"
        );
        let only = ReportOptions {
            width: 5,
            detail: Detail::ScoreOnly,
            ..text
        };
        assert_eq!(
            score_line(&score, &signature, &only),
            case["only"],
            "{label}"
        );
        let json = ReportOptions {
            width: 4,
            ..ReportOptions::default()
        };
        let own = format!(",\n \"program\": \"{PROGRAM}\"");
        let found = single_system(&[(score, signature)], &json);
        assert_eq!(found.replace(&own, ""), case["json"], "{label}");
    });
}

/// Calls `check` with every case, its references, its outputs and a label for messages.
fn for_each_case(check: impl Fn(&Value, &References, &[String], &str)) {
    let data = fixture();
    let corpora: Vec<(String, Vec<String>, References)> = data["corpora"]
        .as_array()
        .unwrap()
        .iter()
        .map(|corpus| {
            let references = References::from_segments(segments(&corpus["references"])).unwrap();
            (
                corpus["name"].to_string(),
                strings(&corpus["outputs"]),
                references,
            )
        })
        .collect();
    let cases = data["cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        let (name, outputs, references) = &corpora[case["corpus"].as_u64().unwrap() as usize];
        let label = format!("{name} {} {}", case["metric"], case["options"]);
        check(case, references, outputs, &label);
    }
}

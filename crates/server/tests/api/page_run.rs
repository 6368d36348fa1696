//! Watching a training run in a real browser, while it goes on.
#![cfg(unix)]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use attentive_browser::keep;
use attentive_model::fake_dir;
use attentive_server::{Loader, Options, Served};
use serde_json::json;

use super::browser::{assert_accessible, visit_server};
use super::client::get;
use super::server::{TestServer, fake, options};

/// A run as `attentive train` writes it, with models that say nonsense.
struct Training {
    folder: PathBuf,
}

impl Training {
    fn begin(folder: &Path) -> Self {
        fs::create_dir_all(folder.join("checkpoints")).expect("a folder");
        fs::write(folder.join("recipe.toml"), "").expect("written");
        Self {
            folder: folder.to_owned(),
        }
    }

    fn log(&self, text: &str) {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.folder.join("metrics.jsonl"));
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .expect("written");
    }

    fn steps(&self, steps: std::ops::RangeInclusive<u32>) {
        for step in steps {
            let (loss, rate) = (8.0 / f64::from(step).sqrt(), 0.001 * f64::from(step));
            let line = json!({"event": "step", "step": step, "epoch": 0, "loss": loss, "learning_rate": rate, "tokens_per_second": 1234.5, "seconds": step});
            self.log(&format!("{line}\n"));
        }
    }

    fn validation(&self, step: u32, output: &str) {
        let samples = [json!({"source": "a b c", "reference": "c d e", "output": output})];
        let line = json!({"event": "validation", "step": step, "epoch": 1, "loss": 3.0 - f64::from(step) / 100.0, "perplexity": 20.0, "bleu": step, "seconds": step, "improved": true, "samples": samples});
        self.log(&format!("{line}\n"));
    }

    /// Written beside its place, then renamed, then linked.
    fn checkpoint(&self, step: u32) {
        let hidden = self
            .folder
            .join("checkpoints")
            .join(format!(".step-{step:06}.tmp"));
        let change = |_: &str, values: &mut [f32]| {
            for (place, value) in values.iter_mut().enumerate() {
                *value *= 1.0 + (place as f32 * step as f32).sin();
            }
        };
        fake_dir::write_with(&hidden, |_| {}, change).expect("written");
        fs::write(hidden.join("manifest.json"), "{}").expect("written");
        let place = self
            .folder
            .join("checkpoints")
            .join(format!("step-{step:06}"));
        fs::rename(hidden, &place).expect("renamed");
        for link in ["last", "best"] {
            let new = self.folder.join("new-link");
            symlink(format!("checkpoints/step-{step:06}"), &new).expect("linked");
            fs::rename(new, self.folder.join(link)).expect("moved");
        }
    }
}

/// A server that watches a run, and translates with its newest checkpoint.
fn watching(folder: tempfile::TempDir, key_file: Option<PathBuf>) -> TestServer {
    let run = folder.path().join("run");
    let model = folder.path().join("model");
    fake_dir::write(&model).expect("written");
    let last = run.join("last");
    let loader: Loader = Box::new(move || {
        let newest = last
            .is_dir()
            .then(|| Served::new("newest".to_owned(), "de", "en", fake(&last)));
        Ok(newest.into_iter().collect())
    });
    let options = Options {
        run: Some(run),
        key_file,
        ..options()
    };
    fake_dir::write(folder.path()).expect("written");
    TestServer::of(options, loader, folder)
}

#[test]
fn a_run_is_watched_while_it_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let training = Training::begin(&folder.path().join("run"));
    let Some(mut visit) = visit_server("run", || watching(folder, None), &[]) else {
        return;
    };
    visit.open("/run");
    // A run that has only begun.
    let points = |chart: &str, series: &str| {
        format!(
            "Number((document.querySelector('[data-chart={chart}] .series.{series}') || {{ dataset: {{}} }}).dataset.points || 0)"
        )
    };
    assert_eq!(visit.ask(&points("loss", "one")), 0);
    visit.browser.wait("document.getElementById('newest').textContent.includes('no checkpoint yet') && document.getElementById('try').disabled");
    // Curves grow; half a line is not shown.
    training.steps(1..=10);
    training.log("{\"event\":\"step\",\"st");
    visit
        .browser
        .wait(&format!("{} === 10", points("loss", "one")));
    training.log("ep\":11,\"loss\":2.5}\n");
    visit
        .browser
        .wait(&format!("{} === 11", points("loss", "one")));
    // A checkpoint that is being written is not seen.
    fake_dir::write(training.folder.join("checkpoints/.step-000010.tmp")).expect("written");
    training.validation(10, "first <i>words</i>");
    training.checkpoint(10);
    visit.browser.wait(&format!(
        "{} === 1 && {} === 1",
        points("loss", "two"),
        points("bleu", "one")
    ));
    assert_eq!(
        visit.browser.text("#sample-list .said"),
        "first <i>words</i>"
    );
    visit
        .browser
        .wait("document.getElementById('map').dataset.checkpoint === 'step-000010'");
    visit.browser.wait("document.getElementById('newest').textContent.includes('step-000010') && !document.getElementById('try').disabled");
    visit.ask("document.getElementById('try').focus()");
    visit.browser.write("a b c");
    visit
        .browser
        .wait("document.getElementById('said').textContent !== ''");
    let first = visit.browser.text("#said");
    let weights =
        "Array.from(document.querySelectorAll('#map .cell'), (one) => one.dataset.weight).join()";
    let (map, cells) = (
        visit.ask(weights),
        visit.ask("document.querySelectorAll('#map .cell').length"),
    );
    assert_eq!(
        cells,
        4 * 4,
        "three words and the end of the sentence, on both sides"
    );
    assert_accessible(&mut visit.browser, "run");
    // A newer checkpoint: the slider grows and follows, the model is another one.
    training.steps(12..=20);
    training.validation(20, "second words");
    training.checkpoint(20);
    visit
        .browser
        .wait("document.getElementById('map').dataset.checkpoint === 'step-000020'");
    visit.browser.wait(&format!(
        "document.getElementById('said').textContent !== {first:?}"
    ));
    visit
        .browser
        .wait("document.getElementById('sample-list').textContent.includes('second words')");
    assert_ne!(visit.ask(weights), map);
    keep(&mut visit.browser, "run");
    // Back in time, even if the checkpoint is gone.
    fs::remove_dir_all(training.folder.join("checkpoints/step-000010")).expect("removed");
    visit.ask("document.getElementById('checkpoint').focus()");
    visit.browser.press("ArrowLeft");
    visit
        .browser
        .wait("document.getElementById('map').dataset.checkpoint === 'step-000010'");
    assert_eq!(visit.ask(weights), map);
    visit.ask("document.getElementById('validation').focus()");
    visit.browser.press("Home");
    visit
        .browser
        .wait("document.getElementById('sample-list').textContent.includes('first <i>words</i>')");
    // Layers and heads.
    visit.ask("document.getElementById('head').value = 1, document.getElementById('head').dispatchEvent(new Event('change'))");
    assert_ne!(visit.ask(weights), map);
    // The explorer, for that checkpoint.
    visit.browser.click("#look");
    let began = std::time::Instant::now();
    while visit.browser.ask_frame("/run/attention", "document.getElementById('target-text') && document.getElementById('target-text').textContent") != Some(json!("c d e")) {
        assert!(began.elapsed() < attentive_browser::PATIENCE, "the explorer does not load");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    visit.browser.click("#inside-close");
    // Whoever looks at the past is left there when there is news; the run goes back to step 5 and on.
    let kept: String = fs::read_to_string(training.folder.join("metrics.jsonl"))
        .expect("text")
        .lines()
        .take(5)
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(training.folder.join("other"), kept).expect("written");
    fs::rename(
        training.folder.join("other"),
        training.folder.join("metrics.jsonl"),
    )
    .expect("renamed");
    visit
        .browser
        .wait(&format!("{} === 5", points("loss", "one")));
    assert_eq!(
        visit.ask("document.getElementById('map').dataset.checkpoint"),
        "step-000010"
    );
    // Phones, the dark, other languages.
    for width in [320, 1280] {
        visit.browser.resize(width, 800);
        visit.browser.wait(&format!(
            "innerWidth === {width} && document.documentElement.scrollWidth <= innerWidth"
        ));
    }
    visit.browser.click("#theme");
    for (code, text) in [
        ("de", "Lernrate"),
        ("zh", "学习率"),
        ("en", "Learning rate"),
    ] {
        visit.ask(&format!("document.getElementById('interface').value = '{code}', document.getElementById('interface').dispatchEvent(new Event('change'))"));
        assert_eq!(visit.browser.text("[data-chart=rate] h2"), text);
    }
    assert_accessible(&mut visit.browser, "run in the dark");
    visit.no_errors();
    // The translation page knows the way here.
    visit.open("/");
    assert_eq!(
        visit.ask("document.getElementById('run-link').hidden"),
        false
    );
    visit.no_errors();
}

#[test]
fn the_history_of_a_run_is_asked_for_from_where_one_is_and_needs_a_key_where_there_are_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let training = Training::begin(&folder.path().join("run"));
    training.steps(1..=4);
    let keys = folder.path().join("keys");
    fs::write(&keys, "key\n").expect("written");
    let server = watching(folder, Some(keys));
    assert_eq!(get(server.address, "/run/history").status, 403);
    let history = |query: &str| get(server.address, &format!("/run/history?api_key=key{query}"));
    let began = std::time::Instant::now();
    let first = loop {
        let answer = history("").json();
        if answer["events"]
            .as_array()
            .is_some_and(|all| all.len() == 4)
        {
            break answer;
        }
        assert!(began.elapsed().as_secs() < 60, "{answer}");
    };
    assert_eq!(
        (&first["name"], &first["from"], &first["loaded"]),
        (&json!("run"), &json!(0), &json!(null))
    );
    let rest = history(&format!("&version={}&from=3", first["version"])).json();
    assert_eq!(rest["events"].as_array().map(Vec::len), Some(1));
    assert_eq!(rest["events"][0]["step"], 4);
    let other = history("&version=99&from=3").json();
    assert_eq!(
        other["events"].as_array().map(Vec::len),
        Some(4),
        "another version begins anew"
    );
    assert_eq!(history("&from=x").status, 400);
    assert_eq!(
        get(
            server.address,
            "/run/attention?api_key=key&checkpoint=step-1"
        )
        .status,
        404
    );
    assert_eq!(
        get(server.address, "/run/attention?api_key=key").status,
        400
    );
    let nothing = TestServer::start();
    for path in ["/run", "/run/history", "/run/attention?checkpoint=a"] {
        let answer = get(nothing.address, path);
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.text().contains("--run RUN"), "{}", answer.text());
    }
}

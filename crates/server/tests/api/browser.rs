//! A browser at the pages of a server: what all tests of pages begin with.

use std::sync::{Mutex, MutexGuard, PoisonError};

use attentive_browser::Browser;
use attentive_server::{Options, Served};
use serde_json::Value;

use super::server::{TestServer, options};

/// A browser, and the server whose page it shows. One at a time: several browsers at once would make each slower than
/// anybody waits.
pub struct Visit {
    pub browser: Browser,
    pub server: TestServer,
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

/// A server with the built-in models.
pub fn built_in(options: Options) -> TestServer {
    let loader = Box::new(|| {
        let served = |model: &attentive_models::BuiltIn| {
            let translator = model.translator(model.options()?)?;
            let (from, to) = (model.from.code(), model.to.code());
            Ok(Served::new(model.name.to_owned(), from, to, translator))
        };
        attentive_models::ALL.iter().map(served).collect()
    });
    let folder = tempfile::tempdir().expect("a folder");
    attentive_model::fake_dir::write(folder.path()).expect("written");
    TestServer::of(options, loader, folder)
}

/// The translation page with the built-in models, ready to be typed into.
pub fn visit(test: &str) -> Option<Visit> {
    let mut visit = visit_server(test, || built_in(options()), &[])?;
    visit.open("/");
    Some(visit)
}

/// A browser for any server, which is started if there is a browser.
pub fn visit_server(
    test: &str,
    server: impl FnOnce() -> TestServer,
    flags: &[&str],
) -> Option<Visit> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let flags = [&["--lang=en-US", "--accept-lang=en-US"][..], flags].concat();
    let mut browser = Browser::with_flags(test, 1280, 900, &flags)?;
    let server = server();
    browser.allow(&format!("http://{}/", server.address));
    Some(Visit {
        browser,
        server,
        _alone: alone,
    })
}

impl Visit {
    /// Opens a page of the server and waits until it has asked for what it needs.
    pub fn open(&mut self, path: &str) {
        let url = format!("http://{}{path}", self.server.address);
        self.browser.open(&url);
        self.browser
            .wait("document.documentElement.dataset.ready === 'yes'");
    }

    /// Replaces the text and waits for its translation.
    pub fn translate(&mut self, text: &str) {
        self.browser.ask("input.focus(), input.select()");
        self.browser.write(text);
        self.settled();
    }

    /// Waits until the page shows the translation of what is written there.
    #[track_caller]
    pub fn settled(&mut self) {
        self.browser.wait(
            "state.answer && state.answer.text === input.value && !document.querySelector('.busy')",
        );
    }

    pub fn ask(&mut self, expression: &str) -> Value {
        self.browser.ask(expression)
    }

    /// What the page shows as the translation, without anything that is only drawn.
    pub fn output(&mut self) -> String {
        self.browser.text("#output")
    }

    #[track_caller]
    pub fn no_errors(&mut self) {
        let errors = self.browser.take_errors();
        assert!(errors.is_empty(), "{errors:#?}");
    }
}

/// Asks axe-core for faults in accessibility, if `ATTENTIVE_AXE` names its file (`.ci/run` fetches it).
#[track_caller]
pub fn assert_accessible(browser: &mut Browser, state: &str) {
    let Some(path) = std::env::var_os("ATTENTIVE_AXE") else {
        eprintln!("SKIPPED {state}: ATTENTIVE_AXE does not name axe-core's axe.min.js");
        return;
    };
    let axe = std::fs::read_to_string(path).expect("ATTENTIVE_AXE names a file");
    browser.ask(&format!("{axe}\n;0"));
    // Colors that are on their way to others cannot be judged.
    browser.ask("Promise.all(document.getAnimations().map((one) => one.effect.getTiming().iterations === 1 ? one.finished : 0)).then(() => 0)");
    let found = browser.ask(
        "axe.run(document, { iframes: false }).then(({ violations }) => violations
           .filter(({ impact }) => impact === 'serious' || impact === 'critical' || impact === 'moderate')
           .map(({ id, nodes }) => id + ': ' + nodes.map((node) => node.html + ' ' + node.failureSummary).join('; ')))",
    );
    assert_eq!(found, serde_json::json!([]), "{state}");
}

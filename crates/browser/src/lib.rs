//! A browser without a window, driven over the DevTools protocol: just what the tests of our pages need.
//!
//! Our own, because the crates that drive browsers bring an async runtime, or download a browser. Used by the tests of
//! `attentive-pictures` (pages in files) and of `attentive-server` (pages of a server). Neighbor: [`keyboard`].

pub mod keyboard;

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

/// Makes a missing browser a failure; set where tests must be complete.
pub const REQUIRED: &str = "ATTENTIVE_BROWSER_REQUIRED";

/// How long a page may take for anything. Machines that test are slow and busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A running browser with one page.
#[derive(Debug)]
pub struct Browser {
    process: Child,
    socket: WebSocket<TcpStream>,
    session: String,
    calls: u64,
    /// Where requests may go without being an error.
    allowed: Vec<String>,
    /// Errors that the page reported.
    pub errors: Vec<String>,
    profile: tempfile::TempDir,
}

/// The browser of this machine: `CHROMIUM`, or one of the usual names.
pub fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CHROMIUM") {
        return Some(named.into());
    }
    let names = [
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
        "chrome",
    ];
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let files = names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    files.into_iter().find(|file| file.is_file())
}

/// Keeps a picture of the page in the folder that `ATTENTIVE_SCREENSHOTS` names.
pub fn keep(browser: &mut Browser, name: &str) {
    if let Some(folder) = std::env::var_os("ATTENTIVE_SCREENSHOTS") {
        let path = Path::new(&folder).join(format!("{name}.png"));
        std::fs::write(path, browser.screenshot()).expect("the folder is there");
    }
}

impl Browser {
    /// The browser with an empty page of this size. Without one the test says that it skipped, unless
    /// [`REQUIRED`] is set.
    pub fn for_test(test: &str, width: u32, height: u32) -> Option<Self> {
        Self::with_flags(test, width, height, &[])
    }

    /// As [`Browser::for_test`], with more arguments.
    pub fn with_flags(test: &str, width: u32, height: u32, flags: &[&str]) -> Option<Self> {
        let Some(binary) = find() else {
            assert!(
                std::env::var_os(REQUIRED).is_none(),
                "no browser was found, and {REQUIRED} is set: install chromium, or name it in CHROMIUM"
            );
            eprintln!(
                "SKIPPED {test}: NO BROWSER WAS FOUND. Install chromium, or name it in CHROMIUM."
            );
            return None;
        };
        Some(Self::start(&binary, width, height, flags))
    }

    fn start(binary: &Path, width: u32, height: u32, flags: &[&str]) -> Self {
        let profile = tempfile::tempdir().expect("a temporary folder");
        let mut process = Command::new(binary)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--remote-debugging-port=0",
            ])
            .arg("--disable-dev-shm-usage")
            .args(flags)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!("--window-size={width},{height}"))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the browser starts");
        let mut lines = BufReader::new(process.stderr.take().expect("piped")).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once("DevTools listening on ")?.1.to_owned()))
            .expect("the browser says where it listens");
        // Whoever stops reading makes the browser wait for ever.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let host = address
            .trim_start_matches("ws://")
            .split('/')
            .next()
            .expect("a host")
            .to_owned();
        let stream = TcpStream::connect(&host).expect("the browser listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let (socket, _) = tungstenite::client(address.as_str(), stream).expect("a web socket");
        let mut browser = Self {
            process,
            socket,
            session: String::new(),
            calls: 0,
            allowed: vec!["file:".into(), "about:".into(), "data:".into()],
            errors: Vec::new(),
            profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        browser.session = browser.attached(&target["targetId"]);
        browser.resize(width, height);
        // As if its window were before all others: otherwise nothing has the focus.
        let focused = json!({ "enabled": true });
        browser.call("Emulation.setFocusEmulationEnabled", focused);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    fn attached(&mut self, target: &Value) -> String {
        let options = json!({ "targetId": target, "flatten": true });
        let attached = self.call("Target.attachToTarget", options);
        attached["sessionId"]
            .as_str()
            .expect("a session")
            .to_owned()
    }

    /// Makes the page as large as this.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Requests to addresses that begin like this are no errors.
    pub fn allow(&mut self, origin: &str) {
        self.allowed.push(origin.to_owned());
    }

    /// Opens a page and waits until it has loaded.
    pub fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url }));
        let loaded = format!("document.readyState + location.href === {:?}", {
            format!("complete{url}")
        });
        self.wait(&loaded);
    }

    /// Waits until an expression on the page is true.
    #[track_caller]
    pub fn wait(&mut self, condition: &str) {
        let began = Instant::now();
        while self.ask(&format!("Boolean({condition})")) != true {
            if began.elapsed() > PATIENCE {
                let shown = self.ask("location.href + '\\n' + document.body.innerText");
                panic!("never true: {condition}\n{shown}\n{:?}", self.errors);
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// The value of an expression on the page.
    #[track_caller]
    pub fn ask(&mut self, expression: &str) -> Value {
        let answer = self.call(
            "Runtime.evaluate",
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true }),
        );
        assert!(
            answer.get("exceptionDetails").is_none(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    /// The text of the first element that fits a selector.
    #[track_caller]
    pub fn text(&mut self, selector: &str) -> String {
        let found = self.ask(&format!("document.querySelector({selector:?}).textContent"));
        found.as_str().expect("a text").to_owned()
    }

    /// The value of an expression in a frame of the page whose address holds `url_part`, if it is there.
    pub fn ask_frame(&mut self, url_part: &str, expression: &str) -> Option<Value> {
        let fits = |url: &Value| url.as_str().is_some_and(|url| url.contains(url_part));
        // A frame of another origin may have a process, and then a session, of its own.
        let own = std::mem::take(&mut self.session);
        let targets = self.call("Target.getTargets", json!({}));
        let targets = targets["targetInfos"].as_array().cloned();
        let mut frames = targets.into_iter().flatten();
        if let Some(frame) = frames.find(|one| one["type"] == "iframe" && fits(&one["url"])) {
            self.session = self.attached(&frame["targetId"]);
            let value = self.ask(expression);
            let session = std::mem::take(&mut self.session);
            self.call("Target.detachFromTarget", json!({ "sessionId": session }));
            self.session = own;
            return Some(value);
        }
        self.session = own;
        let tree = self.call("Page.getFrameTree", json!({}));
        let frames = tree["frameTree"]["childFrames"].as_array().cloned();
        let mut frames = frames.into_iter().flatten();
        let frame = frames.find(|one| fits(&one["frame"]["url"]))?;
        let world = json!({ "frameId": frame["frame"]["id"] });
        let world = self.call("Page.createIsolatedWorld", world);
        let answer = self.call(
            "Runtime.evaluate",
            json!({ "expression": expression, "returnByValue": true, "contextId": world["executionContextId"] }),
        );
        Some(answer["result"]["value"].clone())
    }

    /// Moves the pointer to the middle of an element.
    #[track_caller]
    pub fn hover(&mut self, selector: &str) {
        let (x, y) = self.place(selector);
        self.mouse("mouseMoved", x, y);
    }

    /// Clicks in the middle of an element.
    #[track_caller]
    pub fn click(&mut self, selector: &str) {
        let (x, y) = self.place(selector);
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            self.mouse(kind, x, y);
        }
    }

    /// Chooses files in a file input.
    pub fn choose_file(&mut self, selector: &str, file: &Path) {
        let found = format!("document.querySelector({selector:?})");
        let node = self.call("Runtime.evaluate", json!({ "expression": found }));
        let id = &node["result"]["objectId"];
        let file = file.to_str().expect("UTF-8");
        self.call(
            "DOM.setFileInputFiles",
            json!({ "files": [file], "objectId": id }),
        );
    }

    /// Lets the page read and write the clipboard.
    pub fn allow_clipboard(&mut self, origin: &str) {
        let session = std::mem::take(&mut self.session);
        let permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"];
        let grant = json!({ "origin": origin, "permissions": permissions });
        self.call("Browser.grantPermissions", grant);
        self.session = session;
    }

    /// The folder into which files are downloaded from now on.
    pub fn downloads(&mut self) -> PathBuf {
        let folder = self.profile.path().join("downloads");
        std::fs::create_dir_all(&folder).expect("a folder");
        let session = std::mem::take(&mut self.session);
        let options = json!({ "behavior": "allow", "downloadPath": folder });
        self.call("Browser.setDownloadBehavior", options);
        self.session = session;
        folder
    }

    /// The errors so far, which are forgotten: for those that a test has caused on purpose.
    pub fn take_errors(&mut self) -> Vec<String> {
        // What has happened so far is told before the answer.
        self.ask("0");
        std::mem::take(&mut self.errors)
    }

    /// A picture of the whole page.
    pub fn screenshot(&mut self) -> Vec<u8> {
        let options = json!({ "format": "png", "captureBeyondViewport": true });
        let answer = self.call("Page.captureScreenshot", options);
        base64::decode(answer["data"].as_str().expect("a picture")).expect("base64")
    }

    /// One command of the protocol; errors of the page that come in between are kept.
    #[track_caller]
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut request = json!({ "id": self.calls, "method": method, "params": parameters });
        if !self.session.is_empty() {
            request["sessionId"] = self.session.clone().into();
        }
        self.socket
            .send(Message::text(request.to_string()))
            .expect("the browser listens");
        loop {
            let message = self
                .socket
                .read()
                .unwrap_or_else(|error| panic!("{method}: {error}"));
            let Ok(text) = message.to_text() else {
                continue;
            };
            let Ok(answer) = serde_json::from_str::<Value>(text) else {
                continue;
            };
            if answer["id"] == self.calls {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.note(&answer);
        }
    }

    fn note(&mut self, event: &Value) {
        let details = &event["params"];
        let wrong = match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => {
                details["type"] == "error" || details["type"] == "warning"
            }
            Some("Log.entryAdded") => details["entry"]["level"] == "error",
            // A page asks for nothing but itself and what was allowed.
            Some("Network.requestWillBeSent") => {
                let url = details["request"]["url"].as_str().unwrap_or_default();
                !self.allowed.iter().any(|allowed| url.starts_with(allowed))
            }
            _ => false,
        };
        if wrong {
            self.errors.push(event.to_string());
        }
    }

    /// The middle of an element, scrolled into view.
    #[track_caller]
    fn place(&mut self, selector: &str) -> (f64, f64) {
        let found = self.ask(&format!(
            "(() => {{ const found = document.querySelector({selector:?});
               if (!found) return null;
               found.scrollIntoView({{ block: 'center', inline: 'center' }});
               const box = found.getBoundingClientRect();
               return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        ));
        let number = |i: usize| {
            found[i]
                .as_f64()
                .unwrap_or_else(|| panic!("no {selector} on the page"))
        };
        (number(0), number(1))
    }

    fn mouse(&mut self, kind: &str, x: f64, y: f64) {
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        let event = json!({ "type": kind, "x": x, "y": y, "button": button, "clickCount": 1 });
        self.call("Input.dispatchMouseEvent", event);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

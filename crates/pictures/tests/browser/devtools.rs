//! A browser without a window, driven over the DevTools protocol: just what the test beside this needs.
//!
//! Our own, because the crates that drive browsers bring an async runtime, or download a browser.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

/// Makes a missing browser a failure; set where tests must be complete.
pub const REQUIRED: &str = "ATTENTIVE_BROWSER_REQUIRED";

/// A running browser with one page.
pub struct Browser {
    process: Child,
    socket: WebSocket<TcpStream>,
    session: String,
    calls: u64,
    /// Errors that the page reported.
    pub errors: Vec<String>,
    _profile: tempfile::TempDir,
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

impl Browser {
    /// Starts the browser with an empty page of this size.
    pub fn start(binary: PathBuf, width: u32, height: u32) -> Self {
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
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .expect("a socket");
        let (socket, _) = tungstenite::client(address.as_str(), stream).expect("a web socket");
        let mut browser = Self {
            process,
            socket,
            session: String::new(),
            calls: 0,
            errors: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = browser.call(
            "Target.attachToTarget",
            json!({ "targetId": target["targetId"], "flatten": true }),
        );
        browser.session = attached["sessionId"]
            .as_str()
            .expect("a session")
            .to_owned();
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        browser.call("Emulation.setDeviceMetricsOverride", size);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Opens a page and waits until it has loaded.
    pub fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url }));
        for _ in 0..200 {
            if self.ask("document.readyState + location.href") == format!("complete{url}") {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{url} does not load");
    }

    /// The value of an expression on the page.
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
    pub fn text(&mut self, selector: &str) -> String {
        let found = self.ask(&format!("document.querySelector({selector:?}).textContent"));
        found.as_str().expect("a text").to_owned()
    }

    /// Moves the pointer to the middle of an element.
    pub fn hover(&mut self, selector: &str) {
        let (x, y) = self.place(selector);
        self.mouse("mouseMoved", x, y);
    }

    /// Clicks in the middle of an element.
    pub fn click(&mut self, selector: &str) {
        let (x, y) = self.place(selector);
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            self.mouse(kind, x, y);
        }
    }

    /// Presses a key, such as `ArrowRight` or `w`.
    pub fn press(&mut self, key: &str) {
        for kind in ["rawKeyDown", "keyUp"] {
            self.call(
                "Input.dispatchKeyEvent",
                json!({ "type": kind, "key": key }),
            );
        }
    }

    /// A picture of the whole page.
    pub fn screenshot(&mut self) -> Vec<u8> {
        let options = json!({ "format": "png", "captureBeyondViewport": true });
        let answer = self.call("Page.captureScreenshot", options);
        decoded(answer["data"].as_str().expect("a picture"))
    }

    /// One command of the protocol; errors of the page that come in between are kept.
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
            // A page that needs no network asks for nothing but itself.
            Some("Network.requestWillBeSent") => {
                let url = details["request"]["url"].as_str().unwrap_or_default();
                !url.starts_with("file:") && !url.starts_with("about:")
            }
            _ => false,
        };
        if wrong {
            self.errors.push(event.to_string());
        }
    }

    /// The middle of an element, scrolled into view.
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

/// Base64, which pictures come in.
fn decoded(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let (mut bits, mut count, mut bytes) = (0u32, 0, Vec::new());
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        (bits, count) = (bits << 6 | u32::from(value(byte)), count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

//! The translation page against those who mean it harm: markup in texts and models, other sites, other names, no key.

use std::io::{Read, Write};
use std::net::TcpListener;

use attentive_model::{ModelDir, fake_dir};
use attentive_runtime::cpu::Compute;
use attentive_runtime::translator::{Translator, TranslatorOptions};
use attentive_server::{Loader, Options, Served};
use serde_json::{Value, json};

use super::browser::{built_in, visit_server};
use super::client::{get, post_json, request};
use super::server::{TestServer, options};

/// Words that would do something if anybody took them for markup.
const NASTY: [&str; 6] = [
    "<img/src=x/onerror=window.hacked=1>",
    "<script>window.hacked=1</script>",
    "\"><svg/onload=window.hacked=1>",
    "</textarea><iframe/src=javascript:parent.hacked=1>",
    "${window.hacked=1}",
    "&lt;b&gt;",
];

/// A model that reads and writes nothing but such words.
fn nasty_server() -> TestServer {
    let folder = tempfile::tempdir().expect("a folder");
    fake_dir::write(folder.path()).expect("written");
    let path = folder.path().join("tokenizer.json");
    let text = std::fs::read_to_string(&path).expect("a text");
    let mut words: Value = serde_json::from_str(&text).expect("JSON");
    words["kind"] = "spaces".into();
    let letters = words["tokens"].as_array_mut().into_iter().flatten();
    let letters = letters.filter(|token| token.as_str().is_some_and(|token| token.len() == 1));
    for (number, letter) in letters.enumerate() {
        *letter = word(number).into();
    }
    std::fs::write(&path, words.to_string()).expect("written");
    let path = folder.path().to_owned();
    let loader: Loader = Box::new(move || {
        let directory = ModelDir::open(&path)?;
        let options = TranslatorOptions::default();
        let translator = Translator::of_model(directory, Compute::Auto, options)?;
        let name = "<i>nasty</i>".to_owned();
        Ok(vec![Served::new(name, "de", "en", translator)])
    });
    TestServer::of(options(), loader, folder)
}

fn word(number: usize) -> String {
    format!("{}<{number}>", NASTY[number % NASTY.len()])
}

#[test]
fn markup_in_texts_translations_and_alternatives_stays_text() {
    let Some(mut visit) = visit_server("markup", nasty_server, &[]) else {
        return;
    };
    visit.open("/");
    let elements = "document.querySelectorAll('img, svg, script, iframe, i').length";
    let before = visit.ask(elements);
    let text = (0..8).map(word).collect::<Vec<_>>().join(" ");
    visit.translate(&text);
    let said = visit.output();
    assert!(NASTY.iter().any(|word| said.contains(word)), "{said}");
    visit.browser.click("#confidence");
    visit
        .browser
        .wait("document.querySelector('.w[data-sure]')");
    visit.settled();
    visit.browser.click(".w[data-word='0-0']");
    visit
        .browser
        .wait("document.querySelectorAll('#choices li').length > 1");
    let words = visit
        .ask("Array.from(document.querySelectorAll('#choices .word'), (one) => one.textContent)");
    assert!(
        words
            .as_array()
            .is_some_and(|all| all.iter().any(|word| NASTY
                .iter()
                .any(|nasty| word.as_str().is_some_and(|word| word.contains(nasty))))),
        "{words}"
    );
    visit.browser.press("Escape");
    visit.ask("send(new File(['x'], '<img src=x onerror=window.hacked=1>.txt'))");
    visit.browser.wait(
        "!document.getElementById('document-link').hidden || document.querySelector('#alert p')",
    );
    // An address that somebody else made up.
    visit.ask("location.hash = '#<script>/en/' + encodeURIComponent('<img src=x onerror=window.hacked=1>'), 0");
    visit
        .browser
        .wait("input.value.startsWith('<img src') || location.hash.startsWith('#%3C')");
    visit.ask(
        "location.hash = '#de/en/' + encodeURIComponent('<img src=x onerror=window.hacked=1>'), 0",
    );
    visit.browser.wait("input.value.startsWith('<img src')");
    visit.settled();
    assert_eq!(visit.ask(elements), before, "no element came from a text");
    assert_eq!(visit.ask("window.hacked === undefined"), true);
    visit.no_errors();
    // Even if a text became markup, the policy would keep its script from running, and its pictures from loading.
    visit.ask("document.body.insertAdjacentHTML('beforeend', '<img src=http://127.0.0.1:9/x onerror=window.hacked=1><b onclick=window.hacked=1 id=bad>x</b>')");
    visit.ask("document.getElementById('bad').click(), document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.hacked = 1' })), 0");
    visit.ask("new Promise((done) => setTimeout(done, 300)).then(() => 0)");
    assert_eq!(visit.ask("window.hacked === undefined"), true);
    let refused = visit.browser.take_errors().join("\n");
    assert!(refused.contains("Content Security Policy"), "{refused}");
}

#[test]
fn other_sites_cannot_frame_the_page_or_pretend_to_be_it() {
    // Another site, which also has a name that was made to mean this machine.
    let site = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = site.local_addr().expect("bound").port();
    let flags = ["--host-resolver-rules=MAP evil.test 127.0.0.1"];
    let Some(mut visit) = visit_server("sites", || built_in(options()), &flags) else {
        return;
    };
    std::thread::spawn(move || {
        for stream in site.incoming() {
            let Ok(mut stream) = stream else { break };
            let _ = stream.read(&mut [0; 4096]);
            let body = "<!doctype html><title>other</title><body>";
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    let (server, own) = (visit.server.address, visit.server.address.port());
    visit.browser.allow("http://evil.test");
    // DNS rebinding: the name of the other site, and our port.
    visit.browser.open(&format!("http://evil.test:{own}/"));
    let shown = visit.ask("document.body.innerText");
    assert!(
        shown
            .as_str()
            .is_some_and(|text| text.contains("not known as evil.test")),
        "{shown}"
    );
    let status = visit.ask("fetch('/v1/translate', { method: 'POST', body: '{\"text\":\"Hund\"}' }).then((answer) => answer.status)");
    assert_eq!(status, 403);
    // From its own port: our page cannot be framed, and what opened it has no hold of it.
    visit.browser.open(&format!("http://evil.test:{port}/"));
    visit.browser.take_errors();
    visit.ask(&format!("new Promise((done) => {{ const frame = document.createElement('iframe'); frame.onload = done; frame.src = 'http://{server}/'; document.body.append(frame); }}).then(() => 0)"));
    let refused = visit.browser.take_errors().join("\n");
    assert!(
        refused.contains("frame-ancestors")
            || refused.contains("refused to connect")
            || refused.contains("BLOCKED"),
        "{refused}"
    );
    // A form of another site reaches the server, as any site may, but its page cannot read an explorer's frame, and
    // a key is never sent along: there is no cookie.
    assert_eq!(visit.ask(&format!("fetch('http://{server}/v1/models', {{ credentials: 'include' }}).then((answer) => answer.ok, () => 'refused')")), "refused");
    let page = get(server, "/");
    for (header, part) in [
        (
            "content-security-policy",
            "default-src 'none'; script-src 'sha256-",
        ),
        ("content-security-policy", "frame-ancestors 'none'"),
        ("content-security-policy", "base-uri 'none'"),
        ("cross-origin-opener-policy", "same-origin"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
    ] {
        let found = page.header(header).unwrap_or_default();
        assert!(found.contains(part), "{header}: {found}");
    }
    assert!(
        !page
            .header("content-security-policy")
            .unwrap_or_default()
            .contains("unsafe")
    );
}

#[test]
fn a_key_is_asked_for_and_stays_in_the_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys");
    std::fs::write(&keys, "open-sesame\n").expect("written");
    let options = Options {
        key_file: Some(keys),
        ..options()
    };
    let Some(mut visit) = visit_server("keys", || built_in(options), &[]) else {
        return;
    };
    visit.open("/");
    visit.browser.wait(
        "!document.getElementById('key').hidden && document.activeElement.id === 'key-value'",
    );
    visit.browser.write("wrong");
    visit.browser.press("Enter");
    visit.ask("input.focus()");
    visit.browser.write("Guten Morgen!");
    visit
        .browser
        .wait("document.getElementById('alert').textContent.includes('does not know this key')");
    visit
        .browser
        .wait("document.activeElement.id === 'key-value'");
    visit.browser.write("open-sesame");
    visit.browser.press("Enter");
    visit.settled();
    assert!(!visit.output().is_empty());
    // Also for alternatives, the explorer and documents.
    visit.browser.click(".w[data-word='0-0']");
    visit
        .browser
        .wait("document.querySelectorAll('#choices li').length > 0");
    visit.browser.press("Escape");
    visit.ask("send(new File(['Hund'], 'a.txt')), 0");
    visit
        .browser
        .wait("!document.getElementById('document-link').hidden");
    let kept = visit.ask("JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, document.documentElement.outerHTML, input.value])");
    assert!(!kept.to_string().contains("open-sesame"), "{kept}");
    // The refusal on purpose is the only thing that the console tells.
    let errors = visit.browser.take_errors();
    assert!(
        errors.iter().all(|error| error.contains("403")),
        "{errors:?}"
    );
}

#[test]
fn the_explorer_says_in_words_what_it_cannot_draw() {
    let server = TestServer::start();
    let long = json!({"text": "a ".repeat(300), "source": "de", "target": "en", "format": "html"});
    let refused = post_json(server.address, "/v1/attention", &long);
    assert_eq!(refused.status, 400);
    assert!(
        refused
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/html"))
    );
    assert!(
        refused
            .header("content-security-policy")
            .is_some_and(|policy| policy.contains("sandbox"))
    );
    assert!(
        refused.text().contains("<p>") && refused.text().contains("at most 255"),
        "{}",
        refused.text()
    );
    // Who asks for numbers gets JSON, as before.
    let form = "content-type: application/x-www-form-urlencoded\r\n";
    let body = format!("source=de&target=en&text={}", "a+".repeat(300));
    let refused = request(
        server.address,
        "POST",
        "/v1/attention",
        form,
        body.as_bytes(),
    );
    assert!(
        refused.json()["error"]
            .as_str()
            .is_some_and(|text| text.contains("at most 255"))
    );
}

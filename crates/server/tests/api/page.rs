//! The translation page in a real browser, with the built-in models: everything that it offers.

use attentive_browser::keep;
use serde_json::{Value, json};

use super::browser::{Visit, assert_accessible, visit};
use super::client::post_json;

const TEXT: &str = "Zwei junge Männer spielen im Park Fußball.";

/// What the API says to this.
fn api(visit: &Visit, path: &str, body: &Value) -> Value {
    let answer = post_json(visit.server.address, path, body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn translation(visit: &Visit, text: &str) -> String {
    let body = json!({"text": text});
    let answer = api(visit, "/v1/translate", &body);
    let text = answer["translations"][0]["text"].as_str();
    text.expect("a text").to_owned()
}

/// Lets the page ask as it does, and counts; the answers to the first `held` questions wait for `letGo()`.
const COUNTED: &str = "(() => {
    const real = window.fetch;
    window.asked = []; window.aborted = 0;
    const held = new Promise((resolve) => { window.letGo = resolve; });
    window.fetch = async (path, options) => {
        if (path !== '/v1/translate') return real(path, options);
        window.asked.push(JSON.parse(options.body).text);
        options.signal.addEventListener('abort', () => { window.aborted += 1; });
        const first = window.asked.length <= (window.hold || 0);
        const { signal, ...rest } = options;
        const answer = await real(path, first ? rest : options);
        if (first) await held;
        return answer;
    };
})()";

#[test]
fn typing_is_translated_after_a_pause_and_late_answers_are_dropped() {
    let Some(mut visit) = visit("typing") else {
        return;
    };
    visit.ask(COUNTED);
    // One question for many keys. They come from a script, because here they must come fast.
    visit.ask(
        "input.focus(), Array.from('Guten Morgen!', (letter) => {
            input.value += letter; input.dispatchEvent(new InputEvent('input')); return 0; })",
    );
    visit.settled();
    assert_eq!(visit.ask("window.asked"), json!(["Guten Morgen!"]));
    assert_eq!(visit.output(), translation(&visit, "Guten Morgen!"));
    // The first answer comes after the second, and is not shown.
    visit.ask("window.asked = [], window.hold = 1, input.select()");
    visit.browser.write("Ein Hund");
    visit.browser.wait("window.asked.length === 1");
    visit.browser.write(" schläft.");
    visit.settled();
    let expected = translation(&visit, "Ein Hund schläft.");
    assert_eq!(visit.output(), expected);
    assert_eq!(visit.ask("window.aborted >= 1"), true);
    visit.ask("window.letGo(), new Promise((done) => setTimeout(done, 100)).then(() => 0)");
    assert_eq!(visit.output(), expected);
    // Whoever composes a character is waited for.
    visit.ask("window.asked = [], window.hold = 0, input.select()");
    visit.browser.compose("Hau");
    visit.ask("new Promise((done) => setTimeout(done, 700)).then(() => 0)");
    assert_eq!(visit.ask("window.asked"), json!([]));
    visit.browser.write("Haus");
    visit.settled();
    assert_eq!(visit.ask("window.asked"), json!(["Haus"]));
    // Control and Enter do not wait.
    visit.ask("window.setTimeout = ((real) => (f, pause) => real(f, pause === 350 ? 1e6 : pause))(window.setTimeout)");
    visit.browser.write(" und Hof");
    visit.browser.press("Control+Enter");
    visit.settled();
    assert_eq!(visit.ask("input.value"), "Haus und Hof");
    visit.no_errors();
}

#[test]
fn languages_are_detected_chosen_swapped_and_kept_in_the_address() {
    let Some(mut visit) = visit("languages") else {
        return;
    };
    visit.ask("window.before = history.length");
    visit.translate(TEXT);
    let english = visit.output();
    assert_eq!(english, translation(&visit, TEXT));
    let option = "document.getElementById('source').selectedOptions[0].text";
    assert_eq!(visit.ask(option), "German (detected)");
    assert_eq!(
        visit.ask("[input.lang, output.lang, input.dir, output.dir]"),
        json!(["de", "en", "ltr", "ltr"])
    );
    let address = visit.ask("decodeURIComponent(location.hash)");
    assert_eq!(address, format!("#auto/en/{TEXT}"));
    assert_eq!(
        visit.ask("location.search + (history.length - window.before)"),
        "0",
        "nothing is added to the history"
    );
    // Swapping uses the language that was detected.
    visit.browser.click("#swap");
    visit.settled();
    assert_eq!(
        visit.ask("[state.source, state.target, input.value]"),
        json!(["en", "de", english])
    );
    let german = visit.output();
    assert_eq!(german, translation(&visit, &english));
    // Somebody writes German to be translated into German: the other language is meant.
    visit.ask("document.getElementById('source').value = 'auto', document.getElementById('source').dispatchEvent(new Event('change'))");
    visit.translate("Der Hund schläft im Garten.");
    assert_eq!(
        visit.ask("[state.source, state.target, state.detected.language]"),
        json!(["auto", "en", "de"])
    );
    // An address says everything.
    visit.ask("location.hash = '#en/de/' + encodeURIComponent('A dog sleeps. 100 % / fine')");
    visit
        .browser
        .wait("input.value === 'A dog sleeps. 100 % / fine'");
    visit.settled();
    assert_eq!(
        visit.output(),
        translation(&visit, "A dog sleeps. 100 % / fine")
    );
    visit.browser.click("#clear");
    visit
        .browser
        .wait("state.answer === null && output.querySelectorAll('.w').length === 0");
    assert_eq!(
        visit.ask("document.activeElement.id + location.hash"),
        "input#en/de/"
    );
    visit.no_errors();
}

#[test]
fn words_light_up_with_those_they_came_from_and_the_other_way_round() {
    let Some(mut visit) = visit("pointing") else {
        return;
    };
    let text = format!("Guten Morgen!\n{TEXT}");
    visit.translate(&text);
    assert_eq!(
        visit.ask("mirror.textContent.trimEnd() === input.value"),
        true
    );
    let answer = api(
        &visit,
        "/v1/translate",
        &json!({"text": text, "alignments": true}),
    );
    let sentences = answer["translations"][0]["sentences"]
        .as_array()
        .expect("some")
        .clone();
    let number = sentences
        .iter()
        .position(|one| one["source"] == TEXT)
        .expect("it");
    let links = sentences[number]["alignment"]
        .as_array()
        .expect("links")
        .clone();
    let words: Vec<&str> = TEXT.split_whitespace().collect();
    let target = sentences[number]["translation"]
        .as_str()
        .expect("a text")
        .to_owned();
    for (column, word) in target.split_whitespace().enumerate() {
        visit
            .browser
            .hover(&format!(".w[data-word='{number}-{column}']"));
        let mut expected: Vec<usize> = links
            .iter()
            .filter(|link| link[1] == json!(column))
            .map(|link| link[0].as_u64().expect("a place") as usize)
            .collect();
        expected.sort_unstable();
        let expected: Vec<&str> = expected.into_iter().map(|place| words[place]).collect();
        let lit =
            visit.ask("Array.from(mirror.querySelectorAll('.lit'), (one) => one.textContent)");
        assert_eq!(lit, json!(expected), "{word}");
        let readout = visit.browser.text("#readout");
        assert!(readout.starts_with(&format!("“{word}”")), "{readout}");
    }
    keep(&mut visit.browser, "page-pointing");
    // The marks are where the words are.
    let same = "(() => { const [a, b] = [mirror, input].map((one) => one.getBoundingClientRect());
        return [a.x - b.x, a.y - b.y, a.width - b.width].every((apart) => Math.abs(apart) < 1); })()";
    assert_eq!(visit.ask(same), true);
    let partners = |source: &str| -> Vec<&str> {
        let place = words.iter().position(|word| *word == source);
        let own = links.iter().filter(|link| link[0] == json!(place));
        let columns: Vec<u64> = own.filter_map(|link| link[1].as_u64()).collect();
        let all = target.split_whitespace().enumerate();
        let found = all.filter(|(column, _)| columns.contains(&(*column as u64)));
        found.map(|(_, word)| word).collect()
    };
    let lit = "Array.from(output.querySelectorAll('.lit'), (one) => one.textContent)";
    visit.browser.hover(&format!("[data-from='{number}-2']"));
    let expected = partners("Männer");
    assert!(!expected.is_empty());
    assert_eq!(visit.ask(lit), json!(expected));
    // With the keyboard: the word at the caret.
    let expected = json!(partners("Park"));
    visit.ask("input.focus(), input.setSelectionRange(input.value.indexOf('Park') + 1, input.value.indexOf('Park') + 1)");
    visit.browser.wait(&format!(
        "JSON.stringify({lit}) === JSON.stringify({expected})"
    ));
    visit.no_errors();
}

#[test]
fn alternatives_for_a_word_are_the_models_and_the_rest_follows_from_the_choice() {
    let Some(mut visit) = visit("alternatives") else {
        return;
    };
    visit.translate(TEXT);
    let before = visit.output();
    let words: Vec<&str> = before.split(' ').collect();
    let prefix = words[..3].join(" ");
    visit.browser.click(".w[data-word='0-3']");
    visit
        .browser
        .wait("document.querySelectorAll('#choices li').length > 1");
    let body = json!({"text": TEXT, "source": "de", "target": "en", "prefix": prefix, "top": 8});
    let expected = api(&visit, "/v1/alternatives", &body);
    let expected = expected["alternatives"].as_array().expect("some").clone();
    let shown = visit
        .ask("Array.from(document.querySelectorAll('#choices .word'), (one) => one.textContent)");
    let named: Vec<Value> = expected.iter().map(|one| one["word"].clone()).collect();
    assert_eq!(shown, json!(named));
    let share = visit.browser.text("#choices .share");
    let percent = expected[0]["probability"].as_f64().expect("a number") * 100.0;
    let written: f64 = share.trim_end_matches('%').parse().expect("a number");
    assert!((written - percent).abs() <= 0.5, "{share} {percent}");
    // The word that is there has a mark and the focus, arrows move, Escape leaves everything as it was.
    assert_eq!(
        visit.ask("document.activeElement.querySelector('.word').textContent"),
        words[3]
    );
    assert_accessible(&mut visit.browser, "alternatives");
    keep(&mut visit.browser, "page-alternatives");
    visit.browser.press("Escape");
    assert_eq!(visit.ask("document.getElementById('menu').hidden"), true);
    assert_eq!(visit.ask("document.activeElement.dataset.word"), "0-3");
    assert_eq!(visit.output(), before);
    // By keyboard alone: to the same word, open, another choice.
    visit.browser.press("ArrowLeft");
    visit.browser.press("ArrowRight");
    visit.browser.press("Enter");
    visit
        .browser
        .wait("document.activeElement.getAttribute('role') === 'option'");
    let other = named
        .iter()
        .position(|word| word != words[3])
        .expect("another");
    visit.browser.press("Home");
    for _ in 0..other {
        visit.browser.press("ArrowDown");
    }
    visit.browser.press("Enter");
    let word = named[other].as_str().expect("a word");
    let fixed = format!("{prefix} {word}");
    visit
        .browser
        .wait(&format!("output.textContent.startsWith({fixed:?})"));
    let body = json!({"text": TEXT, "source": "de", "target": "en", "prefix": fixed});
    let follows = api(&visit, "/v1/translate", &body)["translations"][0]["text"].clone();
    assert_eq!(visit.output(), follows.as_str().expect("a text"));
    visit
        .browser
        .wait("document.activeElement.dataset.word === '0-3'");
    assert!(visit.browser.text("#status").contains(word), "it is told");
    // The choice stays while the text goes on, and can be taken back.
    let chosen = visit.output();
    visit.ask("input.focus(), input.setSelectionRange(input.value.length, input.value.length)");
    visit.browser.write(" Guten Morgen!");
    visit.settled();
    assert!(visit.output().starts_with(&chosen), "{}", visit.output());
    visit.browser.click("#undo");
    visit
        .browser
        .wait(&format!("output.textContent.startsWith({before:?})"));
    visit.no_errors();
}

#[test]
fn confidence_is_a_number_at_each_word_and_look_inside_shows_this_very_sentence() {
    let Some(mut visit) = visit("confidence") else {
        return;
    };
    visit.translate(&format!("Guten Morgen! {TEXT}"));
    let plain = visit.output();
    assert_eq!(
        visit.ask("document.querySelectorAll('[data-sure]').length"),
        0
    );
    visit.browser.click("#confidence");
    visit.browser.wait("document.querySelectorAll('#output [data-sure]').length === document.querySelectorAll('#output .w').length");
    assert_eq!(visit.output(), plain, "numbers are no part of the text");
    let body = json!({"text": TEXT, "tokens": true, "top": 0});
    let answer = api(&visit, "/v1/translate", &body);
    let sentence = &answer["translations"][0]["sentences"][0];
    // The first word of this sentence: its tokens begin before it ends.
    let first = sentence["translation"]
        .as_str()
        .expect("a text")
        .split(' ')
        .next()
        .expect("a word");
    let end = first.chars().count() as u64;
    let tokens = sentence["tokens"].as_array().expect("tokens").iter();
    let own = tokens.filter(|token| {
        token["start"].as_u64() < Some(end) && token["end"].as_u64() > token["start"].as_u64()
    });
    let sum: f64 = own
        .map(|token| token["logprob"].as_f64().expect("a number"))
        .sum();
    let shown = visit.ask("Number(document.querySelector('.w[data-word^=\"1-\"]').dataset.sure)");
    assert!(
        (shown.as_f64().expect("a number") - sum.exp() * 100.0).abs() <= 0.51,
        "{shown} {sum}"
    );
    // Not by color alone: a number, and a line below words that are not sure.
    let drawn = "getComputedStyle(document.querySelector('.w[data-sure]'), '::after').content";
    assert!(
        visit
            .ask(drawn)
            .as_str()
            .is_some_and(|text| text.chars().any(|c| c.is_ascii_digit()))
    );
    assert_accessible(&mut visit.browser, "confidence");
    keep(&mut visit.browser, "page-confidence");
    // The explorer shows the sentence of the word that has the focus.
    visit.browser.click("#theme");
    visit.ask("document.querySelector('.w[data-word=\"1-2\"]').click()");
    visit
        .browser
        .wait("document.querySelectorAll('#choices li').length > 0");
    visit.browser.click("#menu-look");
    assert_eq!(visit.ask("document.getElementById('inside').open"), true);
    let began = std::time::Instant::now();
    let text = loop {
        let asked = "document.readyState === 'complete' && document.querySelectorAll('#map [data-weight]').length > 50 \
                     && document.getElementById('source-text').textContent + '|' + document.getElementById('target-text').textContent";
        let found = visit.browser.ask_frame("/v1/attention", asked);
        if let Some(Value::String(text)) = found {
            break text;
        }
        assert!(
            began.elapsed() < attentive_browser::PATIENCE,
            "the explorer does not load"
        );
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    let translated = sentence["translation"].as_str().expect("a text");
    assert_eq!(text, format!("{TEXT}|{translated}"));
    let origin = visit.browser.ask_frame("/v1/attention", "self.origin");
    assert_eq!(
        origin,
        Some(json!("null")),
        "the explorer has no rights of this page"
    );
    let theme = "document.documentElement.dataset.theme";
    let inside = visit.browser.ask_frame("/v1/attention", theme);
    assert_eq!(inside, Some(json!("dark")), "it is as dark as the page");
    keep(&mut visit.browser, "page-inside");
    visit.browser.click("#inside-close");
    // A dialog says a moment later that it was closed.
    visit.browser.wait(
        "!document.getElementById('inside').open && document.activeElement.dataset.word === '1-2'",
    );
    visit.no_errors();
}

#[test]
fn documents_are_sent_or_dropped_and_come_back_as_files() {
    let Some(mut visit) = visit("documents") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("letter.txt");
    std::fs::write(&file, TEXT).expect("written");
    let downloads = visit.browser.downloads();
    visit.browser.choose_file("#file", &file);
    visit
        .browser
        .wait("!document.getElementById('document-link').hidden");
    assert!(visit.browser.text("#document-text").contains("letter.txt"));
    let expected = translation(&visit, TEXT);
    fetched(&mut visit, &downloads.join("letter_en.txt"), &expected);
    // Dropped onto the page.
    visit.ask(
        "(() => { const data = new DataTransfer();
            data.items.add(new File(['Guten Morgen!'], 'note.txt'));
            for (const kind of ['dragover', 'drop']) dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
        })()",
    );
    visit.browser.wait("document.getElementById('document-text').textContent.includes('note.txt') && !document.getElementById('document-link').hidden");
    let expected = translation(&visit, "Guten Morgen!");
    fetched(&mut visit, &downloads.join("note_en.txt"), &expected);
    // What cannot be translated is said at once, what was called off leaves nothing.
    visit.ask("send(new File(['x'], 'picture.png'))");
    assert!(
        visit.browser.text("#alert").contains("picture.png"),
        "{}",
        visit.browser.text("#alert")
    );
    visit.ask("send(new File(['Guten Tag.'], 'gone.txt')), sending.abort()");
    assert_eq!(
        visit.ask("document.getElementById('document').hidden"),
        true
    );
    visit.no_errors();
}

fn fetched(visit: &mut Visit, file: &std::path::Path, expected: &str) {
    visit.browser.click("#document-link");
    let began = std::time::Instant::now();
    while std::fs::read_to_string(file).ok().as_deref() != Some(expected) {
        assert!(
            began.elapsed() < attentive_browser::PATIENCE,
            "{} is not {expected}",
            file.display()
        );
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn the_page_suits_phones_the_dark_keyboards_screen_readers_and_three_languages() {
    let Some(mut visit) = visit("looks") else {
        return;
    };
    visit
        .browser
        .allow_clipboard(&format!("http://{}", visit.server.address));
    assert_accessible(&mut visit.browser, "empty");
    // A screen reader hears each answer once.
    visit.ask("window.heard = [], new MutationObserver(() => window.heard.push(document.getElementById('status').textContent))
        .observe(document.getElementById('status'), { childList: true, characterData: true, subtree: true }), 0");
    visit.translate(TEXT);
    let english = visit.output();
    assert_eq!(
        visit.ask("window.heard"),
        json!([format!("Translation: {english}")])
    );
    visit.browser.click("#copy");
    visit
        .browser
        .wait("document.getElementById('status').textContent === 'Copied'");
    assert_eq!(visit.ask("navigator.clipboard.readText()"), english);
    // One stop for all words: from the text to the words, and on.
    visit.ask("input.focus()");
    let stops = visit_stops(&mut visit);
    let words = stops.iter().filter(|stop| stop.starts_with("word")).count();
    assert_eq!(words, 1, "{stops:?}");
    assert!(
        stops.contains(&"copy".to_owned()) && stops.contains(&"upload".to_owned()),
        "{stops:?}"
    );
    // Arrows go from word to word, also to another line.
    visit.ask("document.querySelector('.w[tabindex=\"0\"]').focus()");
    visit.browser.press("End");
    let last = visit
        .ask("output.querySelectorAll('.w').length - 1")
        .as_u64()
        .expect("a number");
    assert_eq!(
        visit.ask("document.activeElement.dataset.word"),
        format!("0-{last}")
    );
    visit.browser.press("ArrowLeft");
    assert_eq!(
        visit.ask("document.activeElement.dataset.word"),
        format!("0-{}", last - 1)
    );
    visit.browser.press("Home");
    visit.browser.press("ArrowRight");
    assert_eq!(visit.ask("document.activeElement.dataset.word"), "0-1");
    assert_accessible(&mut visit.browser, "translated");
    // Dark by the system, and by the button.
    let paper = "getComputedStyle(document.documentElement).backgroundColor";
    let light = visit.ask(paper);
    let dark = json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
    visit.browser.call("Emulation.setEmulatedMedia", dark);
    visit.browser.wait(&format!("{paper} !== {light}"));
    let dark = visit.ask(paper);
    assert_accessible(&mut visit.browser, "dark");
    keep(&mut visit.browser, "page-dark");
    visit.browser.click("#theme");
    assert_eq!(visit.ask(paper), light);
    visit.browser.click("#theme");
    assert_eq!(visit.ask(paper), dark);
    visit.browser.click("#theme");
    // Three languages of the interface.
    for (code, copy, german) in [
        ("de", "Kopieren", "Deutsch (erkannt)"),
        ("zh", "复制", "德语（检测到）"),
        ("en", "Copy", "German (detected)"),
    ] {
        visit.ask(&format!("document.getElementById('interface').value = '{code}', document.getElementById('interface').dispatchEvent(new Event('change'))"));
        assert_eq!(visit.ask("document.documentElement.lang"), code);
        assert_eq!(visit.browser.text("#copy-text"), copy);
        assert_eq!(
            visit.ask("document.getElementById('source').selectedOptions[0].text"),
            german
        );
        assert_eq!(visit.output(), english);
        keep(&mut visit.browser, &format!("page-{code}"));
    }
    // The narrowest phone: nothing is wider than it.
    for width in [320, 390, 760] {
        visit.browser.resize(width, 700);
        visit.browser.wait(&format!(
            "innerWidth === {width} && document.documentElement.scrollWidth <= innerWidth"
        ));
        visit.browser.click(".w[data-word='0-3']");
        visit
            .browser
            .wait("document.querySelectorAll('#choices li').length > 1");
        let inside = "(() => { const box = document.getElementById('menu').getBoundingClientRect(); return box.left >= 0 && box.right <= innerWidth; })()";
        assert_eq!(visit.ask(inside), true, "{width}");
        keep(&mut visit.browser, &format!("page-{width}"));
        visit.browser.press("Escape");
    }
    assert_accessible(&mut visit.browser, "phone");
    visit.no_errors();
}

/// Where the Tab key stops, from the text on.
fn visit_stops(visit: &mut Visit) -> Vec<String> {
    let mut stops = Vec::new();
    for _ in 0..20 {
        visit.browser.press("Tab");
        let stop = visit.ask("document.activeElement.dataset.word ? 'word ' + document.activeElement.dataset.word : document.activeElement.id || document.activeElement.tagName");
        let stop = stop.as_str().expect("a name").to_owned();
        if stop == "BODY" || stops.contains(&stop) {
            break;
        }
        stops.push(stop);
    }
    stops
}

#[test]
fn errors_are_told_where_one_looks_and_a_busy_server_is_asked_again() {
    let Some(mut visit) = visit("errors") else {
        return;
    };
    visit.ask("window.real = window.fetch, window.fetch = () => Promise.reject(new TypeError('no network')), 0");
    visit.ask("input.focus()");
    visit.browser.write("Guten Morgen!");
    visit
        .browser
        .wait("document.querySelector('#alert #retry')");
    assert!(visit.browser.text("#alert").contains("cannot be reached"));
    assert_accessible(&mut visit.browser, "error");
    visit.ask("window.fetch = window.real, 0");
    visit.browser.click("#retry");
    visit.settled();
    assert_eq!(visit.browser.text("#alert"), "");
    // A server that says when to come back is asked then.
    visit.ask("window.answers = 0, window.fetch = (path, options) => window.answers++ ? window.real(path, options)
        : Promise.resolve(new Response('{\"error\": \"Slowdown\"}', { status: 429, headers: { 'Retry-After': '3' } })), 0");
    visit.browser.write(" Wie geht es dir?");
    visit
        .browser
        .wait("document.getElementById('alert').textContent.includes('busy')");
    visit.settled();
    visit
        .browser
        .wait("document.getElementById('alert').textContent === ''");
    // Too much is said before it is sent.
    visit.ask("window.fetch = () => { throw new Error('it was sent'); }, state.limit = 10, 0");
    visit.browser.write(" Noch mehr.");
    visit
        .browser
        .wait("document.getElementById('alert').textContent.includes('10')");
    visit.no_errors();
}

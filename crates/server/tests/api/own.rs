//! Our own API: sentences and their parts, tokens and their places, events, alternatives, attention.

use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};

use super::client::{connect, get, post_json, request};
use super::server::TestServer;

const TEXT: &str = "a b! C d! e?\n\n f g 42! \r\nh";

fn ask(server: &TestServer, body: &Value) -> Value {
    let answer = post_json(server.address, "/v1/translate", body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn concatenated(sentences: &Value, field: &str) -> String {
    let text = |sentence: &Value| {
        let part = |name: &str| sentence[name].as_str().expect("a text").to_owned();
        part(field) + &part("gap")
    };
    sentences
        .as_array()
        .expect("sentences")
        .iter()
        .map(text)
        .collect()
}

#[test]
fn sentences_make_up_the_text_and_its_translation() {
    let server = TestServer::start();
    let answer = ask(
        &server,
        &json!({"text": TEXT, "source": "de", "target": "en", "alternatives": 2}),
    );
    assert_eq!(
        (&answer["source"], &answer["target"]),
        (&json!("de"), &json!("en"))
    );
    assert_eq!(answer["model"], "a");
    assert!(answer.get("detected").is_none());
    let translation = &answer["translations"][0];
    let sentences = &translation["sentences"];
    assert!(sentences.as_array().map(Vec::len) > Some(5), "{sentences}");
    assert_eq!(concatenated(sentences, "source"), TEXT);
    assert_eq!(translation["text"], concatenated(sentences, "translation"));
    let lines: Vec<String> = ["a b! C d! e?", "", " f g 42! ", "h"]
        .map(|line| server.expected(line))
        .into();
    let expected = format!("{}\n{}\n{}\r\n{}", lines[0], lines[1], lines[2], lines[3]);
    assert!(translation["text"].as_str().map(str::len) > Some(0));
    let plain = ask(
        &server,
        &json!({"text": TEXT, "source": "de", "target": "en"}),
    );
    assert_eq!(plain["translations"][0]["text"], expected);
    assert_eq!(
        translation["alternatives"].as_array().map(Vec::len),
        Some(2)
    );
    for (number, sentence) in sentences.as_array().into_iter().flatten().enumerate() {
        assert_eq!(
            (&sentence["text"], &sentence["sentence"]),
            (&json!(0), &json!(number))
        );
    }
}

#[test]
fn languages_are_detected_and_the_target_is_the_other_one() {
    let server = TestServer::start();
    let answer = ask(&server, &json!({"text": ["Das ist ein Haus", "a"]}));
    assert_eq!(answer["detected"]["language"], "de");
    assert_eq!(
        (&answer["target"], &answer["model"]),
        (&json!("en"), &json!("a"))
    );
    assert_eq!(answer["translations"].as_array().map(Vec::len), Some(2));
    let answer = ask(&server, &json!({"text": "a", "model": "b"}));
    assert_eq!(
        (&answer["source"], &answer["target"]),
        (&json!("en"), &json!("de"))
    );
}

#[test]
fn tokens_have_their_places_and_the_log_probability_of_the_sentence() {
    let server = TestServer::start();
    let body = json!({"text": "a b c! https://example.org x", "source": "de", "target": "en", "tokens": true, "top": 3,
        "alignments": true});
    let answer = ask(&server, &body);
    let sentences = answer["translations"][0]["sentences"]
        .as_array()
        .expect("some");
    for sentence in sentences {
        let translation = sentence["translation"].as_str().expect("a text");
        let tokens = sentence["tokens"].as_array().expect("tokens");
        let sum: f64 = tokens
            .iter()
            .map(|token| token["logprob"].as_f64().expect("one"))
            .sum();
        let whole = sentence["logprob"].as_f64().expect("one");
        assert!((sum - whole).abs() < 1e-3, "{sum} {whole}");
        let mut last = 0;
        for token in tokens {
            let (start, end) = (
                token["start"].as_u64().unwrap(),
                token["end"].as_u64().unwrap(),
            );
            assert!(start == last && end >= start, "{token}");
            last = end;
            assert_eq!(token["top"].as_array().map(Vec::len), Some(3));
            assert!(token["rank"].as_u64() >= Some(1));
        }
        assert!(last as usize <= translation.chars().count());
        assert!(sentence["alignment"].is_array());
        // A word of this model is a token: its place is its word.
        let words: Vec<char> = translation.chars().collect();
        if !translation.contains("http") {
            let first = &tokens[0];
            let shown: String = words[..first["end"].as_u64().unwrap() as usize]
                .iter()
                .collect();
            assert_eq!(Some(shown.trim()), first["text"].as_str(), "{sentence}");
        }
    }
}

#[test]
fn a_prefix_begins_the_translation_and_alternatives_go_on_from_it() {
    let server = TestServer::start();
    let body = json!({"text": "a b c", "source": "de", "target": "en", "prefix": "x y"});
    let text = ask(&server, &body)["translations"][0]["text"].clone();
    assert!(text.as_str().expect("a text").starts_with("x y"), "{text}");
    let body = json!({"text": "a b c", "source": "de", "target": "en", "prefix": "x", "top": 5});
    let answer = post_json(server.address, "/v1/alternatives", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = answer.json();
    let list = answer["alternatives"].as_array().expect("a list");
    assert!(!list.is_empty() && list.len() <= 5);
    let mut before = 1.0;
    for one in list {
        let (word, text) = (one["word"].as_str().unwrap(), one["text"].as_str().unwrap());
        assert!(text.starts_with(&format!("x {word}")), "{one}");
        let probability = one["probability"].as_f64().unwrap();
        assert!(probability <= before, "best first: {answer}");
        before = probability;
    }
    for (body, part) in [
        (json!({"text": ["a", "b"], "source": "de"}), "one sentence"),
        (json!({"text": "42", "source": "de"}), "one sentence"),
        (
            json!({"text": "a", "source": "de", "target": "de"}),
            "same language",
        ),
        (
            json!({"text": "a", "source": "de", "top": 99}),
            "from 1 to 20",
        ),
    ] {
        let answer = post_json(server.address, "/v1/alternatives", &body);
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains(part), "{}", answer.text());
    }
}

#[test]
fn events_come_sentence_by_sentence_and_end_with_the_whole() {
    let server = TestServer::start();
    let body = json!({"text": TEXT, "source": "de", "target": "en", "stream": true}).to_string();
    let mut stream = connect(server.address);
    let head = format!(
        "POST /v1/translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let lines: Vec<String> = BufReader::new(stream)
        .lines()
        .map_while(Result::ok)
        .collect();
    assert!(
        lines
            .iter()
            .any(|line| line == "content-type: text/event-stream"),
        "{lines:?}"
    );
    assert!(lines.contains(&"x-accel-buffering: no".to_owned()));
    let names: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    let data = lines.iter().filter_map(|line| line.strip_prefix("data: "));
    let data: Vec<Value> = data
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(
        (names.first(), names.last()),
        (Some(&"start"), Some(&"done"))
    );
    let whole = ask(
        &server,
        &json!({"text": TEXT, "source": "de", "target": "en"}),
    );
    let whole = &whole["translations"][0];
    assert_eq!(
        data.last().expect("done")["translations"][0]["text"],
        whole["text"]
    );
    let mut sentences: Vec<Value> = data[1..data.len() - 1].to_vec();
    sentences.sort_by_key(|sentence| sentence["sentence"].as_u64());
    assert_eq!(json!(sentences), whole["sentences"]);
}

#[test]
fn attention_is_that_of_the_pictures_and_a_page_that_can_do_nothing_else() {
    let server = TestServer::start();
    let body = json!({"text": "a b c", "source": "de", "target": "en", "translation": "x y"});
    let answer = post_json(server.address, "/v1/attention", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = answer.json();
    assert_eq!(answer["written"]["text"], "x y");
    assert_eq!(answer["attention"].as_array().map(Vec::len), Some(3));
    let page = get(
        server.address,
        "/v1/attention?text=a+%3Cscript%3E&model=a&format=html",
    );
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(
        policy.contains("default-src 'none'") && policy.contains("sandbox"),
        "{policy}"
    );
    assert_eq!(page.text().matches("<script").count(), 2);
    let long = json!({"text": "a ".repeat(300), "source": "de", "target": "en"});
    let refused = post_json(server.address, "/v1/attention", &long);
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("at most 255"), "{}", refused.text());
}

#[test]
fn models_are_listed_and_wrong_questions_are_answered_with_what_is_wrong() {
    let server = TestServer::start();
    let models = get(server.address, "/v1/models").json();
    let expected = json!({"name": "a", "source": "de", "target": "en", "source_name": "German", "target_name": "English"});
    assert_eq!(models["models"][0], expected);
    for (body, part) in [
        (json!({}), "text is missing"),
        (json!({"text": []}), "text is missing"),
        (json!({"text": [1]}), "text is missing"),
        (json!({"text": "a", "source": "xx"}), "xx is not supported"),
        (
            json!({"text": "a", "model": "nothing"}),
            "no model named nothing",
        ),
        (json!({"text": "a", "model": "a", "target": "de"}), "is en"),
        (json!({"text": "a", "source": ["de"]}), "not a text"),
        (
            json!({"text": "a", "source": "de", "alternatives": 1000}),
            "from 0 to",
        ),
        (
            json!({"text": "a", "source": "de", "tokens": "maybe"}),
            "neither true nor false",
        ),
    ] {
        let answer = post_json(server.address, "/v1/translate", &body);
        assert_eq!(answer.status, 400, "{body}");
        let message = answer.json()["error"].as_str().map(str::to_owned);
        assert!(
            message
                .as_deref()
                .is_some_and(|message| message.contains(part)),
            "{message:?}"
        );
    }
    assert_eq!(
        request(server.address, "GET", "/v1/translate", "", b"").status,
        405
    );
}

#[test]
fn built_in_models_say_what_translate_says() {
    let options = super::server::options();
    let loader = Box::new(|| {
        let served = |model: &attentive_models::BuiltIn| {
            let translator = model.translator(model.options()?)?;
            let (from, to) = (model.from.code(), model.to.code());
            Ok(attentive_server::Served::new(
                model.name.to_owned(),
                from,
                to,
                translator,
            ))
        };
        attentive_models::ALL.iter().map(served).collect()
    });
    let folder = tempfile::tempdir().unwrap();
    attentive_model::fake_dir::write(folder.path()).unwrap();
    let server = TestServer::of(options, loader, folder);
    let model = attentive_models::named("de-en").expect("built in");
    let translator = model
        .translator(model.options().expect("sound"))
        .expect("sound");
    let lines = [
        "Guten Morgen! Wie geht es dir?",
        "GROSSE STRASSE 42, siehe https://example.org :-)",
        "",
        "Der Hund läuft. Die Katze schläft am 3. Mai.",
    ];
    let expected: Vec<String> = translator
        .translate(&lines)
        .into_iter()
        .map(|t| t.text)
        .collect();
    let body = json!({"q": lines.join("\n"), "source": "auto", "target": "en"});
    let answer = post_json(server.address, "/translate", &body).json();
    assert_eq!(answer["translatedText"], expected.join("\n"));
    let tokens = ask(&server, &json!({"text": lines[3], "tokens": true}));
    let sentence = &tokens["translations"][0]["sentences"][0];
    let translation = sentence["translation"].as_str().expect("a text");
    let ends = sentence["tokens"]
        .as_array()
        .expect("tokens")
        .last()
        .expect("</s>");
    assert_eq!(ends["text"], "</s>");
    let ends = ends["end"].clone();
    assert_eq!(ends, json!(translation.chars().count()), "{sentence}");
}

#[test]
fn terms_of_a_request_are_in_its_translation_alone() {
    let server = TestServer::start();
    let ask = |glossary: Value| {
        let body = json!({"text": "a b c", "model": "a", "glossary": glossary});
        post_json(server.address, "/v1/translate", &body)
    };
    let plain = ask(Value::Null).json()["translations"][0]["text"].clone();
    let bound = ask(json!({"a": "h h h", "c": "unheard of"})).json();
    let text = bound["translations"][0]["text"].to_string();
    assert!(text.contains("h h h"), "{text}");
    let missing = &bound["translations"][0]["sentences"][0]["missing_terms"];
    assert_eq!(missing, &json!(["unheard of"]), "{bound}");
    assert_eq!(ask(Value::Null).json()["translations"][0]["text"], plain);
    for wrong in [json!("a"), json!(["a"]), json!({"a": 1})] {
        assert_eq!(ask(wrong).status, 400);
    }
}

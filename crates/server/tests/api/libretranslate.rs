//! LibreTranslate's API: every path, encoding, field and error text.

use serde_json::{Value, json};

use super::client::{get, post_form, post_json, post_parts, request};
use super::server::{TestServer, options};

#[test]
fn documents_of_every_format_are_translated() {
    let server = TestServer::start();
    let formats = get(server.address, "/frontend/settings").json();
    let formats = formats["supportedFilesFormat"].to_string();
    for ending in [".docx", ".odt", ".html", ".po", ".srt", ".xlf", ".md"] {
        assert!(formats.contains(ending), "{formats}");
    }
    let (one, two) = (server.expected("a b"), server.expected("c"));
    for (name, text, expected) in [
        (
            "t.json",
            &b"{\"k\": \"a b\", \"n\": 1}"[..],
            format!("{{\"k\": \"{one}\", \"n\": 1}}"),
        ),
        (
            "t.html",
            b"<p>a b</p>\n<p>c</p>",
            format!("<p>{one}</p>\n<p>{two}</p>"),
        ),
        ("t.md", b"# a b\n\n- c\n", format!("# {one}\n\n- {two}\n")),
    ] {
        let parts = [
            ("file", Some(name), text),
            ("source", None, b"de"),
            ("target", None, b"en"),
        ];
        let answer = post_parts(server.address, "/translate_file", &parts);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let answer = answer.json();
        let url = answer["translatedFileUrl"].as_str().expect("an address");
        let path = url
            .split_once(&server.address.to_string())
            .expect("this server")
            .1;
        let file = get(server.address, path);
        assert_eq!(file.text(), expected, "{name}");
        let ending = name.trim_start_matches('t');
        let disposition = format!("attachment; filename=\"t_en{ending}\"");
        assert_eq!(file.header("content-disposition"), Some(&*disposition));
    }
}

#[test]
fn every_encoding_of_a_request_gives_the_same_translation() {
    let server = TestServer::start();
    let (address, expected) = (server.address, server.expected("a b c"));
    assert!(!expected.is_empty());
    let body = json!({"q": "a b c", "source": "de", "target": "en"});
    let parts = [
        ("q", None, &b"a b c"[..]),
        ("source", None, b"de"),
        ("target", None, b"en"),
    ];
    for answer in [
        post_json(address, "/translate", &body),
        post_form(address, "/translate", "q=a+b%20c&source=de&target=en"),
        post_parts(address, "/translate", &parts),
        // deep-translator: everything in the query, and no body.
        request(
            address,
            "POST",
            "/translate?q=a%20b+c&source=de&target=en",
            "",
            b"",
        ),
        post_form(address, "/translate?source=de&target=en", "q=a b c"),
    ] {
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json(), json!({"translatedText": expected}));
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
}

#[test]
fn lines_are_translated_one_by_one_and_stay_lines() {
    let server = TestServer::start();
    let text = "a b! c d!\r\n\n  \ne f";
    let body = json!({"q": text, "source": "de", "target": "en"});
    let answer = post_json(server.address, "/translate", &body).json();
    let expected = [
        server.expected("a b! c d!") + "\r\n",
        "\n".to_owned(),
        server.expected("  ") + "\n",
        server.expected("e f"),
    ];
    assert_eq!(answer["translatedText"], expected.concat());
}

#[test]
fn for_a_list_every_field_is_a_list() {
    let server = TestServer::start();
    let body = json!({"q": ["Das ist ein Haus", "", "c"], "source": "auto", "target": "en", "alternatives": 2.0, "api_key": ""});
    let answer = post_json(server.address, "/translate", &body).json();
    for field in ["translatedText", "detectedLanguage", "alternatives"] {
        assert_eq!(
            answer[field].as_array().map(Vec::len),
            Some(3),
            "{field}: {answer}"
        );
    }
    assert_eq!(answer["translatedText"][1], "");
    assert_eq!(answer["alternatives"][0].as_array().map(Vec::len), Some(2));
    assert!(answer["detectedLanguage"][0]["confidence"].is_number());

    let one = json!({"q": "Das ist ein Haus", "source": "auto", "target": "en"});
    let answer = post_json(server.address, "/translate", &one).json();
    assert_eq!(answer["detectedLanguage"]["language"], "de");
    assert!(answer["detectedLanguage"]["confidence"].as_f64() > Some(90.0));
    assert!(answer.get("alternatives").is_none());
    let plain = json!({"q": "a", "source": "de", "target": "en"});
    let answer = post_json(server.address, "/translate", &plain).json();
    assert!(answer.get("detectedLanguage").is_none());
}

#[test]
fn errors_are_said_in_the_words_of_libretranslate() {
    let mut options = options();
    options.limits.characters = 10;
    options.limits.sentences = 3;
    let server = TestServer::with(options);
    let missing = |field| format!("Invalid request: missing {field} parameter");
    let rows: Vec<(Value, String)> = vec![
        (json!({"source": "de", "target": "en"}), missing("q")),
        (
            json!({"q": "", "source": "de", "target": "en"}),
            missing("q"),
        ),
        (
            json!({"q": [], "source": "de", "target": "en"}),
            missing("q"),
        ),
        (json!({"q": "a", "target": "en"}), missing("source")),
        (json!({"q": "a", "source": "de"}), missing("target")),
        (
            json!({"q": "a", "source": "zz", "target": "en"}),
            "zz is not supported".into(),
        ),
        (
            json!({"q": "a", "source": "de", "target": "zz"}),
            "zz is not supported".into(),
        ),
        (
            json!({"q": "a", "source": "de", "target": "en", "format": "xyz"}),
            "xyz format is not supported".into(),
        ),
        (
            json!({"q": "12345678901", "source": "de", "target": "en"}),
            "Invalid request: request (11) exceeds text limit (10)".into(),
        ),
        (
            json!({"q": "a", "source": "de", "target": "en", "alternatives": "x"}),
            "Invalid request: alternatives parameter is not a number".into(),
        ),
        (
            json!({"q": {"a": 1}, "source": "de", "target": "en"}),
            "Invalid request: q parameter is not a text".into(),
        ),
    ];
    for (body, message) in rows {
        let answer = post_json(server.address, "/translate", &body);
        assert_eq!(answer.status, 400, "{body}");
        assert_eq!(answer.json(), json!({"error": message}), "{body}");
    }
    let message = "Invalid request: more than 3 sentences; send less text at a time";
    let body = json!({"q": ["a! b!", "c\nd"], "source": "de", "target": "en"});
    let answer = post_json(server.address, "/translate", &body);
    assert_eq!(
        (answer.status, answer.json()),
        (400, json!({"error": message}))
    );
    // Characters, not bytes.
    let body = json!({"q": "ääääääääää", "source": "de", "target": "en"});
    assert_eq!(post_json(server.address, "/translate", &body).status, 200);
    let answer = post_json(server.address, "/suggest", &json!({"q": "a"}));
    assert_eq!(
        (answer.status, answer.json()["error"].is_string()),
        (403, true)
    );
}

#[test]
fn a_pair_without_a_model_is_named_and_a_language_into_itself_is_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    attentive_model::fake_dir::write(folder.path()).unwrap();
    let path = folder.path().to_owned();
    let loader = Box::new(move || {
        let served =
            attentive_server::Served::new("a".into(), "en", "de", super::server::fake(&path));
        Ok(vec![served])
    });
    let server = TestServer::of(options(), loader, folder);
    let body = json!({"q": "a", "source": "de", "target": "en"});
    let answer = post_json(server.address, "/translate", &body);
    assert_eq!(answer.status, 400);
    let message = "English (en) is not available as a target language from German (de)";
    assert_eq!(answer.json()["error"], message);
    let body = json!({"q": "a b", "source": "de", "target": "de"});
    let answer = post_json(server.address, "/translate", &body);
    assert_eq!(answer.json()["translatedText"], "a b");
}

#[test]
fn every_path_takes_its_methods_and_every_answer_can_be_read_from_another_origin() {
    let server = TestServer::start();
    for (path, status) in [
        ("/languages", 200),
        ("/health", 200),
        ("/ready", 200),
        ("/frontend/settings", 200),
        ("/spec", 200),
        ("/docs", 200),
        ("/docs.css", 200),
        ("/", 200),
        ("/metrics", 200),
        ("/v1/models", 200),
        ("/v1/openapi.json", 200),
        ("/translate", 405),
        ("/detect", 405),
        ("/translate_file", 405),
        ("/suggest", 405),
        ("/nothing", 404),
        ("/download_file/x", 404),
    ] {
        // The models may still be loading.
        let _ = get(server.address, "/languages");
        let answer = get(server.address, path);
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        assert_eq!(
            answer.header("access-control-allow-origin"),
            Some("*"),
            "{path}"
        );
        assert_eq!(
            answer.header("access-control-allow-methods"),
            Some("GET, POST")
        );
        let headers = answer.header("access-control-allow-headers");
        assert_eq!(headers, Some("Authorization, Content-Type"));
        assert_eq!(answer.header("access-control-allow-credentials"), None);
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        if status >= 400 {
            assert!(answer.json()["error"].is_string(), "{path}");
        }
    }
    let preflight = request(
        server.address,
        "OPTIONS",
        "/translate",
        "origin: http://a\r\n",
        b"",
    );
    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.header("access-control-allow-origin"), Some("*"));
}

#[test]
fn languages_settings_health_and_detection_have_their_forms() {
    let server = TestServer::start();
    let expected = json!([
        {"code": "de", "name": "German", "targets": ["de", "en"]},
        {"code": "en", "name": "English", "targets": ["en", "de"]},
    ]);
    assert_eq!(get(server.address, "/languages").json(), expected);
    assert_eq!(post_form(server.address, "/languages", "").json(), expected);
    // libretranslatepy sends a body with GET.
    let with_body = request(server.address, "GET", "/languages", "", b"x=1");
    assert_eq!(with_body.json(), expected);
    assert_eq!(
        get(server.address, "/health").json(),
        json!({"status": "ok"})
    );
    let settings = get(server.address, "/frontend/settings").json();
    for field in [
        "charLimit",
        "frontendTimeout",
        "apiKeys",
        "keyRequired",
        "suggestions",
        "filesTranslation",
        "supportedFilesFormat",
    ] {
        assert!(settings.get(field).is_some(), "{field}");
    }
    assert_eq!(settings["language"]["target"]["code"], "en");
    let found = post_form(server.address, "/detect", "q=Das+ist+ein+Haus").json();
    assert_eq!(found[0]["language"], "de");
    assert!(found[0]["confidence"].as_f64() > Some(90.0), "{found}");
    let unsure = post_form(server.address, "/detect", "q=Tom").json();
    assert_eq!(unsure.as_array().map(Vec::len), Some(2), "{unsure}");
    let missing = post_form(server.address, "/detect", "");
    assert_eq!(
        missing.json()["error"],
        "Invalid request: missing q parameter"
    );
}

#[test]
fn with_keys_only_those_translate_who_have_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    std::fs::write(&path, "secret\n").unwrap();
    let server = TestServer::with(attentive_server::Options {
        key_file: Some(path),
        ..options()
    });
    let ask = |key: Value| {
        let body = json!({"q": "a", "source": "de", "target": "en", "api_key": key});
        post_json(server.address, "/translate", &body)
    };
    for wrong in [json!(""), json!(null), json!("secre"), json!("secret2")] {
        let answer = ask(wrong);
        assert_eq!(
            (answer.status, answer.json()),
            (403, json!({"error": "Invalid API key"}))
        );
    }
    assert_eq!(ask(json!("secret")).status, 200);
    let query = request(
        server.address,
        "POST",
        "/translate?q=a&source=de&target=en&api_key=secret",
        "",
        b"",
    );
    assert_eq!(query.status, 200);
    assert_eq!(post_form(server.address, "/detect", "q=a").status, 403);
    assert_eq!(get(server.address, "/languages").status, 200);
    assert_eq!(
        get(server.address, "/frontend/settings").json()["keyRequired"],
        true
    );
    // Our own and DeepL's take it in a header.
    let body = br#"{"text": "a", "source": "de", "target_lang": "en", "source_lang": "de"}"#;
    for (path, scheme) in [
        ("/v1/translate", "Bearer"),
        ("/v2/translate", "DeepL-Auth-Key"),
    ] {
        for (key, status) in [("secret", 200), ("wrong", 403)] {
            let headers =
                format!("content-type: application/json\r\nauthorization: {scheme} {key}\r\n");
            let answer = request(server.address, "POST", path, &headers, body);
            assert_eq!(answer.status, status, "{path}: {}", answer.text());
        }
    }
    let metrics = get(server.address, "/metrics").text();
    assert!(
        !metrics.contains("secret") && !metrics.contains("127.0.0.1"),
        "{metrics}"
    );
}

#[test]
fn a_file_is_translated_and_fetched_as_an_attachment() {
    let server = TestServer::start();
    let parts = |name, text: &'static [u8]| {
        post_parts(
            server.address,
            "/translate_file",
            &[
                ("file", Some(name), text),
                ("source", None, b"de"),
                ("target", None, b"en"),
            ],
        )
    };
    let answer = parts("letter.txt", b"a b\n\nc\n").json();
    let url = answer["translatedFileUrl"].as_str().expect("an address");
    let path = url
        .split_once(&server.address.to_string())
        .expect("this server")
        .1;
    let file = get(server.address, path);
    assert_eq!(
        file.text(),
        format!("{}\n\n{}\n", server.expected("a b"), server.expected("c"))
    );
    let disposition = file.header("content-disposition");
    assert_eq!(disposition, Some("attachment; filename=\"letter_en.txt\""));
    for (name, text) in [
        ("page.exe", &b"<p>"[..]),
        ("a.txt", b"\xff\xfe"),
        ("a.txt", b""),
        ("a.docx", b"a b"),
        ("a.json", b"{\"a\": "),
    ] {
        let refused = parts(name, text);
        assert_eq!(refused.status, 400, "{name}: {}", refused.text());
    }
}

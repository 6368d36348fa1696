//! Calls that end early, forked processes, and files that are whole or absent.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use attentive_model::fake_dir;
use attentive_runtime::engine::Stop;
use attentive_runtime::translator::{FileOptions, Lines};
use attentive_runtime::{RuntimeError, Translator, TranslatorOptions};
use attentive_text::markup::{Page, Syntax};

fn translator(threads: usize) -> (tempfile::TempDir, Translator) {
    let folder = tempfile::tempdir().expect("a folder");
    fake_dir::write(folder.path()).expect("written");
    let options = TranslatorOptions {
        threads: Some(threads),
        ..TranslatorOptions::default()
    };
    let translator = Translator::open(folder.path()).expect("a model");
    let translator = translator.with_options(options).expect("sound options");
    (folder, translator)
}

fn lines(count: usize) -> Vec<String> {
    let line = |number: usize| format!("a b {} c", char::from(b'a' + (number % 26) as u8));
    (0..count).map(line).collect()
}

const USUAL: FileOptions = FileOptions {
    format: None,
    wrapping: None,
};

#[test]
fn a_call_that_is_asked_to_stop_leaves_the_rest() {
    for threads in [1, 2] {
        let (_folder, translator) = translator(threads);
        let lines = lines(400);
        let all = translator.translate(&lines);
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        // Tokenization asks once for each line; then searches have begun.
        let stop = Stop::when(move || count.fetch_add(1, Ordering::Relaxed) > 1200);
        let stopped = translator.stopped_by(stop).translate(&lines);
        let answered = stopped.iter().filter(|one| !one.text.is_empty()).count();
        assert!(answered < lines.len(), "{answered} on {threads} threads");
        assert!(asked.load(Ordering::Relaxed) > 1200);
        let at_once = translator.stopped_by(Stop::when(|| true)).translate(&lines);
        assert!(at_once.iter().all(|one| one.text.is_empty()));
        assert_eq!(translator.translate(&lines), all, "others go on");
    }
}

#[test]
fn a_stop_that_nobody_asks_for_changes_nothing() {
    let (_folder, translator) = translator(2);
    let lines = lines(100);
    let watched = translator.stopped_by(Stop::when(|| false));
    assert_eq!(watched.translate(&lines), translator.translate(&lines));
}

#[test]
fn a_stopped_file_is_absent_and_a_translated_one_has_all_lines() {
    let (folder, translator) = translator(2);
    let (input, output) = (folder.path().join("a.de"), folder.path().join("a.en"));
    let lines = lines(300);
    fs::write(&input, lines.join("\n")).expect("written");
    let stopped = translator.stopped_by(Stop::when(|| true));
    let error = stopped.translate_file(&input, &output, USUAL, |_, _| {});
    assert!(matches!(error, Err(RuntimeError::Stopped)), "{error:?}");
    assert!(!output.exists());

    let mut told = Vec::new();
    let report =
        translator.translate_file(&input, &output, USUAL, |done, all| told.push((done, all)));
    assert_eq!(report.expect("translated").texts, 300);
    let written = fs::read_to_string(&output).expect("written");
    let texts = translator.translate(&lines).into_iter().map(|one| one.text);
    assert!(written.lines().eq(texts));
    assert_eq!(
        told.last().map(|&(done, all)| Some(done) == all),
        Some(true)
    );

    let page = folder.path().join("page.html");
    fs::write(&page, "<p>a <b>b</b> c</p>").expect("written");
    let report = translator.translate_file(&page, &output, USUAL, |_, _| {});
    assert_eq!(report.expect("translated").format.name(), "html");
    let written = fs::read_to_string(&output).expect("written");
    assert!(
        written.starts_with("<p>") && written.contains("<b>"),
        "{written}"
    );
    let missing =
        translator.translate_file(&folder.path().join("x.docx"), &output, USUAL, |_, _| {});
    assert!(missing.unwrap_err().to_string().contains("x.docx"));
}

#[test]
fn a_page_is_translated_with_its_alternatives() {
    let (_folder, translator) = translator(1);
    let mut options = translator.options().clone();
    options.search.ask_for(None, 3);
    options.lines = Lines::RawText;
    let translator = translator.with_options(options).expect("sound options");
    let page = Page::read("<p>a b</p><p>c <i>d</i></p>", &Syntax::Html);
    let empty = Page::read("<hr>", &Syntax::Html);
    let found = translator.translate_pages(&[page, empty]);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].alternatives.len(), 2);
    for text in found[0]
        .alternatives
        .iter()
        .map(|one| &one.text)
        .chain([&found[0].text])
    {
        assert!(text.starts_with("<p>") && text.contains("<i>"), "{text}");
    }
    assert!(found[0].score < 0.0 && found[1].text == "<hr>");
}

#[test]
#[cfg(target_os = "linux")]
fn a_forked_process_gets_threads_of_its_own() {
    let (_folder, translator) = translator(2);
    let lines = lines(100);
    let expected = translator.translate(&lines);
    // SAFETY: the child uses a translator, which is what is tested, and ends without unwinding.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(20); // Ends a child that waits for threads that are not there.
            let own = translator.after_fork();
            let right = own.translate(&lines) == expected && own.engine().threads() == 2;
            let threads = fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
            libc::_exit(if right && threads == 3 { 0 } else { 1 });
        }
        let mut status = 0;
        libc::waitpid(child, &mut status, 0);
        assert_eq!(status, 0);
    }
}

//! attentive for C, and for languages that call C: a few functions over opaque handles.
//!
//! `include/attentive.h` is made of this file (cbindgen), `examples/translate.c` uses it. No panic crosses the border, and what
//! comes over it is checked: a missing pointer or text that is no UTF-8 is an error with a text.
//!
//! - `handles`: what is behind the opaque types. `failure`: the text of the last error of a thread.

mod failure;
mod handles;

use std::ffi::{CStr, c_char};
use std::path::Path;
use std::ptr;

use attentive_metrics::bleu::corpus_bleu;
use attentive_runtime::translator::{FileOptions, Translator};

use failure::{caught, last_error};
pub use handles::{AttentiveTranslations, AttentiveTranslator};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How to translate. Fill it with zeros for what is usual for the model, then set what shall be otherwise.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct AttentiveOptions {
    /// Beam size; 1 is greedy search, 0 what is usual for the model.
    pub beam: usize,
    /// How many translations of each text; 0 is 1.
    pub n_best: usize,
}

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn attentive_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version has no NUL"),
        };
    VERSION.as_ptr()
}

/// Why the last call of this thread failed; an empty text if none has. It is valid until the next call that fails.
#[unsafe(no_mangle)]
pub extern "C" fn attentive_error() -> *const c_char {
    last_error()
}

/// Opens a model: a built-in one ("de-en", "en-de"), a model directory, or what another program wrote, which is
/// imported into the cache the first time. `threads` translate; 0 is one for each core. NULL if it cannot be opened.
///
/// # Safety
/// `model` is a text, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn attentive_open(
    model: *const c_char,
    threads: usize,
) -> *mut AttentiveTranslator {
    caught(ptr::null_mut(), || {
        // SAFETY: as the caller promises.
        let model = unsafe { text(model, "model") }?;
        let threads = (threads > 0).then_some(threads);
        let translator = AttentiveTranslator::open(Path::new(model), threads)?;
        Ok(Box::into_raw(Box::new(translator)))
    })
}

/// Closes a model. NULL is allowed.
///
/// # Safety
/// `translator` is NULL, or from attentive_open and not closed yet; nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn attentive_close(translator: *mut AttentiveTranslator) {
    if !translator.is_null() {
        // SAFETY: as the caller promises.
        drop(unsafe { Box::from_raw(translator) });
    }
}

/// Translates `count` texts. `options` may be NULL. Free the answer with attentive_free. NULL if it fails.
///
/// # Safety
/// `translator` is open; `texts` has `count` texts; `options` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn attentive_translate(
    translator: *const AttentiveTranslator,
    texts: *const *const c_char,
    count: usize,
    options: *const AttentiveOptions,
) -> *mut AttentiveTranslations {
    caught(ptr::null_mut(), || {
        // SAFETY: as the caller promises.
        let (translator, texts, options) = unsafe {
            let options = options.as_ref().copied().unwrap_or_default();
            (
                opened(translator)?,
                self::texts(texts, count, "texts")?,
                options,
            )
        };
        let beam = (options.beam > 0).then_some(options.beam);
        let translator = translator.with(beam, options.n_best.max(1))?;
        let found = AttentiveTranslations::new(translator.translate(&texts));
        Ok(Box::into_raw(Box::new(found)))
    })
}

/// How many translations there are: as many as there were texts.
///
/// # Safety
/// `translations` is from attentive_translate and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn attentive_count(translations: *const AttentiveTranslations) -> usize {
    // SAFETY: as the caller promises.
    unsafe { translations.as_ref() }.map_or(0, AttentiveTranslations::count)
}

/// How many translations the text with this number has: at least 1, at most n_best; 0 if there is no such text.
///
/// # Safety
/// As for attentive_count.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn attentive_hypotheses(
    translations: *const AttentiveTranslations,
    number: usize,
) -> usize {
    // SAFETY: as the caller promises.
    unsafe { translations.as_ref() }.map_or(0, |found| found.hypotheses(number).len())
}

/// A translation of the text with this number: rank 0 is the best. It is valid until attentive_free. NULL if there is none.
///
/// # Safety
/// As for attentive_count.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn attentive_text(
    translations: *const AttentiveTranslations,
    number: usize,
    rank: usize,
) -> *const c_char {
    // SAFETY: as the caller promises.
    let found = unsafe { translations.as_ref() };
    let one = found.and_then(|found| found.hypotheses(number).get(rank));
    one.map_or(ptr::null(), |(text, _)| text.as_ptr())
}

/// The score of a translation: a log-probability normalized by length, nearer to 0 is better. NaN if there is none.
///
/// # Safety
/// As for attentive_count.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn attentive_score(
    translations: *const AttentiveTranslations,
    number: usize,
    rank: usize,
) -> f64 {
    // SAFETY: as the caller promises.
    let found = unsafe { translations.as_ref() };
    let one = found.and_then(|found| found.hypotheses(number).get(rank));
    one.map_or(f64::NAN, |(_, score)| *score)
}

/// Frees translations. NULL is allowed.
///
/// # Safety
/// `translations` is NULL, or from attentive_translate and not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn attentive_free(translations: *mut AttentiveTranslations) {
    if !translations.is_null() {
        // SAFETY: as the caller promises.
        drop(unsafe { Box::from_raw(translations) });
    }
}

/// Translates a file: a document (Markdown, HTML, DOCX, ...) with its layout, or lines of plain text. The output appears when
/// it is complete, or not at all. Returns the number of texts in it, -1 if it fails.
///
/// # Safety
/// `translator` is open; `input` and `output` are texts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn attentive_translate_file(
    translator: *const AttentiveTranslator,
    input: *const c_char,
    output: *const c_char,
) -> i64 {
    caught(-1, || {
        // SAFETY: as the caller promises.
        let (translator, input, output) = unsafe {
            (
                opened(translator)?,
                text(input, "input")?,
                text(output, "output")?,
            )
        };
        let usual = FileOptions {
            format: None,
            wrapping: None,
        };
        let (input, output) = (Path::new(input), Path::new(output));
        let report =
            Translator::translate_file(translator.usual(), input, output, usual, |_, _| {})
                .map_err(|error| error.to_string())?;
        Ok(report.texts as i64)
    })
}

/// Corpus BLEU of `count` hypotheses against one reference each, as sacreBLEU computes it by default. NaN if it fails.
///
/// # Safety
/// `hypotheses` and `references` have `count` texts each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn attentive_bleu(
    hypotheses: *const *const c_char,
    references: *const *const c_char,
    count: usize,
) -> f64 {
    caught(f64::NAN, || {
        // SAFETY: as the caller promises.
        let (hypotheses, references) = unsafe {
            (
                texts(hypotheses, count, "hypotheses")?,
                texts(references, count, "references")?,
            )
        };
        let owned = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect::<Vec<_>>();
        Ok(corpus_bleu(&owned(hypotheses), &owned(references)).score)
    })
}

unsafe fn opened<'a>(
    translator: *const AttentiveTranslator,
) -> Result<&'a AttentiveTranslator, String> {
    // SAFETY: as the caller promises.
    let opened = unsafe { translator.as_ref() };
    opened.ok_or_else(|| "`translator` is NULL; attentive_open() gives one".to_owned())
}

unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str, String> {
    if text.is_null() {
        return Err(format!("`{name}` is NULL; expected a text"));
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|error| format!("`{name}` is not UTF-8: {error}"))
}

unsafe fn texts<'a>(
    texts: *const *const c_char,
    count: usize,
    name: &str,
) -> Result<Vec<&'a str>, String> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if texts.is_null() {
        return Err(format!("`{name}` is NULL; expected {count} texts"));
    }
    // SAFETY: as the caller promises.
    let pointers = unsafe { std::slice::from_raw_parts(texts, count) };
    let named = |(number, &one): (usize, &*const c_char)| {
        // SAFETY: as the caller promises.
        unsafe { text(one, &format!("{name}[{number}]")) }
    };
    pointers.iter().enumerate().map(named).collect()
}

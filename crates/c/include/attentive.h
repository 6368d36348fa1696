/* attentive: translation on CPUs, for C and for languages that call C.
 *
 * Made by cbindgen from crates/c/src/lib.rs; `cargo test -p attentive-c` says if it is not current.
 *
 * Texts are UTF-8 and end in a NUL. Where a function can fail, it returns NULL (or -1, or NaN), and attentive_error() says why.
 * All functions may be called from any thread.
 */

#ifndef ATTENTIVE_H
#define ATTENTIVE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/*
 Translations of several texts.
 */
typedef struct AttentiveTranslations AttentiveTranslations;

/*
 A model that translates.
 */
typedef struct AttentiveTranslator AttentiveTranslator;

/*
 How to translate. Fill it with zeros for what is usual for the model, then set what shall be otherwise.
 */
typedef struct {
  /*
   Beam size; 1 is greedy search, 0 what is usual for the model.
   */
  size_t beam;
  /*
   How many translations of each text; 0 is 1.
   */
  size_t n_best;
} AttentiveOptions;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The version of the library.
 */
const char *attentive_version(void);

/*
 Why the last call of this thread failed; an empty text if none has. It is valid until the next call that fails.
 */
const char *attentive_error(void);

/*
 Opens a model: a built-in one ("de-en", "en-de"), a model directory, or what another program wrote, which is
 imported into the cache the first time. `threads` translate; 0 is one for each core. NULL if it cannot be opened.

 # Safety
 `model` is a text, or NULL.
 */
AttentiveTranslator *attentive_open(const char *model,
                                    size_t threads);

/*
 Closes a model. NULL is allowed.

 # Safety
 `translator` is NULL, or from attentive_open and not closed yet; nobody uses it any more.
 */
void attentive_close(AttentiveTranslator *translator);

/*
 Translates `count` texts. `options` may be NULL. Free the answer with attentive_free. NULL if it fails.

 # Safety
 `translator` is open; `texts` has `count` texts; `options` is NULL or valid.
 */
AttentiveTranslations *attentive_translate(const AttentiveTranslator *translator,
                                           const char *const *texts,
                                           size_t count,
                                           const AttentiveOptions *options);

/*
 How many translations there are: as many as there were texts.

 # Safety
 `translations` is from attentive_translate and not freed.
 */
size_t attentive_count(const AttentiveTranslations *translations);

/*
 How many translations the text with this number has: at least 1, at most n_best; 0 if there is no such text.

 # Safety
 As for attentive_count.
 */
size_t attentive_hypotheses(const AttentiveTranslations *translations, size_t number);

/*
 A translation of the text with this number: rank 0 is the best. It is valid until attentive_free. NULL if there is none.

 # Safety
 As for attentive_count.
 */
const char *attentive_text(const AttentiveTranslations *translations,
                           size_t number,
                           size_t rank);

/*
 The score of a translation: a log-probability normalized by length, nearer to 0 is better. NaN if there is none.

 # Safety
 As for attentive_count.
 */
double attentive_score(const AttentiveTranslations *translations,
                       size_t number,
                       size_t rank);

/*
 Frees translations. NULL is allowed.

 # Safety
 `translations` is NULL, or from attentive_translate and not freed yet.
 */
void attentive_free(AttentiveTranslations *translations);

/*
 Translates a file: a document (Markdown, HTML, DOCX, ...) with its layout, or lines of plain text. The output appears when
 it is complete, or not at all. Returns the number of texts in it, -1 if it fails.

 # Safety
 `translator` is open; `input` and `output` are texts.
 */
int64_t attentive_translate_file(const AttentiveTranslator *translator,
                                 const char *input,
                                 const char *output);

/*
 Corpus BLEU of `count` hypotheses against one reference each, as sacreBLEU computes it by default. NaN if it fails.

 # Safety
 `hypotheses` and `references` have `count` texts each.
 */
double attentive_bleu(const char *const *hypotheses,
                      const char *const *references,
                      size_t count);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ATTENTIVE_H */

/* Translates its arguments from German to English, and says what is wrong if that fails.
 *
 *     cargo build --release -p attentive-c
 *     cc -I crates/c/include crates/c/examples/translate.c -L target/release -lattentive -o translate
 *     LD_LIBRARY_PATH=target/release ./translate de-en "Guten Morgen!"
 */
#include <attentive.h>
#include <stdio.h>

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: translate MODEL TEXT...\n");
        return 2;
    }
    AttentiveTranslator *translator = attentive_open(argv[1], 0);
    if (!translator) {
        fprintf(stderr, "%s\n", attentive_error());
        return 1;
    }
    AttentiveOptions options = {0};
    options.n_best = 2;
    AttentiveTranslations *found =
        attentive_translate(translator, (const char *const *)argv + 2, (size_t)argc - 2, &options);
    if (!found) {
        fprintf(stderr, "%s\n", attentive_error());
        attentive_close(translator);
        return 1;
    }
    for (size_t number = 0; number < attentive_count(found); number++) {
        for (size_t rank = 0; rank < attentive_hypotheses(found, number); rank++) {
            printf("%zu ||| %s ||| %.4f\n", number + 1, attentive_text(found, number, rank),
                   attentive_score(found, number, rank));
        }
    }
    attentive_free(found);
    attentive_close(translator);
    return 0;
}

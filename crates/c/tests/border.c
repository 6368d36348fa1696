/* What comes over the border is checked: NULL, text that is no UTF-8, numbers that are too large; and files and scores work. */
#include <attentive.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                                                              \
    if (!(condition)) {                                                                               \
        fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, attentive_error());               \
        return 1;                                                                                     \
    }

int main(int argc, char **argv) {
    CHECK(argc == 2 && strlen(attentive_version()) > 0);
    CHECK(strcmp(attentive_error(), "") == 0);
    CHECK(!attentive_open(NULL, 0) && strstr(attentive_error(), "`model` is NULL"));

    AttentiveTranslator *translator = attentive_open("de-en", 1);
    CHECK(translator);
    const char *broken[] = {"Hallo", "\xff"};
    CHECK(!attentive_translate(translator, broken, 2, NULL));
    CHECK(strstr(attentive_error(), "`texts[1]` is not UTF-8"));
    CHECK(!attentive_translate(translator, NULL, 2, NULL));
    CHECK(!attentive_translate(NULL, broken, 1, NULL));

    AttentiveTranslations *none = attentive_translate(translator, NULL, 0, NULL);
    CHECK(none && attentive_count(none) == 0 && !attentive_text(none, 0, 0));
    attentive_free(none);

    AttentiveTranslations *one = attentive_translate(translator, broken, 1, NULL);
    CHECK(one && attentive_count(one) == 1 && attentive_hypotheses(one, 0) == 1);
    CHECK(strcmp(attentive_text(one, 0, 0), "Hi") == 0 && attentive_score(one, 0, 0) < 0);
    CHECK(!attentive_text(one, 0, 1) && !attentive_text(one, 1, 0) && isnan(attentive_score(one, 7, 7)));
    attentive_free(one);

    char input[4096], output[4096];
    snprintf(input, sizeof input, "%s/page.html", argv[1]);
    snprintf(output, sizeof output, "%s/page.en.html", argv[1]);
    FILE *file = fopen(input, "w");
    CHECK(file && fputs("<p>Guten <b>Morgen</b>!</p>\n", file) >= 0 && fclose(file) == 0);
    CHECK(attentive_translate_file(translator, input, output) == 1);
    char page[256] = {0};
    file = fopen(output, "r");
    CHECK(file && fread(page, 1, sizeof page - 1, file) > 0 && fclose(file) == 0);
    CHECK(strstr(page, "<b>") && strstr(page, "morning"));
    CHECK(attentive_translate_file(translator, "no/such/file.txt", output) == -1);
    CHECK(strstr(attentive_error(), "no/such/file.txt"));

    const char *output_lines[] = {"The cat sat on a mat."}, *reference[] = {"The cat sat on the mat."};
    CHECK(fabs(attentive_bleu(output_lines, reference, 1) - 48.892302243490086) < 1e-9);
    attentive_close(translator);
    attentive_close(NULL);
    attentive_free(NULL);
    return 0;
}

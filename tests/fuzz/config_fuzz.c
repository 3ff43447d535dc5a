/* Settings from hostile text: the first byte chooses YAML, flags or environment, the rest is the
 * text. An error must be a single line, and accepted settings must read back equal after
 * printing. */
#include <stdlib.h>

#include "base/check.h"
#include "node/io/config_yaml.h"
#include "node/settings/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Splits `text` at NUL and newline into words, as argv; returns the count. */
static int split(char *text, size_t size, char **words, int max)
{
    int n = 0;
    bool start = true;
    for (size_t i = 0; i < size && n < max; i++) {
        if (text[i] == '\n')
            text[i] = '\0';
        if (start)
            words[n++] = text + i;
        start = text[i] == '\0';
    }
    words[n] = NULL;
    return n;
}

static void check_round_trip(const struct node_options *o)
{
    struct buf text = {0};
    struct node_options again;
    struct node_options_error error;
    CHECK(node_options_effective(o, &text) == 0);
    CHECK(node_options_init(&again) == 0);
    int err = io_config_yaml_parse(&again, buf_slice(&text), "again", &error);
    bool ascii = true; /* a path may contain bytes outside UTF-8, a YAML file may not */
    for (size_t i = 0; i < text.len; i++)
        ascii = ascii && (unsigned char)text.at[i] < 0x80;
    CHECK(err == 0 || !ascii || o->replica.count == 0); /* "replica: []" is refused in a file */
    if (err == 0) {
        CHECK(again.ttl_ms == o->ttl_ms && again.near_tie == o->near_tie);
        CHECK(again.replica.count == o->replica.count);
        CHECK(strcmp(again.admin_token_file, o->admin_token_file) == 0);
        CHECK(strcmp(again.listen.host, o->listen.host) == 0);
    }
    node_options_free(&again);
    buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { WORDS_MAX = 64 };
    if (size == 0)
        return 0;
    char *words[WORDS_MAX + 2];
    char *text = malloc(size);
    CHECK(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    struct node_options o;
    struct node_options_error error = {.text = ""};
    CHECK(node_options_init(&o) == 0);
    int err;
    if (data[0] % 3 == 0) {
        err = io_config_yaml_parse(&o, slice_of(text, size - 1), "fuzz", &error);
    } else if (data[0] % 3 == 1) {
        int count = split(text, size - 1, words, WORDS_MAX);
        err = node_options_flags(&o, count, words, &error);
    } else {
        (void)split(text, size - 1, words, WORDS_MAX);
        err = node_options_environment(&o, words, &error);
    }
    if (err == 0)
        err = node_options_finish(&o, &error);
    CHECK((err == 0) == (error.text[0] == '\0'));
    CHECK(strchr(error.text, '\n') == NULL && strlen(error.text) < NODE_ERROR_BYTES);
    check_round_trip(&o);
    node_options_free(&o);
    free(text);
    return 0;
}

/* A text split as a shell does it, as far as command lines of routers need: quotes, backslashes,
 * lines that go on. Variables stay as they are. */
#include "base/buf.h"
#include "base/err.h"
#include "node/gvctl/convert/convert_internal.h"

static void put(struct buf *word, char c)
{
    if (buf_append_char(word, c) != 0)
        abort();
}

/* What is in quotes from the front of `text` on, which loses it. */
static void take_quoted(struct slice *text, char quote, struct buf *word)
{
    while (text->len > 0 && text->at[0] != quote) {
        if (quote == '"' && text->at[0] == '\\' && text->len > 1)
            *text = slice_skip(*text, 1);
        put(word, text->at[0]);
        *text = slice_skip(*text, 1);
    }
    *text = slice_skip(*text, 1);
}

json_t *convert_split(struct slice text)
{
    json_t *words = json_array();
    struct buf word;
    bool open = false;
    buf_init(&word, 0);
    while (text.len > 0) {
        char c = text.at[0];
        text = slice_skip(text, 1);
        bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        if (c == '#' && !open) {
            text = slice_skip(text, slice_find(text, '\n'));
        } else if (blank && open) {
            (void)json_array_append_new(words, json_stringn(word.at, word.len));
            buf_clear(&word);
            open = false;
        } else if (c == '\\' && text.len > 0) {
            if (text.at[0] != '\n') {
                put(&word, text.at[0]);
                open = true;
            }
            text = slice_skip(text, 1);
        } else if (c == '"' || c == '\'') {
            take_quoted(&text, c, &word);
            open = true;
        } else if (!blank) {
            put(&word, c);
            open = true;
        }
    }
    if (open)
        (void)json_array_append_new(words, json_stringn(word.at != NULL ? word.at : "", word.len));
    buf_free(&word);
    return words;
}

#include "node/access/line.h"

#include "base/check.h"

/* The hash in hex follows this word, so that a later algorithm can use another word. */
static const struct slice algorithm = SLICE("blake2b:");

static bool is_name_byte(char c)
{
    bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return word || (c != '\0' && strchr(".-_@/+", c) != NULL);
}

const char *access_name_wrong(struct slice name)
{
    bool good = name.len > 0 && name.len <= ACCESS_NAME_MAX;
    for (size_t i = 0; i < name.len && good; i++)
        good = is_name_byte(name.at[i]);
    return good ? NULL : "want a name of 1 to 64 letters, digits and . - _ @ / +";
}

const char *access_models_wrong(struct slice models)
{
    static const char wrong[] =
        "want models=A,B: at most 256 names and 8192 bytes, without spaces or control bytes; `*` "
        "may stand at the end of one";
    unsigned count = 1;
    if (models.len == 0 || models.len > ACCESS_MODELS_BYTES || models.at[0] == ',' ||
        models.at[models.len - 1] == ',')
        return wrong;
    for (size_t i = 0; i < models.len; i++) {
        char c = models.at[i];
        bool last = i + 1 == models.len || models.at[i + 1] == ',';
        if (c <= ' ' || c > '~' || (c == '*' && !last) || (c == ',' && models.at[i + 1] == ','))
            return wrong;
        count += c == ',';
    }
    return count <= ACCESS_MODELS_MAX ? NULL : wrong;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_digest(struct slice word, struct access_digest *out)
{
    if (!slice_starts_with(word, algorithm) || word.len != algorithm.len + 2 * sizeof out->bytes)
        return false;
    word = slice_skip(word, algorithm.len);
    for (size_t i = 0; i < sizeof out->bytes; i++) {
        int high = hex_digit(word.at[2 * i]), low = hex_digit(word.at[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out->bytes[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

static const char *read_limit(struct slice value, uint64_t *out)
{
    if (*out != 0)
        return "an option is given twice";
    if (slice_to_u64(value, out) != 0 || *out == 0 || *out > ACCESS_LIMIT_MAX)
        return "want a number from 1 to 1000000000 after requests-per-minute=, "
               "tokens-per-minute= and in-flight=";
    return NULL;
}

static const char *read_option(struct slice word, struct access_line *out)
{
    static const char unknown[] =
        "after name and hash, want only models=A,B, "
        "requests-per-minute=N, tokens-per-minute=N, in-flight=N and control";
    struct slice value = word;
    struct slice name = slice_cut(&value, '=');
    if (slice_equal(word, SLICE("control"))) {
        bool twice = out->control;
        out->control = true;
        return twice ? "an option is given twice" : NULL;
    }
    if (name.len == word.len)
        return unknown;
    if (slice_equal(name, SLICE("requests-per-minute")))
        return read_limit(value, &out->limits.requests);
    if (slice_equal(name, SLICE("tokens-per-minute")))
        return read_limit(value, &out->limits.tokens);
    if (slice_equal(name, SLICE("in-flight")))
        return read_limit(value, &out->limits.in_flight);
    if (!slice_equal(name, SLICE("models")))
        return unknown;
    if (out->models.len > 0)
        return "an option is given twice";
    out->models = value;
    return access_models_wrong(value);
}

/* Cuts the next word off the line; empty at the end, or before a comment. */
static struct slice next_word(struct slice *rest)
{
    *rest = slice_trim(*rest);
    size_t len = 0;
    while (len < rest->len && rest->at[len] != ' ' && rest->at[len] != '\t')
        len++;
    struct slice word = slice_of(rest->at, len);
    if (len > 0 && word.at[0] == '#')
        return slice_of("", 0);
    *rest = slice_skip(*rest, len);
    return word;
}

int access_line_parse(struct slice text, struct access_line *out, const char **wrong)
{
    *out = (struct access_line){0};
    *wrong = NULL;
    if (text.len > 0 && text.at[text.len - 1] == '\r')
        text.len--;
    out->name = next_word(&text);
    if (out->name.len == 0)
        return 0;
    *wrong = access_name_wrong(out->name);
    if (*wrong == NULL && !read_digest(next_word(&text), &out->digest))
        *wrong = "want a hash after the name: blake2b: and 64 hex digits in lower case, as `gvctl "
                 "key new NAME` writes it; never the key itself";
    while (*wrong == NULL) {
        struct slice word = next_word(&text);
        if (word.len == 0)
            break;
        *wrong = read_option(word, out);
    }
    return *wrong == NULL ? 1 : ERR_SYNTAX;
}

static int write_limit(struct buf *out, const char *name, uint64_t limit)
{
    return limit == 0 ? 0 : buf_printf(out, " %s=%llu", name, (unsigned long long)limit);
}

int access_line_write(struct buf *out, const struct access_line *line)
{
    size_t start = out->len;
    int err = buf_printf(out, "%.*s %.*s", SLICE_ARG(line->name), SLICE_ARG(algorithm));
    for (size_t i = 0; i < sizeof line->digest.bytes && err == 0; i++)
        err = buf_printf(out, "%02x", line->digest.bytes[i]);
    if (err == 0 && line->models.len > 0)
        err = buf_printf(out, " models=%.*s", SLICE_ARG(line->models));
    if (err == 0)
        err = write_limit(out, "requests-per-minute", line->limits.requests);
    if (err == 0)
        err = write_limit(out, "tokens-per-minute", line->limits.tokens);
    if (err == 0)
        err = write_limit(out, "in-flight", line->limits.in_flight);
    if (err == 0 && line->control)
        err = buf_append_cstr(out, " control");
    if (err == 0)
        err = buf_append_char(out, '\n');
    if (err != 0)
        out->len = start;
    return err;
}

#include "node/gvctl/key_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/access/table.h"
#include "node/gvctl/new_secret.h"
#include "node/gvctl/plain.h"
#include "node/gvctl/print.h"
#include "node/io/read_file.h"

enum { HASH_SHOWN = 8 }; /* hex digits in the table: enough to distinguish a name's keys */

static int complain(const char *path, const char *what)
{
    plain_printf(stderr, "gvctl: \"%s\": %s\n", path, what);
    return EXIT_FAILURE;
}

static void hash_write(const struct access_digest *digest, char out[2 * sizeof digest->bytes + 1])
{
    for (size_t i = 0; i < sizeof digest->bytes; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", digest->bytes[i]);
}

/* Reads the file into `text`. `table` gets the keys of a file that routers accept, with a key at
 * least; the caller destroys the table. NULL: any file is accepted. Returns EXIT_FAILURE after
 * printing the error. */
static int read_keys(const char *path, struct access_table **table, struct buf *text)
{
    struct io_file file = {.setting = "the file of keys",
                           .path = path,
                           .bytes_max = ACCESS_FILE_BYTES_MAX,
                           .long_advice = "is too long, a router takes at most 16 MiB"};
    char message[IO_FILE_MESSAGE], wrong[ACCESS_MESSAGE_BYTES];
    int err = io_file_read(&file, text, NULL, message);
    if (err == 0 && table != NULL && access_table_create(table, buf_slice(text), wrong) != 0)
        err = io_file_fail(&file, message, wrong);
    if (err == 0)
        return EXIT_SUCCESS;
    plain_printf(stderr, "gvctl: %s\n", message);
    return EXIT_FAILURE;
}

/* Takes the next line. Returns true if the line has a key. An invalid line counts as a line without
 * a key: `key new` checks all lines. */
static bool next_key(struct slice *text, struct slice *whole, struct access_line *line)
{
    const char *wrong;
    *whole = slice_cut(text, '\n');
    return access_line_parse(*whole, line, &wrong) == 1;
}

int key_file_has(const char *path, struct slice name)
{
    struct buf text = {0};
    int count = 0;
    if (access(path, F_OK) != 0)
        return 0;
    if (read_keys(path, NULL, &text) != EXIT_SUCCESS)
        count = -1;
    struct slice rest = count < 0 ? SLICE("") : buf_slice(&text), whole;
    struct access_line line;
    while (rest.len > 0)
        count += next_key(&rest, &whole, &line) && slice_equal(line.name, name);
    buf_free_wiped(&text);
    return count;
}

/* --- list ------------------------------------------------------------------------------------ */

static json_t *row_of(const struct access_line *line)
{
    char hash[2 * sizeof line->digest.bytes + 1];
    hash_write(&line->digest, hash);
    return json_pack("{s:s%, s:s, s:s%, s:I, s:I, s:I, s:b}", "name", line->name.at, line->name.len,
                     "hash", hash, "models", line->models.at != NULL ? line->models.at : "",
                     line->models.len, "requests_per_minute", (json_int_t)line->limits.requests,
                     "tokens_per_minute", (json_int_t)line->limits.tokens, "in_flight",
                     (json_int_t)line->limits.in_flight, "control", line->control);
}

static void limit_cell(char *out, size_t size, uint64_t limit)
{
    (void)snprintf(out, size, limit > 0 ? "%llu" : "-", (unsigned long long)limit);
}

static void row_print(const struct access_line *line, bool first)
{
    char hash[2 * sizeof line->digest.bytes + 1], requests[24], tokens[24], in_flight[24];
    hash_write(&line->digest, hash);
    hash[HASH_SHOWN] = '\0';
    limit_cell(requests, sizeof requests, line->limits.requests);
    limit_cell(tokens, sizeof tokens, line->limits.tokens);
    limit_cell(in_flight, sizeof in_flight, line->limits.in_flight);
    if (first)
        (void)printf("%-24s %-8s %9s %10s %9s %-7s %s\n", "NAME", "HASH", "REQ/MIN", "TOKENS/MIN",
                     "IN FLIGHT", "CONTROL", "MODELS");
    (void)printf("%-24.*s %-8s %9s %10s %9s %-7s %.*s\n", (int)line->name.len, line->name.at, hash,
                 requests, tokens, in_flight, line->control ? "yes" : "-",
                 line->models.len > 0 ? (int)line->models.len : 3,
                 line->models.len > 0 ? line->models.at : "all");
}

/* Returns the file's keys in its order, `t->count` in number. Each has its name's options, which
 * are on the name's first line. NULL: no memory. */
static struct access_line *keys_of(const struct access_table *t, struct slice text)
{
    struct access_line *keys = calloc(t->count, sizeof *keys);
    unsigned *firsts = calloc(t->keys_count, sizeof *firsts), named = 0;
    struct slice whole;
    for (unsigned i = 0; keys != NULL && firsts != NULL && text.len > 0;) {
        struct access_line line;
        if (!next_key(&text, &whole, &line))
            continue;
        unsigned name = t->owners[i];
        if (name == named)
            firsts[named++] = i;
        keys[i] = i == firsts[name] ? line : keys[firsts[name]];
        keys[i++].digest = line.digest;
    }
    if (firsts == NULL) {
        free(keys);
        keys = NULL;
    }
    free(firsts);
    return keys;
}

int key_file_list(const char *path, const struct show *how)
{
    struct buf text = {0};
    struct access_table *t = NULL;
    bool as_table = how->format != SHOW_JSON && how->format != SHOW_YAML;
    json_t *rows = as_table ? NULL : json_array();
    int status = read_keys(path, &t, &text);
    struct access_line *keys = t != NULL ? keys_of(t, buf_slice(&text)) : NULL;
    if (t != NULL && keys == NULL)
        status = complain(path, "out of memory");
    for (unsigned i = 0; keys != NULL && i < t->count; i++) {
        if (as_table)
            row_print(&keys[i], i == 0);
        else
            (void)json_array_append_new(rows, row_of(&keys[i]));
    }
    if (status == EXIT_SUCCESS && !as_table)
        print_as(how->format, rows, stdout);
    json_decref(rows);
    free(keys);
    access_table_destroy(t);
    buf_free_wiped(&text);
    return fflush(stdout) == 0 ? status : EXIT_FAILURE;
}

/* --- revoke ---------------------------------------------------------------------------------- */

static bool is_meant(const struct access_line *line, struct slice name, const char *hash)
{
    char own[2 * sizeof line->digest.bytes + 1];
    if (!slice_equal(line->name, name))
        return false;
    hash_write(&line->digest, own);
    return hash == NULL || strncmp(own, hash, strlen(hash)) == 0;
}

struct revoking {
    struct buf kept;
    struct access_line options; /* the name's options, from the name's first line */
    unsigned seen, removed, others;
};

/* Keeps a line (`own`: a line of the name). A name's options are on the name's first line: if that
 * line is removed, the first remaining line takes the options over. */
static int keep(struct revoking *r, const struct access_line *line, bool own, struct slice whole)
{
    if (own && r->removed > 0 && r->seen == r->removed) {
        struct access_line moved = r->options;
        moved.digest = line->digest;
        return access_line_write(&r->kept, &moved);
    }
    int err = buf_append_slice(&r->kept, whole);
    return err == 0 ? buf_append_char(&r->kept, '\n') : err;
}

static int revoke_line(struct revoking *r, struct slice *rest, struct slice name, const char *hash)
{
    struct slice whole;
    struct access_line line = {.name = SLICE("")};
    bool key = next_key(rest, &whole, &line), own = key && slice_equal(line.name, name);
    if (own && r->seen == 0)
        r->options = line;
    bool meant = own && is_meant(&line, name, hash);
    int err = meant ? 0 : keep(r, &line, own, whole);
    r->seen += own;
    r->removed += meant;
    r->others += key && !meant;
    return err;
}

int key_file_revoke(const char *path, struct slice name, const char *hash)
{
    struct revoking r = {.seen = 0};
    struct buf text = {0};
    struct access_table *t = NULL;
    int status = read_keys(path, &t, &text), err = 0;
    access_table_destroy(t);
    struct slice rest = status == EXIT_SUCCESS ? buf_slice(&text) : SLICE("");
    while (rest.len > 0 && err == 0)
        err = revoke_line(&r, &rest, name, hash);
    if (err != 0)
        status = complain(path, "out of memory");
    else if (status == EXIT_SUCCESS && r.removed == 0)
        status = complain(path,
                          hash != NULL && r.seen > 0
                              ? "no key of that name has this hash; gvctl key list shows the hashes"
                              : "no key of that name; gvctl key list shows the names");
    else if (status == EXIT_SUCCESS && r.others == 0)
        status = complain(
            path,
            "this is the last key, and routers refuse a file without keys: they would keep the old "
            "ones. Make another key first, or remove client-keys-file from the settings");
    if (status == EXIT_SUCCESS)
        status = new_secret_replace(path, buf_slice(&r.kept));
    if (status == EXIT_SUCCESS)
        plain_printf(stdout, "Revoked %u %s of %.*s; routers read the file within a second.\n",
                     r.removed, r.removed == 1 ? "key" : "keys", (int)name.len, name.at);
    buf_free_wiped(&text);
    buf_free_wiped(&r.kept);
    return status;
}

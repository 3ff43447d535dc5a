#include "node/gvctl/key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/access/table.h"
#include "node/gvctl/key_file.h"
#include "node/gvctl/new_secret.h"
#include "node/gvctl/print.h"
#include "node/io/random.h"
#include "node/io/read_file.h"

enum {
    EXIT_USAGE = 2,
    SECRET_BYTES = 32,
    KEY_CHARS = 3 + (SECRET_BYTES * 8 + 5) / 6, /* "gv-" and base64url */
};

static int complain(const char *what, const char *wrong)
{
    (void)fprintf(stderr, "gvctl: %s: %s\n", what, wrong);
    return EXIT_USAGE;
}

/* Makes a key: "gv-" and 43 characters of base64url, which need no quotes in a header, shell or
 * URL. */
static void make_key(char out[KEY_CHARS + 1])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint8_t random[SECRET_BYTES + 1] = {0};
    io_random_bytes(random, SECRET_BYTES);
    memcpy(out, "gv-", 3);
    for (unsigned i = 0; i < KEY_CHARS - 3; i++) {
        unsigned bit = 6 * i;
        unsigned pair = (unsigned)random[bit / 8] << 8 | random[bit / 8 + 1];
        out[3 + i] = digits[pair >> (10 - bit % 8) & 63];
    }
    out[KEY_CHARS] = '\0';
    explicit_bzero(random, sizeof random);
}

/* Checks that a router would accept the file with this line; prints the error if not. `*ends_open`:
 * the file's last line has no newline. Returns the exit status. */
static int check(const char *path, struct slice line, bool *ends_open)
{
    struct io_file file = {.setting = "the file of keys",
                           .path = path,
                           .bytes_max = ACCESS_FILE_BYTES_MAX,
                           .long_advice = "is too long, a router takes at most 16 MiB"};
    struct buf text = {0};
    char message[IO_FILE_MESSAGE], wrong[ACCESS_MESSAGE_BYTES];
    struct access_table *table = NULL;
    int err = 0;
    if (access(path, F_OK) == 0)
        err = io_file_read(&file, &text, NULL, message);
    *ends_open = text.len > 0 && text.at[text.len - 1] != '\n';
    if (err == 0 && *ends_open && buf_append_char(&text, '\n') != 0)
        err = io_file_fail(&file, message, "out of memory");
    if (err == 0 && buf_append_slice(&text, line) != 0)
        err = io_file_fail(&file, message, "out of memory");
    if (err == 0 && access_table_create(&table, buf_slice(&text), wrong) != 0)
        err = io_file_fail(&file, message, wrong);
    access_table_destroy(table);
    buf_free_wiped(&text);
    if (err == 0)
        return EXIT_SUCCESS;
    (void)fprintf(stderr, "gvctl: %s\n", message);
    return EXIT_FAILURE;
}

/* Appends all or nothing, in a single write: a router reading meanwhile sees the file with the line
 * or without. A router would refuse a file with half a line. Sets errno. */
static bool append_to(int fd, struct slice text)
{
    off_t end = lseek(fd, 0, SEEK_END);
    if (end < 0)
        return false;
    errno = ENOSPC; /* a short write sets no errno */
    if (write(fd, text.at, text.len) == (ssize_t)text.len && fsync(fd) == 0)
        return true;
    int why = errno;
    if (ftruncate(fd, end) != 0)
        why = errno;
    errno = why;
    return false;
}

static int append(const char *path, struct slice line)
{
    bool ends_open;
    int status = check(path, line, &ends_open);
    if (status != EXIT_SUCCESS)
        return status;
    struct buf text = {0};
    int fd = new_secret_open(path);
    if (fd < 0 && errno == EEXIST)
        fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    bool good = fd >= 0 && (!ends_open || buf_append_char(&text, '\n') == 0) &&
                buf_append_slice(&text, line) == 0 && append_to(fd, buf_slice(&text));
    int why = errno;
    if (fd >= 0)
        (void)close(fd);
    buf_free(&text);
    if (good)
        return EXIT_SUCCESS;
    (void)fprintf(stderr, "gvctl: \"%s\": %s\n", path, strerror(why));
    return EXIT_FAILURE;
}

static int print_as_json(const struct show *how, const char *key, const struct access_line *line,
                         struct slice text)
{
    text = slice_trim(text);
    json_t *value = json_pack("{s:s%, s:s, s:s%}", "name", line->name.at, line->name.len, "key",
                              key, "line", text.at, text.len);
    if (value == NULL)
        return EXIT_FAILURE;
    print_as(how->format, value, stdout);
    json_decref(value);
    return EXIT_SUCCESS;
}

static int print(const struct key_wanted *w, const struct show *how, const char *key,
                 const struct access_line *line, struct slice text)
{
    int status = EXIT_SUCCESS;
    if (how->format == SHOW_JSON || how->format == SHOW_YAML)
        status = print_as_json(how, key, line, text);
    else
        (void)printf("%s\n%.*s", key, w->path == NULL ? (int)text.len : 0, text.at);
    if (status == EXIT_SUCCESS && isatty(STDOUT_FILENO))
        (void)fprintf(stderr,
                      "gvctl: this key is shown only now; the client sends it as Authorization: "
                      "Bearer KEY.%s\n",
                      w->path == NULL ? " The line below the key is for client-keys-file."
                                      : " Routers read the file within a second.");
    return fflush(stdout) == 0 ? status : EXIT_FAILURE;
}

static int make(const struct key_wanted *w, const struct show *how, const char *name)
{
    char key[KEY_CHARS + 1];
    struct access_line wanted = w->line;
    struct buf line = {0};
    io_random_init();
    make_key(key);
    wanted.name = slice_of_cstr(name);
    wanted.digest = access_digest_of(slice_of_cstr(key));
    int status = EXIT_FAILURE;
    if (access_line_write(&line, &wanted) != 0)
        (void)fputs("gvctl: out of memory\n", stderr);
    else
        status = w->path != NULL ? append(w->path, buf_slice(&line)) : EXIT_SUCCESS;
    if (status == EXIT_SUCCESS)
        status = print(w, how, key, &wanted, buf_slice(&line));
    explicit_bzero(key, sizeof key);
    buf_free(&line);
    return status;
}

static int make_checked(const struct key_wanted *w, const struct show *how, const char *name)
{
    const char *wrong = access_name_wrong(slice_of_cstr(name));
    if (wrong != NULL)
        return complain("key new", wrong);
    int held = w->path != NULL && !w->add ? key_file_has(w->path, slice_of_cstr(name)) : 0;
    if (held > 0) {
        (void)fprintf(stderr,
                      "gvctl: \"%s\" already has a key for %s. To rotate it, make a second one "
                      "with --add, then remove the first: gvctl key revoke %s --hash HEX\n",
                      w->path, name, name);
        return EXIT_FAILURE;
    }
    return held < 0 ? EXIT_FAILURE : make(w, how, name);
}

int key_command(const struct key_wanted *w, const struct show *how, const char *verb,
                const char *name)
{
    bool list = strcmp(verb, "list") == 0, revoke = strcmp(verb, "revoke") == 0;
    if (strcmp(verb, "new") != 0 && !list && !revoke)
        return complain(verb, "give one of new, list, revoke; see gvctl help key");
    if (list == (name != NULL))
        return complain(verb, list ? "gvctl key list takes no name" : "the name is missing");
    if (w->path == NULL && (list || revoke))
        return complain(verb,
                        "the file is missing: give --file with the router's client-keys-file");
    if (list)
        return key_file_list(w->path, how);
    return revoke ? key_file_revoke(w->path, slice_of_cstr(name), w->hash)
                  : make_checked(w, how, name);
}

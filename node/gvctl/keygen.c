#include "node/gvctl/keygen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "gossip/keyring.h"
#include "node/io/random.h"

enum { PATH_BYTES = 4096, FILE_BYTES_MAX = 65536 };

static int complain(const char *path, const char *what)
{
    (void)fprintf(stderr, "gvctl: \"%s\": %s\n", path, what);
    return EXIT_FAILURE;
}

static int print_new(void)
{
    uint8_t random[2 * GOSSIP_KEY_BYTES];
    char text[2048];
    io_random_bytes(random, sizeof random);
    gossip_keyring_format(random, text, sizeof text);
    bool written = fputs(text, stdout) >= 0 && fflush(stdout) == 0;
    if (isatty(STDOUT_FILENO))
        (void)fputs("gvctl: this is the secret of a cluster; keep it in a file: gvctl keygen > "
                    "cluster.key\n",
                    stderr);
    return written ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int read_file(const char *path, struct buf *out)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL || buf_reserve(out, FILE_BYTES_MAX) != 0) {
        if (f != NULL)
            (void)fclose(f);
        return complain(path, strerror(errno));
    }
    out->len = fread(out->at, 1, FILE_BYTES_MAX, f);
    (void)fclose(f);
    struct gossip_keyring ring;
    char message[160];
    if (gossip_keyring_parse(&ring, buf_slice(out), message) != 0)
        return complain(path, message);
    return EXIT_SUCCESS;
}

/* The file was parsed: a line's first word says what it is. */
static struct slice word_of(struct slice line)
{
    line = slice_trim(line);
    size_t end = 0;
    while (end < line.len && line.at[end] != ' ' && line.at[end] != '\t' && line.at[end] != '\r')
        end++;
    return slice_of(line.at, end);
}

static bool has_next(struct slice text)
{
    while (text.len > 0) {
        if (slice_equal(word_of(slice_cut(&text, '\n')), SLICE("next")))
            return true;
    }
    return false;
}

static int append_next(struct buf *out)
{
    uint8_t key[GOSSIP_KEY_BYTES];
    io_random_bytes(key, sizeof key);
    int err = buf_append_cstr(out, "next ");
    for (unsigned i = 0; i < sizeof key && err == 0; i++)
        err = buf_printf(out, "%02x", key[i]);
    return err == 0 ? buf_append_char(out, '\n') : err;
}

/* The text after the step; comments and the order of lines stay. */
static int edit(enum keygen_step step, struct slice text, struct buf *out)
{
    int err = 0;
    while (text.len > 0 && err == 0) {
        struct slice line = slice_cut(&text, '\n');
        struct slice word = word_of(line);
        bool key = slice_equal(word, SLICE("key"));
        bool next = slice_equal(word, SLICE("next"));
        if (next && step == KEYGEN_FINISH)
            continue;
        if ((key || next) && step == KEYGEN_PROMOTE) {
            err = buf_append_cstr(out, key ? "next" : "key");
            line = slice_skip(line, (size_t)(word.at - line.at) + word.len);
        }
        if (err == 0)
            err = buf_append_slice(out, line);
        if (err == 0)
            err = buf_append_char(out, '\n');
    }
    return err == 0 && step == KEYGEN_NEXT ? append_next(out) : err;
}

static int replace_file(const char *path, struct slice text)
{
    char temporary[PATH_BYTES];
    struct stat status;
    int n = snprintf(temporary, sizeof temporary, "%s.new", path);
    if (n < 0 || (size_t)n >= sizeof temporary || stat(path, &status) != 0)
        return complain(path, strerror(errno));
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return complain(temporary, strerror(errno));
    bool written = write(fd, text.at, text.len) == (ssize_t)text.len &&
                   fchmod(fd, status.st_mode & 07777) == 0 && fsync(fd) == 0;
    written = close(fd) == 0 && written && rename(temporary, path) == 0;
    if (written)
        return EXIT_SUCCESS;
    int why = errno;
    (void)unlink(temporary);
    return complain(path, strerror(why));
}

int keygen(enum keygen_step step, const char *path)
{
    static const char *const then[] = {
        [KEYGEN_NEXT] = "Both keys are accepted. Give this file to all routers, SIGHUP each; then: "
                        "gvctl keygen --promote FILE",
        [KEYGEN_PROMOTE] = "The new key is used, the old one still accepted. Give this file to all "
                           "routers, SIGHUP each; then: gvctl keygen --finish FILE",
        [KEYGEN_FINISH] = "The old key is gone. Give this file to all routers, SIGHUP each.",
    };
    io_random_init();
    if (step == KEYGEN_NEW)
        return print_new();
    struct buf text;
    struct buf edited;
    buf_init(&text, 0);
    buf_init(&edited, 0);
    int status = read_file(path, &text);
    bool next = status == EXIT_SUCCESS && has_next(buf_slice(&text));
    if (status == EXIT_SUCCESS && step == KEYGEN_NEXT && next)
        status = complain(path, "it has a `next` key already: --promote or --finish comes now");
    else if (status == EXIT_SUCCESS && step != KEYGEN_NEXT && !next)
        status = complain(path, "it has no `next` key: --next makes one");
    else if (status == EXIT_SUCCESS && edit(step, buf_slice(&text), &edited) != 0)
        status = complain(path, "out of memory");
    if (status == EXIT_SUCCESS)
        status = replace_file(path, buf_slice(&edited));
    if (status == EXIT_SUCCESS)
        (void)puts(then[step]);
    buf_free(&text);
    buf_free(&edited);
    return status;
}

#include "node/gvctl/keygen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "gossip/keyring.h"
#include "node/gvctl/new_secret.h"
#include "node/gvctl/plain.h"
#include "node/io/kubernetes_secret.h"
#include "node/io/random.h"
#include "node/io/read_file.h"

enum { FILE_BYTES_MAX = 65536 };

#define SECRET_ENTRY "cluster.key" /* file name of a mounted Secret */

static int complain(const char *path, const char *what)
{
    plain_printf(stderr, "gvctl: \"%s\": %s\n", path, what);
    return EXIT_FAILURE;
}

/* Prints key ids as a router's log does on reading the file (cluster_key_read). */
static void print_ids(struct slice text)
{
    struct gossip_keyring ring;
    char message[160];
    if (gossip_keyring_parse(&ring, text, message) != 0)
        return;
    for (unsigned i = 0; i < ring.count; i++) {
        const uint8_t *id = ring.keys[i].id;
        printf("%s%02x%02x%02x%02x", i == 0 ? "key in use: " : ", accepted too: ", id[0], id[1],
               id[2], id[3]);
    }
    (void)putchar('\n');
    explicit_bzero(&ring, sizeof ring);
}

static int read_file(const char *path, struct buf *out)
{
    const struct io_file file = {.setting = "gvctl:",
                                 .path = path,
                                 .bytes_max = FILE_BYTES_MAX,
                                 .long_advice = "is too long for a key file"};
    char message[IO_FILE_MESSAGE];
    struct gossip_keyring ring;
    if (io_file_read(&file, out, NULL, message) != 0) {
        plain_printf(stderr, "%s\n", message);
        return EXIT_FAILURE;
    }
    if (gossip_keyring_parse(&ring, buf_slice(out), message) != 0)
        return complain(path, message);
    return EXIT_SUCCESS;
}

static int print_or_write(const char *path, const char *text)
{
    static const char there[] =
        "the file already exists and is not changed; --next adds a second key to it";
    if (path == NULL) {
        int status = fputs(text, stdout) >= 0 && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
        if (isatty(STDOUT_FILENO))
            (void)fputs("gvctl: this is the secret of a cluster; keep it in a file: gvctl keygen "
                        "--out cluster.key\n",
                        stderr);
        return status;
    }
    if (!new_secret_write(path, slice_of_cstr(text)))
        return complain(path, errno == EEXIST ? there : strerror(errno));
    print_ids(slice_of_cstr(text));
    (void)printf("Give %s to all routers: --cluster-key-file\n", path);
    return EXIT_SUCCESS;
}

/* Creates a Kubernetes Secret. An existing Secret stays: each pod of a Job may start twice, and an
 * upgrade runs the Job again. */
static int make_secret(const char *name, const char *text)
{
    char message[KUBERNETES_SECRET_MESSAGE];
    const char *folder = getenv("GRAPEVINE_KUBERNETES_CREDENTIALS"); /* the same variable as for
                                                                      * grapevine */
    if (folder == NULL || folder[0] == '\0')
        folder = "/var/run/secrets/kubernetes.io/serviceaccount";
    int err = kubernetes_secret_create(folder, name, SECRET_ENTRY, slice_of_cstr(text), message);
    if (err == ERR_EXISTS) {
        (void)printf("The Secret \"%s\" already exists and is not changed.\n", name);
        return EXIT_SUCCESS;
    }
    if (err != 0)
        return complain(name, message);
    print_ids(slice_of_cstr(text));
    (void)printf("Made the Secret \"%s\" with %s.\n", name, SECRET_ENTRY);
    return EXIT_SUCCESS;
}

static int make(enum keygen_step step, const char *where)
{
    uint8_t random[2 * GOSSIP_KEY_BYTES];
    char text[2048];
    io_random_bytes(random, sizeof random);
    gossip_keyring_format(random, text, sizeof text);
    int status = step == KEYGEN_SECRET ? make_secret(where, text) : print_or_write(where, text);
    explicit_bzero(random, sizeof random);
    explicit_bzero(text, sizeof text);
    return status;
}

/* --- a rotation ------------------------------------------------------------------------------ */

/* Returns the first word of a line: the kind of key, because the file was parsed before. */
static struct slice word_of(struct slice line)
{
    line = slice_trim(line);
    size_t end = 0;
    while (end < line.len && line.at[end] != ' ' && line.at[end] != '\t' && line.at[end] != '\r')
        end++;
    return slice_of(line.at, end);
}

static bool has_line(struct slice text, struct slice word)
{
    while (text.len > 0) {
        if (slice_equal(word_of(slice_cut(&text, '\n')), word))
            return true;
    }
    return false;
}

/* Returns the reason why the file forbids the step, or NULL. A rotation goes one way: a step taken
 * twice or too early would undo the rotation or split the cluster. */
static const char *forbids(enum keygen_step step, struct slice text)
{
    bool next = has_line(text, SLICE("next"));
    bool old = has_line(text, SLICE("old"));
    if (next && step == KEYGEN_NEXT)
        return "it already has a `next` key: the next step is --promote";
    if (next && step == KEYGEN_FINISH)
        return "its `next` key is not in use yet: the next step is --promote";
    if (old && step == KEYGEN_NEXT)
        return "the last change is not finished: --finish removes its `old` key";
    if (old && step == KEYGEN_PROMOTE)
        return "its new key is already in use: the next step is --finish";
    if (!next && !old && step != KEYGEN_NEXT)
        return "no key change is in progress: start one with --next";
    return NULL;
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

/* Writes the file's text as changed by the step; comments and the order of lines stay. */
static int edit(enum keygen_step step, struct slice text, struct buf *out)
{
    int err = 0;
    while (text.len > 0 && err == 0) {
        struct slice line = slice_cut(&text, '\n');
        struct slice word = word_of(line);
        bool key = slice_equal(word, SLICE("key"));
        bool next = slice_equal(word, SLICE("next"));
        if (step == KEYGEN_FINISH && slice_equal(word, SLICE("old")))
            continue;
        if ((key || next) && step == KEYGEN_PROMOTE) {
            err = buf_append_cstr(out, key ? "old" : "key");
            line = slice_skip(line, (size_t)(word.at - line.at) + word.len);
        }
        if (err == 0)
            err = buf_append_slice(out, line);
        if (err == 0)
            err = buf_append_char(out, '\n');
    }
    return err == 0 && step == KEYGEN_NEXT ? append_next(out) : err;
}

int keygen(enum keygen_step step, const char *path)
{
    static const char *const then[] = {
        [KEYGEN_NEXT] = "FILE now has two keys. Give it to all routers; when each has logged "
                        "cluster_key_read, run gvctl keygen --promote FILE",
        [KEYGEN_PROMOTE] =
            "In FILE the new key is now in use, and the old one still accepted. Give it to all "
            "routers; when each has logged cluster_key_read, run gvctl keygen --finish FILE",
        [KEYGEN_FINISH] = "The old key is removed from FILE. Give it to all routers.",
    };
    io_random_init();
    if (step == KEYGEN_NEW || step == KEYGEN_SECRET)
        return make(step, path);
    struct buf text = {0};
    struct buf edited = {0};
    int status = read_file(path, &text);
    const char *why = status == EXIT_SUCCESS ? forbids(step, buf_slice(&text)) : NULL;
    if (why != NULL)
        status = complain(path, why);
    else if (status == EXIT_SUCCESS && edit(step, buf_slice(&text), &edited) != 0)
        status = complain(path, "out of memory");
    if (status == EXIT_SUCCESS)
        status = new_secret_replace(path, buf_slice(&edited));
    if (status == EXIT_SUCCESS) {
        print_ids(buf_slice(&edited));
        (void)puts(then[step]);
    }
    buf_free_wiped(&text);
    buf_free_wiped(&edited);
    return status;
}

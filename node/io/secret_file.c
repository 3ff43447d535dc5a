#include "node/io/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

int io_secret_fail(const struct io_secret *s, char *message, const char *what)
{
    (void)snprintf(message, IO_SECRET_MESSAGE, "%s \"%.200s\": %s", s->setting, s->path, what);
    return ERR_NOT_FOUND;
}

/* Room for so many bytes from `start` on. What is moved leaves nothing behind in memory. */
static int make_room(struct buf *out, size_t start, size_t bytes)
{
    struct buf wider = {0};
    int err = buf_reserve(&wider, start + bytes);
    if (err == 0 && out->len > 0)
        err = buf_append(&wider, out->at, out->len);
    if (err != 0) {
        buf_free_wiped(&wider);
        return err;
    }
    buf_free_wiped(out);
    *out = wider;
    return 0;
}

static int read_all(const struct io_secret *s, int fd, size_t size, struct buf *out, char *message)
{
    size_t start = out->len;
    size_t room = size < s->bytes_max ? size + 1 : s->bytes_max; /* the end is seen by a read */
    if (make_room(out, start, room) != 0)
        return io_secret_fail(s, message, "out of memory");
    for (;;) {
        if (out->len - start == room) { /* it grew, or is no regular file */
            room = s->bytes_max;
            if (make_room(out, start, room) != 0)
                return io_secret_fail(s, message, "out of memory");
        }
        ssize_t n = read(fd, out->at + out->len, room - (out->len - start));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return io_secret_fail(s, message, strerror(errno));
        if (n == 0)
            return 0;
        out->len += (size_t)n;
        if (out->len - start == s->bytes_max)
            return io_secret_fail(s, message, s->long_advice);
    }
}

static const char *why_not_open(int error)
{
    return error == EACCES ? "Permission denied: the user that this process runs as must be able "
                             "to read it (chgrp, chmod 640)"
                           : strerror(error);
}

int io_secret_read(const struct io_secret *s, struct buf *out, bool *others_read, char *message)
{
    /* Opening a pipe for reading waits for a writer, unless told not to. */
    int fd = open(s->path, O_RDONLY | O_CLOEXEC | (s->regular ? O_NONBLOCK : 0));
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) {
        int why = errno;
        if (fd >= 0)
            (void)close(fd);
        return io_secret_fail(s, message, why_not_open(why));
    }
    *others_read = (status.st_mode & S_IROTH) != 0;
    int err = s->regular && !S_ISREG(status.st_mode)
                  ? io_secret_fail(s, message, "is no regular file")
                  : read_all(s, fd, (size_t)status.st_size, out, message);
    (void)close(fd);
    return err;
}

void io_secret_free(struct buf *text)
{
    if (text->at != NULL)
        explicit_bzero(text->at, text->cap);
    buf_free(text);
}

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

static int read_all(const struct io_secret *s, int fd, struct buf *out, char *message)
{
    size_t start = out->len;
    if (buf_reserve(out, s->bytes_max) != 0)
        return io_secret_fail(s, message, "out of memory");
    for (;;) {
        ssize_t n = read(fd, out->at + out->len, s->bytes_max - (out->len - start));
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

int io_secret_read(const struct io_secret *s, struct buf *out, bool *others_read, char *message)
{
    /* Opening a pipe for reading waits for a writer, unless told not to. */
    int fd = open(s->path, O_RDONLY | O_CLOEXEC | (s->regular ? O_NONBLOCK : 0));
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) {
        int why = errno;
        if (fd >= 0)
            (void)close(fd);
        return io_secret_fail(s, message, strerror(why));
    }
    *others_read = (status.st_mode & S_IROTH) != 0;
    int err = s->regular && !S_ISREG(status.st_mode)
                  ? io_secret_fail(s, message, "is no regular file")
                  : read_all(s, fd, out, message);
    (void)close(fd);
    return err;
}

void io_secret_free(struct buf *text)
{
    if (text->at != NULL)
        explicit_bzero(text->at, text->cap);
    buf_free(text);
}

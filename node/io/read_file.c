#include "node/io/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

enum { ROOM_BYTES = 4096 };

int io_file_fail(const struct io_file *f, char *message, const char *what)
{
    (void)snprintf(message, IO_FILE_MESSAGE, "%s \"%.200s\": %s", f->setting, f->path, what);
    return ERR_NOT_FOUND;
}

/* Allocates memory for `bytes` bytes from `start` on. */
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

static int read_all(const struct io_file *f, int fd, size_t size, struct buf *out, char *message)
{
    size_t start = out->len, most = f->bytes_max + 1; /* an extra byte, to notice a file over the
                                                       * limit */
    size_t room = 0, wanted = size < ROOM_BYTES ? ROOM_BYTES : size + 1;
    for (;;) {
        if (out->len - start == room) { /* at the start; or the file grew, or is not regular */
            room = wanted < most ? wanted : most;
            wanted = 2 * room;
            if (make_room(out, start, room) != 0)
                return io_file_fail(f, message, "out of memory");
        }
        ssize_t n = read(fd, out->at + out->len, room - (out->len - start));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return io_file_fail(f, message, strerror(errno));
        if (n == 0)
            return 0;
        out->len += (size_t)n;
        if (out->len - start == most)
            return io_file_fail(f, message, f->long_advice);
    }
}

static const char *why_not_open(int error)
{
    return error == EACCES ? "Permission denied: the user that this process runs as must be able "
                             "to read it (chgrp, chmod 640)"
                           : strerror(error);
}

int io_file_read_fd(const struct io_file *f, int fd, struct buf *out, bool *others_read,
                    char *message)
{
    struct stat status;
    int err;
    if (fd < 0 || fstat(fd, &status) != 0) {
        err = io_file_fail(f, message, why_not_open(errno));
    } else {
        if (others_read != NULL)
            *others_read = (status.st_mode & S_IROTH) != 0;
        err = f->pipes || S_ISREG(status.st_mode)
                  ? read_all(f, fd, (size_t)status.st_size, out, message)
                  : io_file_fail(f, message, "is no regular file");
    }
    if (fd >= 0)
        (void)close(fd);
    return err;
}

int io_file_read(const struct io_file *f, struct buf *out, bool *others_read, char *message)
{
    /* Opening a pipe for reading blocks until there is a writer, hence O_NONBLOCK. Another process
     * with a lease on the file gives the lease up when somebody waits. */
    int fd = open(f->path, O_RDONLY | O_CLOEXEC | (f->pipes ? 0 : O_NONBLOCK));
    if (fd < 0 && errno == EWOULDBLOCK)
        fd = open(f->path, O_RDONLY | O_CLOEXEC);
    return io_file_read_fd(f, fd, out, others_read, message);
}

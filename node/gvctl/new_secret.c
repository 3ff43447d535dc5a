#include "node/gvctl/new_secret.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/gvctl/plain.h"

#define SERVICE_GROUP "grapevine" /* deploy/systemd/sysusers.conf */

enum { PATH_BYTES = 4096, MODE_OWN = 0600, MODE_SERVICE = 0640 };

static void give_to_service(int fd, const char *path)
{
    char copy[PATH_BYTES];
    struct stat folder;
    const struct group *service = geteuid() == 0 ? getgrnam(SERVICE_GROUP) : NULL;
    int n = snprintf(copy, sizeof copy, "%s", path);
    if (service == NULL || n < 0 || (size_t)n >= sizeof copy || stat(dirname(copy), &folder) != 0 ||
        folder.st_gid != service->gr_gid)
        return;
    if (fchown(fd, (uid_t)-1, service->gr_gid) == 0)
        (void)fchmod(fd, MODE_SERVICE);
}

int new_secret_open(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, MODE_OWN);
    if (fd >= 0)
        give_to_service(fd, path);
    return fd;
}

/* Gives the new file the owner, group and mode of the old file `like`: root may change a file of
 * grapevine's user. Another user cannot change the owner, which is no error. */
static bool make_like(int fd, const struct stat *like)
{
    return (fchown(fd, like->st_uid, like->st_gid) == 0 || errno == EPERM) &&
           fchmod(fd, like->st_mode & 07777) == 0;
}

static bool write_like(const char *path, struct slice text, const struct stat *like)
{
    int fd = new_secret_open(path);
    if (fd < 0)
        return false;
    bool written = write(fd, text.at, text.len) == (ssize_t)text.len &&
                   (like == NULL || make_like(fd, like)) && fsync(fd) == 0;
    int why = errno;
    if (close(fd) != 0 && written) {
        why = errno;
        written = false;
    }
    if (!written)
        (void)unlink(path);
    errno = why;
    return written;
}

bool new_secret_write(const char *path, struct slice text)
{
    return write_like(path, text, NULL);
}

static int complain(const char *path, int why)
{
    plain_printf(stderr, "gvctl: \"%s\": %s\n", path, strerror(why));
    return EXIT_FAILURE;
}

int new_secret_replace(const char *path, struct slice text)
{
    char temporary[PATH_BYTES];
    struct stat status;
    int n = snprintf(temporary, sizeof temporary, "%s.new", path);
    if (n < 0 || (size_t)n >= sizeof temporary)
        return complain(path, ENAMETOOLONG);
    if (stat(path, &status) != 0)
        return complain(path, errno);
    if (!write_like(temporary, text, &status))
        return complain(temporary, errno);
    if (rename(temporary, path) == 0)
        return EXIT_SUCCESS;
    int why = errno;
    (void)unlink(temporary);
    return complain(path, why);
}

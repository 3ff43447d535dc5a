#include "node/gvctl/new_secret.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

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

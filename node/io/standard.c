#include "node/io/standard.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void standard_open(void)
{
    static const int flags[] = {
        [STDIN_FILENO] = O_RDONLY, [STDOUT_FILENO] = O_RDONLY, [STDERR_FILENO] = O_WRONLY};
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        /* The kernel assigns the lowest free number, which is `fd`. The root folder exists even
         * without /dev, and takes the number just as well. */
        if (open("/dev/null", flags[fd]) < 0)
            (void)open("/", O_RDONLY | O_DIRECTORY);
    }
}

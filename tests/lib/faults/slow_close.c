/* For LD_PRELOAD: a socket that listens is closed 50 ms late, so that what comes in between the
 * last accept() and close() does come. Built by tests/e2e/test_reuse_port.py, no part of anything
 * else. */
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int close(int fd)
{
    int listens = 0;
    socklen_t len = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens)
        (void)usleep(50000);
    return (int)syscall(SYS_close, fd);
}

/* For LD_PRELOAD: a socket that listens is closed when one more connection waits there, or none has
 * come for 200 ms: what comes between the last accept() and close() once in a hundred times comes
 * each time. Built by tests/e2e/test_reuse_port.py, no part of anything else. */
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int close(int fd)
{
    int listens = 0;
    socklen_t len = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens)
        (void)poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 200);
    return (int)syscall(SYS_close, fd);
}

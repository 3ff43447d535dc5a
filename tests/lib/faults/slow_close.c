/* For LD_PRELOAD: closes a listening socket only when another connection waits there, or none has
 * come for 200 ms. So a connection between the last accept() and close(), otherwise once in a
 * hundred runs, comes in each run. Built only by tests/e2e/test_reuse_port.py. */
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

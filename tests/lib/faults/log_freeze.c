/* For LD_PRELOAD: write() to standard error does not return while the file named by
 * $LOG_FREEZE_FILE begins with a byte other than 0. A file on a hanging disk behaves so: poll()
 * reports it writable. The file is mapped, so a write to the file freezes the running process. A
 * process frozen this way can be killed, unlike after fsfreeze. Built only by jepsen-lite. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile char *frozen;

__attribute__((constructor)) static void open_file(void)
{
    const char *path = getenv("LOG_FREEZE_FILE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *at = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED)
        frozen = at;
    (void)close(fd);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    const struct timespec ms = {.tv_nsec = 1000000};
    while (fd == STDERR_FILENO && frozen && *frozen)
        (void)nanosleep(&ms, NULL);
    return (ssize_t)syscall(SYS_write, fd, bytes, len);
}

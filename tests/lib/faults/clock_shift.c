/* For LD_PRELOAD: shifts CLOCK_REALTIME by the milliseconds in the file named by $CLOCK_SHIFT_FILE
 * (eight bytes, signed, native order). If the next eight bytes exist and are not 0, the clock
 * stands still at this number of milliseconds since 1970, plus the shift. The file is mapped, so a
 * write to the file moves the clock of the running process. Built only by
 * tests/e2e/test_cluster_faults.py and jepsen-lite. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile struct set {
    int64_t shift_ms, stands_ms;
} * set; /* if the file is shorter, the rest of the page is 0 */

__attribute__((constructor)) static void open_file(void)
{
    const char *path = getenv("CLOCK_SHIFT_FILE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *at = mmap(NULL, sizeof *set, PROT_READ, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED)
        set = at;
    (void)close(fd);
}

int clock_gettime(clockid_t id, struct timespec *out)
{
    int status = (int)syscall(SYS_clock_gettime, id, out);
    if (status != 0 || !set || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
        return status;
    int64_t stands_ms = set->stands_ms;
    if (stands_ms != 0) {
        out->tv_sec = (time_t)(stands_ms / 1000);
        out->tv_nsec = (long)(stands_ms % 1000) * 1000000;
    }
    int64_t ms = (int64_t)out->tv_sec * 1000 + set->shift_ms;
    out->tv_sec = (time_t)(ms / 1000);
    out->tv_nsec += (long)(ms % 1000) * 1000000;
    if (out->tv_nsec >= 1000000000) {
        out->tv_sec++;
        out->tv_nsec -= 1000000000;
    }
    return 0;
}

/* The C library declares the time zone as void *. */
int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    (void)zone;
    struct timespec now;
    int status = clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return status;
}

time_t time(time_t *out)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return (time_t)-1;
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

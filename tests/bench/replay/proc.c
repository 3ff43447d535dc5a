#include "tests/bench/replay/proc.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static double ticks_us(int pid)
{
    char path[64], line[1024];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return 0;
    size_t n = fread(line, 1, sizeof line - 1, f);
    (void)fclose(f);
    line[n] = '\0';
    const char *at = strrchr(line, ')'); /* the name may hold spaces and brackets */
    unsigned long user = 0, kernel = 0;
    /* NOLINTNEXTLINE(cert-err34-c): the kernel writes numbers here */
    if (at == NULL ||
        sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel) != 2)
        return 0;
    return (double)(user + kernel) * 1e6 / (double)sysconf(_SC_CLK_TCK);
}

double proc_cpu_us(int pid)
{
    char path[128];
    (void)snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *d = opendir(path);
    if (d == NULL)
        return 0;
    double sum_ns = 0;
    struct dirent *e;
    while ((e = readdir(d)) != NULL) {
        if (e->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", pid, e->d_name);
        FILE *f = fopen(path, "r");
        unsigned long long ran_ns = 0;
        /* NOLINTNEXTLINE(cert-err34-c): the kernel writes numbers here */
        if (f != NULL && fscanf(f, "%llu", &ran_ns) == 1)
            sum_ns += (double)ran_ns;
        if (f != NULL)
            (void)fclose(f);
    }
    (void)closedir(d);
    return sum_ns > 0 ? sum_ns / 1e3 : ticks_us(pid);
}

uint64_t proc_rss_bytes(int pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/statm", pid);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return 0;
    unsigned long pages = 0;
    /* NOLINTNEXTLINE(cert-err34-c): the kernel writes numbers here */
    if (fscanf(f, "%*u %lu", &pages) != 1)
        pages = 0;
    (void)fclose(f);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Replays corpus files through a fuzz target, so that the ordinary test run needs no libFuzzer.
 * VARIANT=lab: with the known bug (base/bug.h) named by BUG=NAME in the environment. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return -1;
    size_t len = 0;
    size_t cap = 1 << 16;
    uint8_t *bytes = malloc(cap);
    size_t n = 0;
    while (bytes != NULL && (n = fread(bytes + len, 1, cap - len, f)) > 0) {
        len += n;
        if (len == cap) {
            cap *= 2;
            uint8_t *grown = realloc(bytes, cap);
            if (grown == NULL)
                free(bytes);
            bytes = grown;
        }
    }
    (void)fclose(f);
    if (bytes == NULL)
        return -1;
    (void)LLVMFuzzerTestOneInput(bytes, len);
    free(bytes);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned count = 0;
#ifdef GRAPEVINE_LAB
    CHECK(bug_choose(getenv("BUG")));
#endif
    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        if (dir == NULL) {
            if (replay_file(argv[i]) == 0)
                count++;
            continue;
        }
        const struct dirent *entry;
        while ((entry = readdir(dir)) != NULL) {
            char path[4096];
            (void)snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            if (entry->d_name[0] != '.' && replay_file(path) == 0)
                count++;
        }
        (void)closedir(dir);
    }
    printf("%u inputs replayed\n", count);
    return 0;
}

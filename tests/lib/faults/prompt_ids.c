/* Prints a router's ids of a prompt: prompt_ids KEY_FILE < BODY. A hexadecimal number per line.
 * tests/e2e/test_cluster_faults.py looks for the ids in sniffed packets. */
#include <inttypes.h>
#include <stdio.h>

#include "gossip/keyring.h"
#include "http/skim.h"

static size_t read_all(FILE *from, char *out, size_t size)
{
    size_t len = fread(out, 1, size, from);
    (void)fclose(from);
    return len;
}

int main(int argc, char **argv)
{
    static char text[1 << 20];
    char message[256];
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!file)
        return 2;
    struct gossip_keyring keyring;
    size_t len = read_all(file, text, sizeof text);
    if (gossip_keyring_parse(&keyring, slice_of(text, len), message) != 0)
        return 2;
    struct hash_secret secret;
    gossip_keyring_hash_secret(&keyring, &secret);
    static struct http_skim skim;
    http_skim_init(&skim, &secret);
    len = read_all(stdin, text, sizeof text);
    http_skim_feed(&skim, text, len);
    http_skim_finish(&skim);
    const struct chain *chain = http_skim_chain(&skim);
    for (unsigned i = 0; i < chain->length; i++)
        (void)printf("%016" PRIx64 "\n", chain->points[i].id);
    return skim.understood ? 0 : 1;
}

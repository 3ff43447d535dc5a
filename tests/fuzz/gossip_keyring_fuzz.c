/* Any text as a key file: refused with a message, or read, and the same when read again. */
#include "base/check.h"
#include "base/err.h"
#include "gossip/keyring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gossip_keyring k, again;
    char message[160];
    memset(&k, 0x5a, sizeof k);
    memset(message, 0x5a, sizeof message);
    int err = gossip_keyring_parse(&k, slice_of((const char *)data, size), message);
    if (err != ERR_OK) {
        CHECK(err == ERR_SYNTAX && k.count == 0x5a5a5a5a);
        CHECK(strnlen(message, sizeof message) < sizeof message && message[0] != '\0');
        return 0;
    }
    CHECK(k.count >= 1 && k.count <= GOSSIP_KEYS_MAX);
    CHECK(gossip_keyring_parse(&again, slice_of((const char *)data, size), message) == ERR_OK);
    CHECK(memcmp(&k, &again, sizeof k) == 0);
    return 0;
}

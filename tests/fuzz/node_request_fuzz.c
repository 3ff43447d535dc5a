/* Messages between routers other than state: a packed request, which must be equal when packed
 * again, and a member's metadata. */
#include "base/check.h"
#include "base/err.h"
#include "node/cluster/replication_internal.h"
#include "node/route/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct node_request_copy first, second;
    struct slice bytes = slice_of((const char *)data, size);
    struct node_peer peer = {0};
    DISCARD(node_meta_read(&peer, bytes));
    CHECK(memchr(peer.admin, 0, sizeof peer.admin) && memchr(peer.version, 0, sizeof peer.version));
    if (node_request_unpack(&first, bytes) != ERR_OK)
        return 0;
    struct buf packed = {0};
    CHECK(node_request_pack(&first.request, &packed) == ERR_OK);
    CHECK(node_request_unpack(&second, buf_slice(&packed)) == ERR_OK);
    CHECK(slice_equal(first.request.model, second.request.model));
    CHECK(slice_equal(first.request.lora, second.request.lora));
    CHECK((first.request.chain == NULL) == (second.request.chain == NULL));
    if (first.request.chain) {
        CHECK(first.chain.length == second.chain.length && first.chain.bytes == second.chain.bytes);
        for (unsigned i = 0; i < first.chain.length; i++)
            CHECK(first.chain.points[i].id == second.chain.points[i].id &&
                  first.chain.points[i].blocks == second.chain.points[i].blocks &&
                  first.chain.points[i].media == second.chain.points[i].media);
    }
    buf_free(&packed);
    return 0;
}

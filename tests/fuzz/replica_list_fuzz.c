/* Files of replicas: discovery also takes each accepted list, and each refused file has a line
 * number. */
#include "node/io/replica_list.h"

#include "base/check.h"
#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct replica_list list;
    char message[REPLICA_LIST_MESSAGE];
    int err = replica_list_parse(slice_of((const char *)data, size), &list, message);
    CHECK(err == ERR_OK || (message[0] != '\0' && list.count == 0));
    for (unsigned i = 0; i < list.count; i++) {
        const struct discover_entry *e = &list.entries[i];
        struct node_address address;
        CHECK(e->name.len > 0 && e->name.len <= NODE_NAME_MAX);
        CHECK(node_address_parse_replica(e->name, &address) == ERR_OK && address.port != 0);
        CHECK(e->labels.model.len <= NODE_MODEL_ID_MAX);
        double weight = node_labels_weight(&e->labels);
        CHECK(weight >= NODE_WEIGHT_MIN && weight <= NODE_WEIGHT_MAX);
    }
    replica_list_free(&list);
    return 0;
}

/* A routing request as bytes, which another router explains (request.h). */
#include "node/route/request.h"

#include "tests/lib/test.h"
#include "tests/lib/world/use.h"

static void requests_survive_the_wire(void **state)
{
    (void)state;
    struct chain chain;
    world_prompt(&chain, 3, 100000);
    chain.token_ids = true;
    chain.content = (struct chain_content){.letters = 100001,
                                           .spaces = 100002,
                                           .digits = 100003,
                                           .marks = 100004,
                                           .wide = 100005,
                                           .leads = 100006,
                                           .media = {1007, 1008, 1009},
                                           .sized = 1010,
                                           .kilopixels = 100011};
    chain.points[chain.length - 1].media = 1012;
    struct node_request request = {.model = SLICE("model"),
                                   .lora = SLICE("adapter"),
                                   .session = SLICE("s"),
                                   .chain = &chain,
                                   .body_bytes = 123456,
                                   .output_tokens_max = 77,
                                   .replica_wanted = 3,
                                   .answer_whole = true,
                                   .kind = 43,
                                   .again = true};
    struct buf packed = {0};
    assert_int_equal(node_request_pack(&request, &packed), 0);
    static struct node_request_copy copy;
    assert_int_equal(node_request_unpack(&copy, buf_slice(&packed)), 0);
    assert_slice_equal(copy.request.model, "model");
    assert_slice_equal(copy.request.lora, "adapter");
    assert_slice_equal(copy.request.session, "s");
    assert_int_equal(copy.request.body_bytes, 123456);
    assert_int_equal(copy.request.output_tokens_max, 77);
    assert_int_equal(copy.request.replica_wanted, -1); /* an index means nothing elsewhere */
    assert_true(copy.request.answer_whole && copy.chain.token_ids);
    assert_true(copy.request.kind == 43 && copy.request.again);
    assert_int_equal(copy.chain.length, chain.length);
    for (unsigned i = 0; i < chain.length; i++)
        assert_true(copy.chain.points[i].id == chain.points[i].id &&
                    copy.chain.points[i].blocks == chain.points[i].blocks &&
                    copy.chain.points[i].code == chain.points[i].code &&
                    copy.chain.points[i].media == chain.points[i].media);
    assert_memory_equal(&copy.chain.content, &chain.content, sizeof chain.content);
    /* Requests of older builds have no kind, no adapter, or no content either: the fields are
     * cleared, not left over. */
    packed.len -= 2;
    assert_int_equal(node_request_unpack(&copy, buf_slice(&packed)), ERR_OK);
    assert_slice_equal(copy.request.lora, "adapter");
    assert_true(copy.request.kind == 0 && !copy.request.again);
    size_t adapter = 1 + request.lora.len, content = 7 * 3 + 4 * 2 + chain.length + 1;
    size_t oldest = packed.len - adapter - content;
    assert_int_equal(node_request_unpack(&copy, slice_of(packed.at, packed.len - adapter)), ERR_OK);
    assert_memory_equal(&copy.chain.content, &chain.content, sizeof chain.content);
    assert_int_equal(copy.request.lora.len, 0);
    for (size_t len = 0; len < oldest; len++)
        assert_int_equal(node_request_unpack(&copy, slice_of(packed.at, len)), ERR_SYNTAX);
    assert_int_equal(node_request_unpack(&copy, slice_of(packed.at, oldest)), ERR_OK);
    assert_int_equal(copy.chain.content.letters + copy.chain.content.kilopixels, 0);
    assert_int_equal(copy.chain.points[chain.length - 1].media, 0);
    assert_int_equal(copy.request.lora.len, 0);
    buf_free(&packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_survive_the_wire),
    };
    return cmocka_run_group_tests_name("route/request", tests, NULL, NULL);
}

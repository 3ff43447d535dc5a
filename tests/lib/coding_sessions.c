#include "tests/lib/coding_sessions.h"

#include <dirent.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"

/* Ids below this are common to all sessions: the block's position in the prompt. */
enum { COMMON_BLOCKS = 1 << 16 };

struct loading {
    uint32_t prompt_tokens_max;
    uint32_t next_block; /* first id of the next session */
    uint32_t common_blocks;
    uint32_t local_max; /* highest local id of this session */
};

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : 0;
}

static void *grow(void *at, size_t count, size_t size)
{
    /* The array doubles at powers of two. */
    if (count & (count - 1))
        return at;
    void *grown = realloc(at, (count ? count * 2 : 1) * size);
    CHECK(grown != NULL);
    return grown;
}

static void request_add(struct session *s, const json_t *json, struct loading *l)
{
    const json_t *ids = json_object_get(json, "hash_ids");
    uint32_t tokens = (uint32_t)number(json, "in");
    size_t count = json_array_size(ids);
    if (count == 0 || (l->prompt_tokens_max > 0 && tokens > l->prompt_tokens_max))
        return;
    if (count > tokens / SESSION_BLOCK_TOKENS)
        count = tokens / SESSION_BLOCK_TOKENS;
    uint32_t *blocks = malloc((count ? count : 1) * sizeof *blocks);
    CHECK(blocks != NULL);
    for (size_t i = 0; i < count; i++) {
        uint32_t local = (uint32_t)json_integer_value(json_array_get(ids, i));
        if (local > l->local_max)
            l->local_max = local;
        blocks[i] = i < l->common_blocks ? (uint32_t)i : l->next_block + local;
    }
    s->requests = grow(s->requests, s->count, sizeof *s->requests);
    s->requests[s->count++] = (struct session_request){
        .think_s = number(json, "think_time"),
        .prompt_tokens = tokens,
        .output_tokens = (uint32_t)number(json, "out"),
        .block_count = (uint32_t)count,
        .blocks = blocks,
    };
}

/* Adds requests; a subagent's requests come where the subagent was started. */
static void requests_add(struct session *s, const json_t *array, struct loading *l)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *json = json_array_get(array, i);
        const json_t *inner = json_object_get(json, "requests");
        if (inner)
            requests_add(s, inner, l);
        else
            request_add(s, json, l);
    }
}

static bool session_load(struct session *s, const char *path, struct loading *l)
{
    json_t *root = json_load_file(path, 0, NULL);
    if (!root)
        return false;
    *s = (struct session){0};
    const char *id = json_string_value(json_object_get(root, "id"));
    (void)snprintf(s->id, sizeof s->id, "%.63s", id ? id : path);
    l->local_max = 0;
    l->common_blocks = (uint32_t)(number(root, "tool_tokens") + number(root, "system_tokens")) / 2 /
                       SESSION_BLOCK_TOKENS;
    CHECK(l->common_blocks < COMMON_BLOCKS);
    requests_add(s, json_object_get(root, "requests"), l);
    l->next_block += l->local_max + 1;
    json_decref(root);
    return s->count > 0;
}

static int is_session(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return len > 5 && strcmp(entry->d_name + len - 5, ".json") == 0;
}

int coding_sessions_load(struct coding_sessions *out, const char *directory, unsigned files_max,
                         uint32_t prompt_tokens_max)
{
    struct dirent **entries;
    int found = scandir(directory, &entries, is_session, alphasort);
    if (found < 0)
        return ERR_NOT_FOUND;
    *out = (struct coding_sessions){0};
    struct loading l = {.prompt_tokens_max = prompt_tokens_max, .next_block = COMMON_BLOCKS};
    for (int i = 0; i < found; i++) {
        char path[4096];
        int len = snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name);
        free(entries[i]);
        if ((files_max > 0 && out->count >= files_max) || len >= (int)sizeof path)
            continue;
        struct session s;
        if (!session_load(&s, path, &l))
            continue;
        out->sessions = grow(out->sessions, out->count, sizeof *out->sessions);
        out->sessions[out->count++] = s;
    }
    free(entries);
    return out->count > 0 ? ERR_OK : ERR_NOT_FOUND;
}

void coding_sessions_free(struct coding_sessions *s)
{
    for (unsigned i = 0; i < s->count; i++) {
        for (unsigned j = 0; j < s->sessions[i].count; j++)
            free(s->sessions[i].requests[j].blocks);
        free(s->sessions[i].requests);
    }
    free(s->sessions);
}

/* KV-cache events of one rank, as engines publish them: what its cache stored and removed, as the
 * payload of one message, in the form of a release. Pure.
 *
 * Arrays grew with each release of vLLM until they became maps in 0.24. SGLang's are arrays of one
 * page each up to 0.5.14, then maps of many. Both have hashes as numbers, SGLang and vLLM 0.9
 * signed ones; vLLM has them as bytes where it is set up so.
 */
#ifndef TESTS_ENGINE_SIM_KV_EVENTS_H
#define TESTS_ENGINE_SIM_KV_EVENTS_H

#include <stdbool.h>

#include "base/buf.h"
#include "tests/engine-sim/model.h"

struct sim_kv_events;

enum sim_kv_of { SIM_KV_NONE, SIM_KV_VLLM, SIM_KV_SGLANG };

/* Whose form that is: "vllm-0.9", "vllm-0.10", "vllm-0.14", "vllm-0.17", "vllm-0.20", "vllm-0.22",
 * "vllm-0.24", "vllm-0.25", "sglang-0.5", "sglang-0.5.15"; or none. */
enum sim_kv_of sim_kv_form(const char *form);
/* Whether messages that are asked for come with their topic. */
bool sim_kv_form_has_topic(const char *form);

/* NULL: it is none of these. */
struct sim_kv_events *sim_kv_events_create(const char *form, unsigned rank, bool bytes);
void sim_kv_events_destroy(struct sim_kv_events *k);

/* As a hybrid model of so many groups of layers: each stores and removes what the first one does.
 * The first has full attention, the others a window. Of forms that name groups. */
void sim_kv_events_groups(struct sim_kv_events *k, unsigned groups);

/* For sim_model_watch(). */
const struct sim_model_watch *sim_kv_events_watch(const struct sim_kv_events *k);

/* Appends a batch of what happened since the last one. False: nothing did. */
bool sim_kv_events_take(struct sim_kv_events *k, double unix_s, struct buf *payload);

/* What was not taken yet is forgotten. */
void sim_kv_events_forget(struct sim_kv_events *k);
/* What happens from now on is no event, or is again. */
void sim_kv_events_mute(struct sim_kv_events *k, bool mute);

#endif

/* A rank's KV-cache events, as engines publish them: the stores and removals of the rank's cache,
 * as a message's payload, in the form of a release. Pure.
 *
 * Arrays grew with each release of vLLM until maps replaced them in 0.24. SGLang has arrays of a
 * single page each up to 0.5.14, then maps of many pages. Both have hashes as numbers, signed in
 * SGLang and vLLM 0.9; in vLLM a setting makes them bytes. */
#ifndef TESTS_ENGINE_SIM_KV_EVENTS_H
#define TESTS_ENGINE_SIM_KV_EVENTS_H

#include <stdbool.h>

#include "base/buf.h"
#include "tests/engine-sim/model.h"

struct sim_kv_events;

enum sim_kv_of { SIM_KV_NONE, SIM_KV_VLLM, SIM_KV_SGLANG };

/* The form's engine: "vllm-0.9", "vllm-0.10", "vllm-0.14", "vllm-0.17", "vllm-0.20", "vllm-0.22",
 * "vllm-0.24", "vllm-0.25", "sglang-0.5", "sglang-0.5.15"; or none. */
enum sim_kv_of sim_kv_form(const char *form);
/* True if replayed messages have a topic. */
bool sim_kv_form_has_topic(const char *form);

/* NULL: unknown form. */
struct sim_kv_events *sim_kv_events_create(const char *form, unsigned rank, bool bytes);
void sim_kv_events_destroy(struct sim_kv_events *k);

/* Publishes like a hybrid model with this number of groups of layers: each group stores and removes
 * the same blocks as the first. The first has full attention, the others a window. Only for forms
 * with groups. */
void sim_kv_events_groups(struct sim_kv_events *k, unsigned groups);

/* For sim_model_watch(). */
const struct sim_model_watch *sim_kv_events_watch(const struct sim_kv_events *k);

/* Appends a batch of the events since the last batch. False: there are none. */
bool sim_kv_events_take(struct sim_kv_events *k, double unix_s, struct buf *payload);

/* Forgets events not taken yet. */
void sim_kv_events_forget(struct sim_kv_events *k);
/* Stops or resumes the recording of events. */
void sim_kv_events_mute(struct sim_kv_events *k, bool mute);

#endif

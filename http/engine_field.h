/* Fields of a request by which engines, and what coordinates them, speak among themselves: from
 * which host to fetch KV blocks, which blocks, under which name. One table has them all, with the
 * source of each (engine_field.c). To a client that may send a prompt they would give connections
 * to hosts that it names, and blocks of other clients (docs/threat-model.md).
 *
 * Not among them: ranks, priorities, session names and cache salts, which have rules of their own.
 */
#ifndef HTTP_ENGINE_FIELD_H
#define HTTP_ENGINE_FIELD_H

#include "base/body.h"
#include "base/slice.h"

/* A member of a JSON body, of its sampling_params, or of what is handed on as extra arguments: its
 * name, or that of the family that it belongs to ("bootstrap_*"). NULL: it is none. */
const char *http_engine_field_find(struct slice name);

/* The name of a header field, in lower case and with '-' (http_field_family()). */
bool http_engine_header_is(struct slice name);

/* The text before an engine's address in a request id ("___prefill_addr_"); NULL: it has none. */
const char *http_engine_id_find(struct slice id);

/* Of a body that the skimmer could not read: a name of the table that a more lenient reader may
 * find there, or a text of request ids, or "engine fields" where its encoding may hide one (UTF-16
 * and UTF-32 objects; letters as \u00XX, which nobody writes so otherwise). NULL: no reader can
 * find any. */
const char *http_engine_field_suspect(const struct body *body);

#endif

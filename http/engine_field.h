/* Request fields that engines and their coordinators use among themselves: for example the host to
 * fetch KV blocks from, and the blocks' ids. A table lists the fields and their sources
 * (engine_field.c). With these fields, a client with permission to send prompts could open
 * connections to any host, and read other clients' blocks (docs/threat-model.md).
 *
 * Not in the table: ranks, priorities, session names and cache salts, which have separate rules.
 */
#ifndef HTTP_ENGINE_FIELD_H
#define HTTP_ENGINE_FIELD_H

#include "base/body.h"
#include "base/slice.h"

/* Looks up a member of a JSON body, of the sampling_params, or of the extra arguments. Returns the
 * member's name, or the family's name ("bootstrap_*"). NULL: not in the table. */
const char *http_engine_field_find(struct slice name);

/* True if a header field with this name is in the table. `name` is in lower case and has '-' for
 * '_', as http_field_family() writes names. */
bool http_engine_header_is(struct slice name);

/* The text before an engine's address in a request id ("___prefill_addr_"); NULL: the id has
 * none. */
const char *http_engine_id_find(struct slice id);

/* Searches a body that the skimmer could not read for whatever a more lenient reader may find.
 * Returns an engine field's name, or a text as from http_engine_id_find(). Returns "engine fields"
 * if the encoding may hide a field: UTF-16, UTF-32, or letters as \u00XX, which no ordinary client
 * writes. NULL: no reader can find any. */
const char *http_engine_field_suspect(const struct body *body);

#endif

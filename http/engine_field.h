/* Request fields that engines and their coordinators use among themselves: for example the host to
 * fetch KV blocks from, and the blocks' ids. One table lists them with their sources
 * (engine_field.c). A client that may send a prompt could use them to open connections to hosts of
 * its choice, and to read other clients' blocks (docs/threat-model.md).
 *
 * Not in the table: ranks, priorities, session names and cache salts, which have rules of their
 * own.
 */
#ifndef HTTP_ENGINE_FIELD_H
#define HTTP_ENGINE_FIELD_H

#include "base/body.h"
#include "base/slice.h"

/* Looks up a member of a JSON body, of its sampling_params, or of its extra arguments. Returns the
 * member's name, or the name of its family ("bootstrap_*"). NULL: not in the table. */
const char *http_engine_field_find(struct slice name);

/* The name of a header field, in lower case and with '-' (http_field_family()). */
bool http_engine_header_is(struct slice name);

/* The text before an engine's address in a request id ("___prefill_addr_"); NULL: the id has
 * none. */
const char *http_engine_id_find(struct slice id);

/* For a body that the skimmer could not read. Returns an engine field's name, or such a text of
 * request ids, that a more lenient reader may find in the body. Returns "engine fields" if the
 * encoding may hide one: UTF-16, UTF-32, or letters as \u00XX, which no ordinary client writes.
 * NULL: no reader can find any. */
const char *http_engine_field_suspect(const struct body *body);

#endif

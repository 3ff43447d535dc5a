/* Checks of values beyond the type of the setting, for the table (table.c). */
#ifndef NODE_SETTINGS_ALLOWED_H
#define NODE_SETTINGS_ALLOWED_H

#include "base/slice.h"

/* Return NULL, or the error with a correct form. */
const char *node_allowed_header_names_not(struct slice value);
const char *node_allowed_origins_not(struct slice value);
const char *node_allowed_replica_dns_not(struct slice value);
const char *node_allowed_replica_kubernetes_not(struct slice value);
const char *node_allowed_dns_server_not(struct slice value);
const char *node_allowed_net_not(struct slice value);
const char *node_allowed_path_not(struct slice value);
const char *node_allowed_address_not(struct slice value);
const char *node_allowed_events_listen_not(struct slice value);
const char *node_allowed_advertise_not(struct slice value);
const char *node_allowed_admin_advertise_not(struct slice value);
const char *node_allowed_join_not(struct slice value);
const char *node_allowed_node_name_not(struct slice value);
const char *node_allowed_statuses_not(struct slice value);
const char *node_allowed_tls_name_not(struct slice value);
const char *node_allowed_trace_endpoint_not(struct slice value);

#endif

/* What values a setting may have, where its type does not say so. Used by the table (table.c). */
#ifndef NODE_SETTINGS_ALLOWED_H
#define NODE_SETTINGS_ALLOWED_H

#include "base/slice.h"

/* Names to choose from, NULL-terminated. */
const char *const *node_allowed_paths(void);
const char *const *node_allowed_control_paths(void);
const char *const *node_allowed_when_all_down(void);
const char *const *node_allowed_log_level(void);
const char *const *node_allowed_log_format(void);
const char *const *node_allowed_access_log(void);
const char *const *node_allowed_forwarded(void);
const char *const *node_allowed_host_header(void);
const char *const *node_allowed_half_close(void);

/* NULL, or what is wrong with the value and would be right. */
const char *node_allowed_header_names_not(struct slice value);
const char *node_allowed_origins_not(struct slice value);
const char *node_allowed_replica_dns_not(struct slice value);
const char *node_allowed_replica_kubernetes_not(struct slice value);
const char *node_allowed_dns_server_not(struct slice value);
const char *node_allowed_net_not(struct slice value);
const char *node_allowed_path_not(struct slice value);
const char *node_allowed_address_not(struct slice value);
const char *node_allowed_advertise_not(struct slice value);
const char *node_allowed_admin_advertise_not(struct slice value);
const char *node_allowed_join_not(struct slice value);
const char *node_allowed_node_name_not(struct slice value);
const char *node_allowed_health_path_not(struct slice value);
const char *node_allowed_statuses_not(struct slice value);
const char *node_allowed_tls_name_not(struct slice value);

#endif

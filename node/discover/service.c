/* Parses a Kubernetes service as written in the setting. */
#include "node/discover/kubernetes.h"

static bool is_lower(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* True for a name of a namespace, service or port: lower case, digits and inner hyphens (RFC
 * 1123). */
static bool is_label(struct slice name, size_t max)
{
    if (name.len == 0 || name.len > max || !is_lower(name.at[0]) ||
        !is_lower(name.at[name.len - 1]))
        return false;
    for (size_t i = 0; i < name.len; i++) {
        if (!is_lower(name.at[i]) && name.at[i] != '-')
            return false;
    }
    return true;
}

static bool is_port(struct slice port)
{
    uint64_t number;
    int err = slice_to_u64(port, &number);
    return err == 0 ? number > 0 && number <= UINT16_MAX
                    : err == ERR_SYNTAX && is_label(port, DISCOVER_PORT_NAME_MAX);
}

const char *discover_service_parse(struct slice text, struct discover_service *out)
{
    static const char want[] =
        "want NAMESPACE/SERVICE, NAMESPACE/SERVICE:PORT or SERVICE, such as inference/vllm:8000";
    struct discover_service parsed = {.port = ""};
    struct slice labels = text;
    struct slice rest = slice_cut(&labels, '#');
    const char *wrong = NULL;
    if (rest.len < text.len)
        wrong = node_labels_parse(labels, &parsed.labels);
    if (wrong != NULL)
        return wrong;
    parsed.tls = slice_starts_with(rest, SLICE("https://"));
    if (parsed.tls)
        rest = slice_skip(rest, strlen("https://"));
    if (slice_find(rest, '/') < rest.len) {
        struct slice name = slice_cut(&rest, '/');
        if (name.len > 0 && !is_label(name, DISCOVER_NAMESPACE_MAX))
            return want;
        (void)slice_to_cstr(name, parsed.namespace, sizeof parsed.namespace);
    }
    bool has_port = slice_find(rest, ':') < rest.len;
    struct slice name = slice_cut(&rest, ':');
    if (!is_label(name, DISCOVER_SERVICE_MAX) || (has_port && !is_port(rest)))
        return want;
    (void)slice_to_cstr(name, parsed.name, sizeof parsed.name);
    (void)slice_to_cstr(rest, parsed.port, sizeof parsed.port);
    *out = parsed;
    return NULL;
}

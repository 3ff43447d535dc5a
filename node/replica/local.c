#include "node/replica/local.h"

#include <string.h>

#include "base/ip.h"
#include "node/replica/rank.h"

static struct slice host_of(struct slice address)
{
    if (slice_starts_with(address, SLICE("https://")))
        address = slice_skip(address, strlen("https://"));
    if (slice_starts_with(address, SLICE("["))) {
        address = slice_skip(address, 1);
        return slice_of(address.at, slice_find(address, ']'));
    }
    return slice_of(address.at, slice_find(address, ':'));
}

static bool ip_is_local(const uint8_t ip[IP_BYTES])
{
    static const uint8_t zero[IP_BYTES - 1];
    if (ip_is_v4(ip))
        return ip[12] == 127 || (ip[12] == 169 && ip[13] == 254) ||
               memcmp(ip + 12, zero, IP_BYTES - 12) == 0;
    return (memcmp(ip, zero, IP_BYTES - 1) == 0 && ip[IP_BYTES - 1] <= 1) || /* :: and ::1 */
           (ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80);
}

static bool host_is_local(struct slice host)
{
    char text[NODE_NAME_MAX + 1];
    uint8_t ip[IP_BYTES];
    if (slice_ends_with(host, SLICE(".")))
        host.len--;
    if (slice_equal_nocase(host, SLICE("localhost")))
        return true;
    return slice_to_cstr(host, text, sizeof text) && ip_parse(text, ip) && ip_is_local(ip);
}

bool node_local_name_parse(struct slice name, struct node_local_name *out)
{
    struct node_rank_name rank;
    out->is_rank = node_rank_name_parse(name, &rank);
    out->whole = name = out->is_rank ? rank.address : name;
    out->address = slice_cut(&name, '@');
    out->owner = name;
    return host_is_local(host_of(out->address));
}

bool node_local_owner_good(struct slice owner)
{
    for (size_t i = 0; i < owner.len; i++)
        if (owner.at[i] <= ' ' || owner.at[i] >= 0x7f)
            return false;
    return owner.len > 0;
}

struct slice node_local_name_write(struct slice address, struct slice owner, char *out)
{
    bool dot = node_rank_name_meant(owner) || slice_find(owner, '@') < owner.len;
    uint64_t number;
    dot = dot || slice_to_u64(owner, &number) == 0;
    size_t len = address.len + 1 + owner.len + dot;
    if (len > NODE_NAME_MAX)
        return slice_of("", 0);
    memcpy(out, address.at, address.len);
    out[address.len] = '@';
    memcpy(out + address.len + 1, owner.at, owner.len);
    if (dot)
        out[len - 1] = '.';
    return slice_of(out, len);
}

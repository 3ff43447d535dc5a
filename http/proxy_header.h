/* The PROXY protocol (HAProxy, doc/proxy-protocol.txt, versions 1 and 2). A load balancer puts a
 * header with the client's address in front of each connection's bytes. */
#ifndef HTTP_PROXY_HEADER_H
#define HTTP_PROXY_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/ip.h"
#include "base/slice.h"

struct http_proxy_header {
    size_t bytes;         /* bytes of the header, after which the client's bytes follow */
    bool local;           /* the connection is the balancer's own: a health check */
    bool known;           /* the header gives the client's address */
    uint8_t ip[IP_BYTES]; /* the client's address, as in base/ip.h */
};

/* Reads the header at the front of `in`. ERR_AGAIN: more is needed. ERR_SYNTAX: no header, a
 * malformed header, or a header of more than HTTP_PROXY_HEADER_V1_MAX or HTTP_PROXY_HEADER_V2_MAX
 * bytes. Fields behind the addresses of version 2 (TLVs) are skipped. */
MUST_USE int http_proxy_header_parse(struct slice in, struct http_proxy_header *out);

#endif

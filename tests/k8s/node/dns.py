"""Cluster DNS for one node: NAME.NAMESPACE.svc.cluster.local, from the API server. Headless services have the addresses
of their endpoints, as CoreDNS answers them; what else is asked is not there.

    python3 dns.py ADDRESS
"""

import json
import os
import socket
import ssl
import struct
import sys
import urllib.error
import urllib.request

TTL = 5
context = ssl.create_default_context(cafile=os.environ["CA"])


def get(path):
    request = urllib.request.Request(os.environ["SERVER"] + path, headers={"Authorization": "Bearer admin"})
    with urllib.request.urlopen(request, context=context, timeout=5) as answer:
        return json.loads(answer.read())


def addresses(name):
    """None: there is no such name."""
    labels = name.lower().rstrip(".").split(".")
    if labels[2:] != ["svc", "cluster", "local"]:
        return None
    try:
        service = get("/api/v1/namespaces/%s/services/%s" % (labels[1], labels[0]))["spec"]
        if service.get("clusterIP") != "None":
            return [service["clusterIP"]]
        slices = get("/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices?labelSelector=kubernetes.io/service-name%%3D%s"
                     % (labels[1], labels[0]))["items"]
    except urllib.error.HTTPError:
        return None
    all_of_them = service.get("publishNotReadyAddresses", False)
    return sorted({a for s in slices for e in s.get("endpoints") or [] for a in e["addresses"]
                   if all_of_them or e["conditions"].get("ready") is not False})


def answer(query):
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode())
        at += 1 + query[at]
    question = query[12:at + 5]
    kind = struct.unpack(">H", query[at + 1:at + 3])[0]
    found = addresses(".".join(labels))
    records = [b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, TTL, 4) + socket.inet_aton(a) for a in found or []]
    if kind != 1:
        records = []
    flags = 0x8180 | (3 if found is None else 0)
    return query[:2] + struct.pack(">HHHHH", flags, 1, len(records), 0, 0) + question + b"".join(records)


if __name__ == "__main__":
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((sys.argv[1], 53))
    while True:
        query, peer = s.recvfrom(4096)
        try:
            s.sendto(answer(query), peer)
        except (OSError, IndexError, ValueError) as error:
            print("dns:", error, file=sys.stderr, flush=True)

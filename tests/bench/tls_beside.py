#!/usr/bin/env python3
"""One request at a time on one TLS connection: how long each takes, as JSON.

usage: tls_beside.py PORT REQUESTS
"""
import http.client
import json
import ssl
import sys
import time

context = ssl._create_unverified_context()
context.set_alpn_protocols(["http/1.1"])
c = http.client.HTTPSConnection("127.0.0.1", int(sys.argv[1]), context=context)
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 900}]})
took = []
for _ in range(int(sys.argv[2])):
    began = time.perf_counter()
    c.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    c.getresponse().read()
    took.append(time.perf_counter() - began)
took.sort()
print(json.dumps({"p50_us": 1e6 * took[len(took) // 2], "p99_us": 1e6 * took[len(took) * 99 // 100],
                  "max_us": 1e6 * took[-1]}))

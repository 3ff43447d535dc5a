"""Rest: clients pause, requests end, routers agree. What is read then must be the same everywhere."""

import concurrent.futures
import time

EVERY_S = 0.05
ANSWER_S = 3.0


def json_of(router, path, kind=dict):
    try:
        status, body = router.admin("GET", path, timeout=ANSWER_S)
    except OSError as e:
        return None, "%s does not answer: %s" % (router.name, e)
    if status != 200 or not isinstance(body, kind):
        return None, "%s answers %s with %s" % (router.name, path, status)
    return body, None


def why_not_calm_at(router, routers, engines):
    """A value of this router that differs from its value at rest; None: none."""
    body, why = json_of(router, "/members")
    if why:
        return why
    met = {m["name"] for m in body["members"] if m["state"] == "alive" and (m["self"] or m["session"])}
    if met != {r.name for r in routers}:
        return "%s has met %s" % (router.name, ", ".join(sorted(met)))
    body, why = json_of(router, "/queue")
    if why:
        return why
    if body["requests_in_flight"] + body["queue_length"] > 0:
        return "%s has %d requests under way" % (router.name, body["requests_in_flight"] + body["queue_length"])
    body, why = json_of(router, "/replicas", list)
    if why:
        return why
    unused = {"%s:%d" % (e.address, e.port): "not there" for e in engines}
    for r in body:
        if r["health"] == "up" and not r["avoided"]:
            unused.pop(r["name"], None)
        elif r["name"] in unused:
            unused[r["name"]] = r.get("why") or r["health"]
    if unused:
        return "%s does not use %s" % (router.name, ", ".join("%s (%s)" % u for u in sorted(unused.items())))
    body, why = json_of(router, "/convergence")
    if why:
        return why
    return None if body.get("equal") else "%s: %s differ" % (router.name, ", ".join(body.get("differ", [])) or "states")


def why_not_calm(service, pool):
    ended = [p.name for p in service.processes if not p.alive]
    if ended:
        return "not running: %s" % ", ".join(ended)
    if service.options.command:
        return next((w for w in list(pool.map(lambda r: r.why_not_calm(), service.routers)) if w), None)
    whys = pool.map(lambda r: why_not_calm_at(r, service.routers, service.engines), service.routers)
    return next((w for w in list(whys) if w), None)


def wait_calm(service, seconds):
    """(calm or not, seconds that took, the difference)"""
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(len(service.routers)) as pool:
        while True:
            why = why_not_calm(service, pool)
            waited = time.monotonic() - began
            if why is None or waited > seconds:
                return why is None, waited, why or ""
            time.sleep(EVERY_S)

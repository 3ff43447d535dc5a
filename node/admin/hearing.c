#include "node/admin/hearing.h"

#include <stdio.h>
#include <string.h>

static bool is_alive(const struct node_member_look *m)
{
    return m->self || m->state == GOSSIP_ALIVE || m->state == GOSSIP_SUSPECT;
}

bool admin_hearing_is_judged(const struct node_member_look *m)
{
    return is_alive(m) && !m->draining && m->up_ms >= HEARING_YOUNG_MS;
}

static void judge(struct admin_hearing_view *view, const struct node_replication *n,
                  uint64_t now_us)
{
    unsigned lives = 0;
    memset(view->judged, 0, sizeof view->judged);
    for (unsigned i = 0; i < node_replication_look_count(n); i++) {
        struct node_member_look m;
        node_replication_look(n, i, now_us, &m);
        lives += is_alive(&m);
        for (unsigned k = 0; k < view->hears.count; k++) {
            if (strcmp(view->hears.names[k], m.name) == 0)
                view->judged[k] |= admin_hearing_is_judged(&m);
        }
    }
    view->heard_ms =
        lives * HEARING_ROUTER_MS > HEARING_LEAST_MS ? lives * HEARING_ROUTER_MS : HEARING_LEAST_MS;
}

static bool heard(const struct admin_hearing_view *view, unsigned a, unsigned b)
{
    return view->hears.ms[a][b] < view->heard_ms;
}

/* True if router `a` does not hear the router `silent`, which gave no answer and yet lives, because
 * a third router hears it. A router killed just now was heard lately by all, so the silence must
 * last twice as long as usual. */
static bool is_cut_off(const struct admin_hearing_view *view, unsigned a, unsigned silent)
{
    bool lives = false;
    for (unsigned k = 0; k < view->hears.count; k++)
        lives |= k != a && view->hears.answered[k] && heard(view, k, silent);
    uint32_t ms = view->hears.ms[a][silent];
    return lives && ms != NODE_HEARS_UNKNOWN && ms >= 2 * view->heard_ms;
}

enum link { LINK_GOOD, LINK_CUT, LINK_DEAF };

/* Judges how router a hears router b. LINK_DEAF: b hears a, but a does not hear b. LINK_CUT:
 * neither hears the other. */
static enum link link_of(const struct admin_hearing_view *view, unsigned a, unsigned b)
{
    const struct node_hears *h = &view->hears;
    if (a == b || !view->judged[a] || !view->judged[b] || !h->answered[a] ||
        h->ms[a][b] == NODE_HEARS_UNKNOWN || heard(view, a, b))
        return LINK_GOOD;
    if (!h->answered[b])
        return is_cut_off(view, a, b) ? LINK_CUT : LINK_GOOD;
    if (h->ms[b][a] == NODE_HEARS_UNKNOWN)
        return LINK_GOOD;
    return heard(view, b, a) ? LINK_DEAF : LINK_CUT;
}

/* Returns a new line; NULL: there are HEARING_NAMED_MAX of this kind already, so the last line
 * counts this pair. */
static struct admin_hearing_line *line_of(struct admin_hearing *h, enum admin_attention_kind kind,
                                          unsigned *named)
{
    if (*named == HEARING_NAMED_MAX) {
        h->lines[h->count - 1].more++;
        return NULL;
    }
    (*named)++;
    struct admin_hearing_line *line = &h->lines[h->count++];
    *line = (struct admin_hearing_line){.kind = kind};
    return line;
}

static void find_cuts(const struct admin_hearing_view *view, struct admin_hearing *h)
{
    unsigned named = 0;
    for (unsigned a = 0; a < view->hears.count; a++) {
        for (unsigned b = a + 1; b < view->hears.count; b++) {
            if (link_of(view, a, b) != LINK_CUT && link_of(view, b, a) != LINK_CUT)
                continue;
            struct admin_hearing_line *line = line_of(h, ATTENTION_ROUTERS_CUT, &named);
            if (line != NULL)
                (void)snprintf(line->about, sizeof line->about, "%.40s and %.40s",
                               view->hears.names[a], view->hears.names[b]);
        }
    }
}

static void find_deaf(const struct admin_hearing_view *view, struct admin_hearing *h)
{
    unsigned named = 0;
    for (unsigned a = 0; a < view->hears.count; a++) {
        char whom[ATTENTION_ABOUT_BYTES] = "";
        for (unsigned b = 0; b < view->hears.count; b++) {
            size_t len = strlen(whom);
            if (link_of(view, a, b) == LINK_DEAF)
                (void)snprintf(whom + len, sizeof whom - len, "%s%s", len > 0 ? ", " : "",
                               view->hears.names[b]);
        }
        struct admin_hearing_line *line =
            whom[0] != '\0' ? line_of(h, ATTENTION_ROUTER_DEAF, &named) : NULL;
        if (line == NULL)
            continue;
        (void)snprintf(line->about, sizeof line->about, "%.*s", ATTENTION_ABOUT_BYTES - 1,
                       view->hears.names[a]);
        memcpy(line->text, whom, sizeof whom);
    }
}

void admin_hearing_find(struct admin_hearing *h, const struct admin_hearing_view *view)
{
    h->count = 0;
    find_cuts(view, h);
    find_deaf(view, h);
}

void admin_hearing_take(struct admin_hearing *h, const struct node_replication *n,
                        struct slice nodes, uint64_t now_us, uint64_t now_ms)
{
    struct admin_hearing_view view;
    node_digests_hears(nodes, &view.hears);
    judge(&view, n, now_us);
    h->taken_ms = now_ms;
    admin_hearing_find(h, &view);
}

void admin_hearing_add(const struct admin_hearing *h, uint64_t now_ms,
                       struct admin_attention_list *list)
{
    for (unsigned i = 0; i < h->count && now_ms < h->taken_ms + HEARING_KNOWN_MS; i++) {
        const struct admin_hearing_line *line = &h->lines[i];
        admin_attention_add(list, line->kind,
                            &(struct admin_attention_facts){.about = slice_of_cstr(line->about),
                                                            .text = line->text,
                                                            .n = line->more});
    }
}

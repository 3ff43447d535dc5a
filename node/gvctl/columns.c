#include "node/gvctl/columns.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "node/gvctl/fields.h"

unsigned columns_of_terminal(void)
{
    struct winsize size;
    if (isatty(STDOUT_FILENO) == 0)
        return 0;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < COLUMNS_LEAST)
        return COLUMNS_LEAST;
    return size.ws_col;
}

/* True for the first byte of a UTF-8 character, so that counting these gives the width. */
static bool begins(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

static unsigned width_of(const char *text)
{
    unsigned n = 0;
    for (; *text != '\0'; text++)
        n += begins(*text);
    return n;
}

unsigned columns_cap(unsigned width, unsigned others)
{
    unsigned all = columns_of_terminal();
    unsigned room = all > others + COLUMNS_NAME_LEAST ? all - others : COLUMNS_NAME_LEAST;
    return all == 0 || width <= room ? width : room;
}

unsigned columns_width(const json_t *list, const char *key, unsigned least, unsigned others)
{
    unsigned width = least;
    size_t i;
    const json_t *entry;
    json_array_foreach(list, i, entry)
    {
        unsigned own = width_of(fields_text(entry, key));
        width = own > width ? own : width;
    }
    return columns_cap(width, others);
}

/* Returns the offset after the first `count` characters. */
static size_t bytes_of(const char *text, unsigned count)
{
    size_t at = 0;
    while (text[at] != '\0' && (count > 0 || !begins(text[at])))
        count -= begins(text[at++]) ? 1 : 0;
    return at;
}

const char *columns_fit(const char *text, unsigned width, char out[COLUMNS_TEXT_BYTES])
{
    unsigned own = width_of(text);
    if (own <= width) {
        (void)snprintf(out, COLUMNS_TEXT_BYTES, "%s%*s", text, (int)(width - own), "");
        return out;
    }
    unsigned tail = (width - 1) / 2, head = width - 1 - tail;
    (void)snprintf(out, COLUMNS_TEXT_BYTES, "%.*s\u2026%s", (int)bytes_of(text, head), text,
                   text + bytes_of(text, own - tail));
    return out;
}

void columns_wrap(const char *text, unsigned at)
{
    unsigned all = columns_of_terminal();
    unsigned room = all > at + COLUMNS_NAME_LEAST ? all - at : COLUMNS_NAME_LEAST;
    while (all > 0 && width_of(text) > room) {
        size_t end = bytes_of(text, room), blank = end;
        while (blank > 0 && text[blank] != ' ')
            blank--;
        end = blank > 0 ? blank : end;
        printf("%.*s\n%*s", (int)end, text, (int)at, "");
        text += end + (blank > 0 ? 1 : 0);
    }
    printf("%s", text);
}

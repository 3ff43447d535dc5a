#include "node/gvctl/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "node/gvctl/columns.h"

struct table_line {
    const char *cells[TABLE_COLUMNS_MAX]; /* owned; a note uses only the first */
    const char *colours[TABLE_COLUMNS_MAX];
    unsigned count;
    char mark;
    bool note;
};

void table_init(struct table *t, const struct table_column *columns, size_t count, bool wide)
{
    CHECK(count <= TABLE_COLUMNS_MAX);
    *t = (struct table){.columns = columns, .count = (unsigned)count, .wide = wide};
}

static struct table_line *add_line(struct table *t)
{
    if (t->line_count == t->line_room) {
        t->line_room = t->line_room == 0 ? 16 : 2 * t->line_room;
        t->lines = realloc(t->lines, t->line_room * sizeof *t->lines);
        if (t->lines == NULL)
            abort();
    }
    struct table_line *line = &t->lines[t->line_count++];
    *line = (struct table_line){.mark = ' '};
    return line;
}

void table_row(struct table *t, char mark)
{
    add_line(t)->mark = mark;
    t->marked = t->marked || mark != ' ';
}

static void append(struct table_line *line, const char *format, va_list arguments)
{
    CHECK(line->count < TABLE_COLUMNS_MAX);
    char *text;
    if (vasprintf(&text, format, arguments) < 0)
        abort();
    line->cells[line->count] = text;
    line->colours[line->count++] = "";
}

void table_cell(struct table *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    append(&t->lines[t->line_count - 1], format, arguments);
    va_end(arguments);
}

void table_colour(struct table *t, const char *escape)
{
    struct table_line *line = &t->lines[t->line_count - 1];
    line->colours[line->count - 1] = escape;
}

void table_note(struct table *t, const char *format, ...)
{
    va_list arguments;
    struct table_line *line = add_line(t);
    line->note = true;
    va_start(arguments, format);
    append(line, format, arguments);
    va_end(arguments);
}

/* Counts a UTF-8 text's characters on a terminal. */
static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static bool is_shown(const struct table *t, unsigned column)
{
    return t->wide || (t->columns[column].flags & TABLE_WIDE) == 0;
}

/* Prints a cell after `gap` pending blanks. Returns the blanks still pending after the cell: no
 * line ends with blanks. */
static size_t print_cell(const char *text, const char *colour, size_t width, bool right, size_t gap,
                         FILE *to)
{
    size_t own = width_of(text), pad = width - own;
    if (own == 0)
        return gap + width;
    (void)fprintf(to, "%*s%s%s%s", (int)(gap + (right ? pad : 0)), "", colour, text,
                  colour[0] != '\0' ? "\033[0m" : "");
    return right ? 0 : pad;
}

static void print_line(const struct table *t, const struct table_line *line, const size_t *widths,
                       FILE *to)
{
    size_t gap = 0;
    if (line->note) {
        (void)fprintf(to, "    %s\n", line->cells[0]);
        return;
    }
    if (t->marked)
        (void)fprintf(to, "%c ", line->mark);
    for (unsigned c = 0; c < line->count; c++) {
        if (is_shown(t, c))
            gap = 2 + print_cell(line->cells[c], line->colours[c], widths[c],
                                 (t->columns[c].flags & TABLE_RIGHT) != 0, gap, to);
    }
    (void)fputc('\n', to);
}

static size_t width_of_line(const struct table *t, const size_t *widths)
{
    size_t all = t->marked ? 2 : 0;
    for (unsigned c = 0; c < t->count; c++)
        all += is_shown(t, c) ? widths[c] + 2 : 0;
    return all > 2 ? all - 2 : 0;
}

enum { CUT_LEAST = 10 }; /* characters: both ends of a name, so that replicas fit 80 columns */

/* Narrows columns with TABLE_CUT, the widest first, until a line fits the terminal. */
static void fit_terminal(const struct table *t, size_t *widths)
{
    size_t room = t->wide ? 0 : columns_of_terminal();
    while (room > 0 && width_of_line(t, widths) > room) {
        int widest = -1;
        for (unsigned c = 0; c < t->count; c++) {
            bool may = (t->columns[c].flags & TABLE_CUT) != 0 && widths[c] > CUT_LEAST;
            if (may && (widest < 0 || widths[c] > widths[widest]))
                widest = (int)c;
        }
        if (widest < 0)
            return;
        widths[widest]--;
    }
}

static void print_row(const struct table *t, const struct table_line *line, const size_t *widths,
                      FILE *to)
{
    char cut[TABLE_COLUMNS_MAX][COLUMNS_TEXT_BYTES];
    struct table_line row = *line;
    for (unsigned c = 0; c < row.count && !row.note; c++) {
        if (is_shown(t, c) && width_of(row.cells[c]) > widths[c])
            row.cells[c] = columns_fit(row.cells[c], (unsigned)widths[c], cut[c]);
    }
    print_line(t, &row, widths, to);
}

void table_print(struct table *t, FILE *to)
{
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    struct table_line titles = {.mark = ' ', .count = t->count};
    for (unsigned c = 0; c < t->count; c++) {
        titles.cells[c] = t->columns[c].title;
        titles.colours[c] = "";
        widths[c] = width_of(t->columns[c].title);
        for (size_t i = 0; i < t->line_count; i++) {
            size_t width = t->lines[i].note ? 0 : width_of(t->lines[i].cells[c]);
            widths[c] = width > widths[c] ? width : widths[c];
        }
    }
    fit_terminal(t, widths);
    print_line(t, &titles, widths, to);
    for (size_t i = 0; i < t->line_count; i++) {
        struct table_line *line = &t->lines[i];
        print_row(t, line, widths, to);
        for (unsigned c = 0; c < line->count; c++)
            free((char *)line->cells[c]);
    }
    free(t->lines);
    t->lines = NULL;
    t->line_count = t->line_room = 0;
}

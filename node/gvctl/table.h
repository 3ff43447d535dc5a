/* A table for a terminal, with columns as wide as their contents.
 *
 *     struct table t;
 *     table_init(&t, columns, ARRAY_LEN(columns), how->wide);
 *     for each row: table_row(&t, ' '); table_cell(&t, "%s", name); table_cell(&t, "%.0f", n);
 *     table_print(&t, stdout);        also frees the table
 *
 * A row has a cell for each column, including hidden ones. Out of memory, gvctl aborts. */
#ifndef NODE_GVCTL_TABLE_H
#define NODE_GVCTL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum {
    TABLE_COLUMNS_MAX = 24,
    TABLE_RIGHT = 1, /* right-aligned, for numbers */
    TABLE_CUT = 4, /* cut in the middle if the line does not fit the terminal; not in wide tables */
    TABLE_WIDE = 2, /* only in wide tables */
};

struct table_column {
    const char *title;
    unsigned flags;
};

struct table {
    const struct table_column *columns;
    unsigned count;
    bool wide;
    bool marked; /* some row has a mark before the first column */
    struct table_line *lines;
    size_t line_count, line_room;
};

/* `columns` are borrowed until table_print(). */
void table_init(struct table *t, const struct table_column *columns, size_t count, bool wide);
/* Begins a row; `mark` is printed before the first column ('>', '*'; ' ': none). */
void table_row(struct table *t, char mark);
/* Adds the next cell of the row. */
void table_cell(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets the colour of the last cell: an escape sequence (show_colour()) or "". */
void table_colour(struct table *t, const char *escape);
/* Adds a line of text below the row. */
void table_note(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void table_print(struct table *t, FILE *to);

#endif

/* A table for a terminal: its columns are as wide as what stands in them.
 *
 *     struct table t;
 *     table_init(&t, columns, ARRAY_LEN(columns), how->wide);
 *     for each row: table_row(&t, ' '); table_cell(&t, "%s", name); table_cell(&t, "%.0f", n);
 *     table_print(&t, stdout);        which frees it
 *
 * A row has a cell for each column, those that are not shown too. Memory that is out ends gvctl.
 */
#ifndef NODE_GVCTL_TABLE_H
#define NODE_GVCTL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum {
    TABLE_COLUMNS_MAX = 24,
    TABLE_RIGHT = 1, /* numbers stand below each other */
    TABLE_WIDE = 2,  /* shown in wide tables only */
};

struct table_column {
    const char *title;
    unsigned flags;
};

struct table {
    const struct table_column *columns;
    unsigned count;
    bool wide;
    bool marked; /* some row has a mark before its first column */
    struct table_line *lines;
    size_t line_count, line_room;
};

/* `columns` are borrowed until table_print(). */
void table_init(struct table *t, const struct table_column *columns, size_t count, bool wide);
/* Begins a row; `mark` stands before it ('>', '*'; ' ': none). */
void table_row(struct table *t, char mark);
/* The next cell of the row. */
void table_cell(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The cell just written has this colour, an escape sequence (show_colour()) or "". */
void table_colour(struct table *t, const char *escape);
/* A line of its own below the row. */
void table_note(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void table_print(struct table *t, FILE *to);

#endif

/* The table of admin calls agrees with the documentation pages. */
#include "node/admin/calls.h"
#include "tests/lib/test.h"

#include <stdio.h>

#include "base/buf.h"

static void the_admin_page_documents_every_call(void **state)
{
    (void)state;
    FILE *f = fopen("docs/admin-api.md", "r");
    assert_non_null(f); /* run the test at the top of the checkout */
    static char page[1 << 20];
    size_t len = fread(page, 1, sizeof page - 1, f);
    page[len] = '\0';
    (void)fclose(f);
    for (unsigned i = 0; i < ADMIN_CALL_COUNT; i++) {
        const struct admin_call_row *row = admin_call_row((enum admin_call)i);
        char path[64];
        (void)snprintf(path, sizeof path, "%s%s%s", row->path, row->argument != NULL ? "?" : "`",
                       row->argument != NULL ? row->argument : "");
        /* Calls of the same kind share a row of the page, so the path alone suffices. */
        if (strstr(page, path) == NULL && strstr(page, row->path) == NULL)
            fail_msg("docs/admin-api.md does not name %s %s", row->method, path);
    }
}

static void paths_and_methods_are_listed_once(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ADMIN_CALL_COUNT; i++) {
        const struct admin_call_row *a = admin_call_row((enum admin_call)i);
        assert_true(a->path[0] == '/');
        for (unsigned j = 0; j < i; j++) {
            const struct admin_call_row *b = admin_call_row((enum admin_call)j);
            /* The variant for all routers comes right after the call for a single router. */
            bool variant = j == i - 1 && a->argument != NULL && strcmp(a->argument, "all=1") == 0;
            assert_true(variant || strcmp(a->path, b->path) != 0 ||
                        strcmp(a->method, b->method) != 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_admin_page_documents_every_call),
        cmocka_unit_test(paths_and_methods_are_listed_once),
    };
    return cmocka_run_group_tests_name("calls", tests, NULL, NULL);
}

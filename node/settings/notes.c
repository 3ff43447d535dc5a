/* Notes of all mistakes found while the settings are read. */
#include "base/err.h"
#include "node/settings/options.h"

int node_options_note(const struct node_options *o, const struct node_options_error *error, int err)
{
    struct node_options_notes *notes = o->notes;
    if (err == 0 || err == ERR_NOMEM || notes == NULL)
        return err;
    if (buf_printf(&notes->text, "%s\n", error->text) != 0)
        return ERR_NOMEM;
    if (notes->count++ == 0)
        notes->err = err;
    return 0;
}

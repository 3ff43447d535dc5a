#include "node/admission/refusal.h"

#define ROW(NAME, word, status, setting, text) [REFUSED_##NAME] = {word, status, setting, text},
const struct refusal_row refusal_rows[REFUSALS] = {REFUSALS_EACH(ROW)};

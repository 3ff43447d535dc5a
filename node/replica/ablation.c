#include "node/replica/ablation.h"

#include "node/replica/constants.h"

#ifdef GRAPEVINE_ABLATION
bool node_left_out[NODE_ABLATIONS];
double node_rules[NODE_RULES] = {
#define VALUE(name, value, unit, says, by) value,
    NODE_RULE_MAP(VALUE)
#undef VALUE
};
#endif

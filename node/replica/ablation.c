#include "node/replica/ablation.h"

#ifdef GRAPEVINE_ABLATION
bool node_left_out[NODE_ABLATIONS];
#endif

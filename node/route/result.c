#include "node/route/result.h"

const char *node_result_text(enum node_result result)
{
    static const char *const texts[NODE_RESULTS] = {
        [NODE_RESULT_OK] = "ok",
        [NODE_RESULT_CLIENT_ERROR] = "client_error",
        [NODE_RESULT_CLIENT_GONE] = "client_gone",
        [NODE_RESULT_STATUS_5XX] = "status_5xx",
        [NODE_RESULT_QUEUE_FULL] = "queue_full",
        [NODE_RESULT_CUT] = "cut",
    };
    return texts[result];
}

static enum node_result of_status(unsigned status)
{
    if (status >= 500)
        return NODE_RESULT_STATUS_5XX;
    return status >= 400 ? NODE_RESULT_CLIENT_ERROR : NODE_RESULT_OK;
}

enum node_result node_result_of(const struct node_ending *e)
{
    if (e->answer == NODE_ANSWER_LEFT)
        return NODE_RESULT_CLIENT_GONE;
    if (e->queue_full)
        return NODE_RESULT_QUEUE_FULL;
    if (e->invalid)
        return NODE_RESULT_CLIENT_ERROR;
    if (e->health && e->answer == NODE_ANSWER_WHOLE)
        return NODE_RESULT_OK;
    if (e->status >= 400) /* a cut error answer is still an error */
        return of_status(e->status);
    switch (e->answer) {
    case NODE_ANSWER_BY_CLIENT:
        return NODE_RESULT_CLIENT_ERROR;
    case NODE_ANSWER_CUT:
        return NODE_RESULT_CUT;
    case NODE_ANSWER_ERROR_EVENT: /* if the event names a 4xx, the request was wrong */
        return of_status(e->event_status) == NODE_RESULT_CLIENT_ERROR ? NODE_RESULT_CLIENT_ERROR
                                                                      : NODE_RESULT_CUT;
    default:
        return NODE_RESULT_OK;
    }
}

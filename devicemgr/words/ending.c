#include "devicemgr/words/ending.h"

/* Who asked first stands for all. */
static void add_asker(const struct ending *ending, struct text *text)
{
    static const char *const BY[END_ASKERS] = {[END_OPERATOR] = "by the operator",
                                               [END_EVICTION] = "by eviction",
                                               [END_SHUTDOWN] = "for the node's shutdown"};
    const struct ending_ask *ask = ending->asks;

    if (!ask)
        return;
    text_add(text, "%s", BY[ask->asker]);
    if (ask->why[0] == '\0')
        return;
    text_add(text, ": ");
    text_add_words(text, ask->why, TEXT_WORDS_BYTES_MAX);
}

static void add_pod(const struct ending *ending, struct text *text)
{
    text_add(text, "pod \"");
    if (ending->pod_name[0] == '\0') {
        text_add_words(text, ending->pod_uid, TEXT_IDS_BYTES_MAX);
    } else {
        text_add_words(text, ending->pod_namespace, TEXT_WORDS_BYTES_MAX);
        text_add(text, "/");
        text_add_words(text, ending->pod_name, TEXT_WORDS_BYTES_MAX);
    }
    text_add(text, "\"");
}

void ending_tell(const struct ending *ending, struct text *text)
{
    static const char *const STATES[ENDING_STATES] = {
        [ENDING_ASKED] = "is to end",
        [ENDING_EVICTING] = "the API server is asked to evict it, for as long as it takes",
        [ENDING_EVICTED] = "is deleted at the API server, and the kubelet ends it",
        [ENDING_STOPPING] = "its containers are being stopped, and none is made any more",
        [ENDING_STOPPED] = "none of its containers runs, and none is made any more",
        [ENDING_GONE] = "the runtime does not know it, or does not any more",
    };

    add_pod(ending, text);
    text_add(text, ": %s (", STATES[ending->state]);
    add_asker(ending, text);
    text_add(text, ")");
}

void ending_tell_taken_back(const struct ending *ending, struct text *text)
{
    add_pod(ending, text);
    if (ending->asks_len > 1)
        text_add(text, ": others want it to end still");
    else if (ending->state == ENDING_EVICTED)
        text_add(text, ": is deleted at the API server already");
    else if (ending_refuses(ending))
        text_add(text, ": its containers may be made again");
    else
        text_add(text, ": is not ended");
}

void ending_explain(const struct ending *ending, struct text *text)
{
    text_add(text, "the pod is ended on this node, ");
    add_asker(ending, text);
}

void ending_refuse_sandbox(const struct ending *ending, struct text *text)
{
    text_add(text, "sandbox of ");
    add_pod(ending, text);
    text_add(text, ": ");
    ending_explain(ending, text);
}

struct devicemgr_about ending_about(const struct ending *ending)
{
    return (struct devicemgr_about){.line = DEVICEMGR_LINE_ENDING,
                                    .pod_namespace = ending->pod_namespace,
                                    .pod_name = ending->pod_name};
}

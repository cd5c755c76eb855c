#include "devicemgr/words/release.h"

#include "devicemgr/books/state.h"
#include "devicemgr/things/name.h"

void release_explain(const struct state *state, const struct release_look *look, struct text *text)
{
    switch (look->bar) {
    case RELEASE_BAR_NONE:
        if (look->named)
            text_add(text, "the kubelet's checkpoint still gives devices to the pod: its kubelet "
                           "may make the pod's containers again, which want them anew");
        break;
    case RELEASE_BAR_CREATING:
        name_holder(&state->pods, look->holder, text);
        text_add(text, " is being created");
        break;
    case RELEASE_BAR_RUNS:
        name_holder(&state->pods, look->holder, text);
        text_add(text,
                 " runs, by the runtime's word (%.12s): delete the pod, or have its "
                 "container removed",
                 allocation_live_id(look->holder));
        break;
    case RELEASE_BAR_UNKNOWN:
        name_holder(&state->pods, look->holder, text);
        text_add(text, " may be in the making: ask again in some seconds");
        break;
    case RELEASE_BAR_SANDBOX:
        text_add(text, "the pod is there, by the runtime's word: its sandbox %.12s is %s",
                 look->sandbox->id,
                 look->sandbox->state == SANDBOX_OPEN ? "ready" : "not stopped yet");
        break;
    }
}

#include "devicemgr/rules/look.h"

#include "devicemgr/things/moment.h"
#include "devicemgr/words/reason.h"

void look_add(struct look *look, struct look *of_one, uint64_t hold_ms)
{
    uint64_t again_ms = earlier(moment_or_never(look->again_ms), moment_or_never(of_one->again_ms));

    if (of_one->step == LOOK_WAIT && look->step == LOOK_WAIT && hold_ms < look->hold_ms)
        look->hold_ms = hold_ms;
    look->again_ms = again_ms;
    if (of_one->step <= look->step) {
        look_fini(of_one);
        return;
    }
    reason_fini(&look->reason);
    *look = *of_one;
    look->hold_ms = hold_ms;
    look->again_ms = again_ms;
}

/*
 * A pod that is ended, or is to be, as "endings" and "why" show it.
 */
#ifndef SHIM_CTL_ENDINGS_H
#define SHIM_CTL_ENDINGS_H

#include "cri-proto/control_v1.pb-c.h"
#include "shim/ctl/show.h"

/* For people, some lines; SHOW_NAME: pod/NAMESPACE/NAME */
void ending_put(const struct show *show, const Control__V1__Ending *ending);

#endif

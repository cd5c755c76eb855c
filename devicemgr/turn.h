/*
 * The device manager as a whole: the state, and the tables that are one part's own. Known to turn.c
 * alone, and to tests that look inside.
 */
#ifndef DEVICEMGR_TURN_H
#define DEVICEMGR_TURN_H

#include "devicemgr/calls.h"
#include "devicemgr/check.h"
#include "devicemgr/create.h"
#include "devicemgr/prefer.h"
#include "devicemgr/runtime.h"
#include "devicemgr/state.h"

struct devicemgr {
    struct state state;
    struct calls calls;
    struct checks checks;
    struct creates creates;
    struct prefers prefers;
    struct runtime runtime;
    const struct devicemgr_ports *ports;
    void *user;
    bool running; /* inside devicemgr_run() */
};

#endif

/*
 * The names of log.h's kinds, and their ids in the journal (MESSAGE_ID, systemd.journal-fields(7)).
 * Neither is ever changed, or given to another kind.
 */
#ifndef SHIM_LOG_KIND_H
#define SHIM_LOG_KIND_H

#include "shim/log.h"

static const struct log_kind_names {
    const char *name;
    const char *id;
} LOG_KIND_NAMES[LOG_KINDS] = {
    [LOG_KIND_NONE] = {NULL, NULL},
    [LOG_KIND_STARTED] = {"started", "5c1ce932e90e407b82a368e58a1bd619"},
    [LOG_KIND_STOPPING] = {"stopping", "29c2b89b9d824cd9be1e8f5537753c1e"},
    [LOG_KIND_SETTINGS] = {"settings", "652494f527204632a4cc8be0417bf691"},
    [LOG_KIND_RELOADED] = {"reloaded", "ca4d732adfe94433aa8b3516ccaefbbf"},
    [LOG_KIND_REFUSED] = {"refused", "cc69a0393e944c2abab3f9276fe7cf9d"},
    [LOG_KIND_REFUSALS_OVER] = {"refusals-over", "14ea7b9f1755479fb9552f7a1d8e7c69"},
    [LOG_KIND_RUNTIME_AWAY] = {"runtime-away", "3a531815e6ae4bc48d95ecff97750972"},
    [LOG_KIND_RUNTIME_BACK] = {"runtime-back", "9ed5b176cf06440299f57a905a740368"},
    [LOG_KIND_BRIDGE_HERE] = {"bridge-here", "32527d2f586f4b1097aa7a4fe0590dd6"},
    [LOG_KIND_BRIDGE_GONE] = {"bridge-gone", "7e386dd95cee40e084a92ffa7889cbc1"},
    [LOG_KIND_KUBELET_STARTED] = {"kubelet-started", "d1f7a6c27e0a432888689424d3c7af31"},
    [LOG_KIND_GATE_OPENED] = {"gate-opened", "2d3329803e6342c892a549273dd15ffc"},
    [LOG_KIND_SHOWN] = {"shown", "c89b96d022404e3c9dc396d12cddb154"},
    [LOG_KIND_LOST] = {"lost", "23ab0cd77ee94d16bd24f4368f0f4634"},
};

#endif

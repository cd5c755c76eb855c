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
    [LOG_KIND_REGISTERED] = {"registered", "64f2fbc132534a098e7c86f28f16de0c"},
    [LOG_KIND_LISTED] = {"devices-listed", "2d63e89efba345a8816f2496a7f34d0a"},
    [LOG_KIND_PLUGIN_AWAY] = {"plugin-away", "46e035532b3e49b69f519d698b77f2a1"},
    [LOG_KIND_REMOVED] = {"removed", "c1a0ecd997bb4f669d32bbd4f46c272a"},
    [LOG_KIND_ALLOCATED] = {"allocated", "465b5dd20ae94bca9d02c4008922287f"},
    [LOG_KIND_FREED] = {"freed", "365ed6f3e18d431ca6291ef6c09190de"},
    [LOG_KIND_REPLACED] = {"replaced", "64c09e6280584a38b5794e205cbdb4c0"},
    [LOG_KIND_ADOPTED] = {"adopted", "030d6bcce3674df28196f081762c7045"},
    [LOG_KIND_STRANGE_TOKEN] = {"strange-token", "a257ea5acf73478faaeded452a3cf805"},
    [LOG_KIND_ORDERED] = {"ordered", "cac5e7d877d14539a2b35f03b2e0fbbf"},
    [LOG_KIND_UNSTORED] = {"unstored", "da7cca500d374cf8b0cc545257fbb8bc"},
    [LOG_KIND_STORED] = {"stored", "921a548757aa48f1a409d5203add1272"},
    [LOG_KIND_RUNTIME_LISTED] = {"runtime-listed", "ddd9b117254a42fcb5dbce89946a9e3a"},
    [LOG_KIND_ENDING] = {"ending", "5638334989f74b039561d99118be81b0"},
    [LOG_KIND_SHUTDOWN] = {"shutdown", "47c7799dbbc648cf814d541b7399ccea"},
    [LOG_KIND_DRIVER_CAME] = {"driver-came", "547356948da449cc88faa94a57649fb7"},
    [LOG_KIND_DRIVER_WENT] = {"driver-went", "d3990b3da2494d70afc9e7a5b5ee41b6"},
    [LOG_KIND_DRIVER_MOVED] = {"driver-moved", "41f962caa8e24a4ca34a8451e248d859"},
    [LOG_KIND_SLICES_WIPED] = {"slices-wiped", "746ef66f45484d84b0cf62e97a01206c"},
    [LOG_KIND_CLAIM_PREPARED] = {"claim-prepared", "a836a169636447e39d2a941a52e45bd6"},
    [LOG_KIND_CLAIM_OWED] = {"claim-owed", "2aced10d7bc442fbba2041daebe2a5d5"},
    [LOG_KIND_CLAIM_UNPREPARED] = {"claim-unprepared", "f758b54dc84d4cf4ae403e24437d7158"},
    [LOG_KIND_SOCKET_AWAY] = {"socket-away", "9c99ec68de69444ea651c704955b5ab1"},
    [LOG_KIND_SOCKET_BACK] = {"socket-back", "9d9e777544b44af08baded60b1e47d17"},
    [LOG_KIND_EVENTS_UNKEPT] = {"events-unkept", "f3a1a7c304544b9db716a36eb42a0f1d"},
    [LOG_KIND_EVENTS_KEPT] = {"events-kept", "6ded9eaaf3d64b659fd483d438ea809c"},
};

#endif

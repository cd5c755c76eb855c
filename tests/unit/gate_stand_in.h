/*
 * Stands in for the gate in front of relists.c: says what it is told, and answers as it is set.
 */
#ifndef TESTS_UNIT_GATE_STAND_IN_H
#define TESTS_UNIT_GATE_STAND_IN_H

#include "h2_script.h"
#include "shim/relay/relists.h"

#define KUBELET 100 /* a kubelet, as are all processes after it; the only one that is armed */

struct gate_stand_in {
    struct buffer *log; /* what it is told, by h2_say(); NULL: nowhere, memory is failing */
    bool armed;
    bool holds; /* what it answers to a relist */
    bool arms;  /* it is armed by who announces itself; else disarmed */
    bool announced;
    uint64_t hold; /* the last */
};

/* For relists_bind(); the user is the struct. */
extern const struct relists_gate GATE_STAND_IN;

#endif

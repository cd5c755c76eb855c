/*
 * Somebody who reads the lists, at any time, also in the middle of events; and to whom nobody
 * listens.
 */
#ifndef TESTS_SIM_READER_H
#define TESTS_SIM_READER_H

struct world;

/* Reads all of them now and then, in pages, and holds them against each other and against what the
 * kubelet is shown. */
void reader_reads(struct world *w);

#endif

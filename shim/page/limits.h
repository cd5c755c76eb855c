/*
 * How much of it one answer is.
 *
 * A page of a list has the texts of one of the control socket's (shim/control/limits.h), 200 KiB,
 * and as JSON at most six times that, where every byte of them is a control character; and the
 * names of its members, half a KiB a row. So an answer has 1.5 MiB at the very most, and some 30
 * KiB as a rule; the value that it is made from, some KiB a row, is gone before the next one is
 * asked for.
 */
#ifndef SHIM_PAGE_LIMITS_H
#define SHIM_PAGE_LIMITS_H

/* Rows of a page of a list, and events. */
#define PAGE_ROWS_MAX 200
#define PAGE_ROWS_DEFAULT 50
/* Parts of a place in a list; the longest has six. */
#define PAGE_PLACE_PARTS_MAX 8

#endif

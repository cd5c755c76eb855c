/*
 * Commands that show a list: the daemon is asked page by page, and one table, or one JSON document,
 * is made of all.
 */
#ifndef SHIM_CTL_LIST_H
#define SHIM_CTL_LIST_H

#include "cri-proto/control_v1.pb-c.h"
#include "shim/ctl/command.h"
#include "shim/ctl/table.h"

/* What is made of the rows. */
struct listing {
    const struct command_run *run;
    const struct show *show; /* its own */
    struct table *table;     /* SHOW_TABLE, SHOW_WIDE */
    json_t *items;           /* SHOW_JSON */
    struct merged *merged;   /* allocations.c's */
};

/* What in the request the command's argument is. */
enum list_argument {
    LIST_RESOURCE = 1 << 0,
    LIST_POD = 1 << 1,
    LIST_DRIVER = 1 << 2,
};

struct list {
    const char *method;
    const ProtobufCMessageDescriptor *response; /* with a field `next` */
    unsigned argument;                          /* of enum list_argument */
    const struct table_column *columns;
    size_t columns_len;
    /* Adds the rows of a page, which lives until all is written; SHOW_NAME: writes a line each to
     * show->out. `page` NULL: there is no more. */
    void (*put)(struct listing *listing, const ProtobufCMessage *page);
    /* Said of a list without a row, NOT_FOUND, if the request names something; NULL: that is no
     * error. */
    const char *none;
    /* Another list whose rows come behind, in the same table; NULL: none. In JSON they are an array
     * of their own, of this name. */
    const struct list *behind;
    const char *behind_items;
};

/* Of the command's list, asks for what its argument names and its options --pod and --namespace,
 * where it has those, and shows it. False: there is no answer, and `failure` says why. */
bool list_run(const struct command_run *run, struct client_failure *failure);

/* ---- for who makes the rows ---- */

/* Of a page of `Response`, which may be NULL, each row by itself: `json` makes it JSON, `row` puts
 * it into the table, `name` writes its line. */
#define LIST_PUT_EACH(Response, listing, page, json, row, name)                                    \
    do {                                                                                           \
        const Response *response = (const void *)(page);                                           \
                                                                                                   \
        for (size_t i = 0; response && i < response->n_rows; i++) {                                \
            if ((listing)->items)                                                                  \
                json_value_append((listing)->items, json(response->rows[i]));                      \
            else if ((listing)->table)                                                             \
                row((listing)->table, response->rows[i]);                                          \
            else                                                                                   \
                name(listing, response->rows[i]);                                                  \
        }                                                                                          \
    } while (0)

/* SHOW_NAME: the line "KIND/PART/PART", of texts up to NULL. */
void list_put_name(const struct listing *listing, const char *kind, ...) __attribute__((sentinel));

/* Several texts as one, with "," between; for the caller to free. */
char *list_join(char *const *texts, size_t len);

/* "namespace/name", "?/uid" of a pod that is not known by name; for the caller to free. */
char *list_pod_name(const char *pod_namespace, const char *name, const char *uid);

#endif

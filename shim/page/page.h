/*
 * The page for people, and what it shows as JSON: at the server of the metrics, where [metrics]
 * page is on.
 *
 *     /                 the page, with /page.css and /page.js: nothing of it comes from elsewhere
 *     /json/NAME        what cri-device-shimctl NAME -o json says, of one page of the list
 *
 * It only reads, and keeps nothing: each answer is made from what is so when it is asked for, of
 * bounded size (limits.h). Who is asked by a name is sent away (authority.h).
 */
#ifndef SHIM_PAGE_PAGE_H
#define SHIM_PAGE_PAGE_H

#include <stdbool.h>

#include "shim/control/list.h"
#include "shim/core/host.h"
#include "shim/events/events.h"
#include "shim/metrics/http_server.h"
#include "shim/report.h"
#include "shim/settings.h"

struct page;

struct page_ops {
    /* What there is to say of the daemon now; *out is zeroed. */
    void (*report)(void *user, struct report *out);
    /* What lists are made from, besides the device manager (control/list.h). */
    void (*look)(void *user, struct list_from *out);
};

/* All are borrowed until page_free(). */
struct page *page_new(const struct settings *settings, struct host *host,
                      const struct events *events, const struct page_ops *ops, void *user);
/* As http_server_ops' get(). */
bool page_get(struct page *page, const struct http_request *request, struct http_answer *out);
/* Accepts NULL. */
void page_free(struct page *page);

#endif

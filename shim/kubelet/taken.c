#include "shim/kubelet/taken.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_reports(const void *a, const void *b)
{
    const Bridge__V1__ResourceReport *const *one = a, *const *other = b;

    return strcmp((*one)->name, (*other)->name);
}

void taken_sort(Bridge__V1__ReportRequest *report)
{
    if (report->n_resources > 1)
        qsort(report->resources, report->n_resources, sizeof *report->resources, compare_reports);
}

static int compare_report_name(const void *name, const void *report)
{
    const Bridge__V1__ResourceReport *const *one = report;

    return strcmp(name, (*one)->name);
}

static const Bridge__V1__ResourceReport *find_report(const Bridge__V1__ReportRequest *report,
                                                     const char *resource)
{
    Bridge__V1__ResourceReport *const *found = NULL;

    if (report->n_resources > 0)
        found = bsearch(resource, report->resources, report->n_resources, sizeof *report->resources,
                        compare_report_name);
    return found ? *found : NULL;
}

static bool is_refused(const Bridge__V1__ResourceReport *state)
{
    return state && state->refused && !state->registered;
}

static int compare_resource_name(const void *name, const void *resource)
{
    return strcmp(name, ((const struct kubelet_resource *)resource)->name);
}

static const struct kubelet_resource *find_registered(const struct kubelet_checkpoint *checkpoint,
                                                      const char *resource)
{
    if (checkpoint->resources_len == 0)
        return NULL;
    return bsearch(resource, checkpoint->resources, checkpoint->resources_len,
                   sizeof *checkpoint->resources, compare_resource_name);
}

/* Whether the healthy ones are just those in `ids`; both are in the natural order. */
static bool are_healthy(const struct ids *ids, const Bridge__V1__DeviceList *list)
{
    size_t at = 0;

    for (size_t i = 0; i < list->n_devices; i++) {
        if (!list->devices[i]->healthy)
            continue;
        if (at == ids->len || strcmp(ids->v[at], list->devices[i]->id) != 0)
            return false;
        at++;
    }
    return at == ids->len;
}

static bool is_in_file(const struct advertised_list *advertised,
                       const struct kubelet_checkpoint *checkpoint)
{
    const struct kubelet_resource *registered = find_registered(checkpoint, advertised->resource);
    Bridge__V1__DeviceList *list;
    bool found;

    if (!registered)
        return false;
    list = advertised_list_unpack(advertised);
    found = are_healthy(&registered->healthy, list);
    bridge__v1__device_list__free_unpacked(list, NULL);
    return found;
}

/* What the bridge has still to do for one resource, or NULL. */
static const char *judge_report(const struct advertised_list *list,
                                const Bridge__V1__ReportRequest *report)
{
    const Bridge__V1__ResourceReport *state = find_report(report, list->resource);

    if (!state || !state->registered)
        return "not registered";
    if (state->version != list->version)
        return "its list was not sent";
    return state->stored ? NULL : "its list was not stored";
}

/* What the kubelet has still to do, or NULL. */
static const char *judge_file(const struct advertised_list *list, const struct kubelet_file *file)
{
    if (!file)
        return "the kubelet's checkpoint is being read";
    switch (file->state) {
    case KUBELET_FILE_MISSING:
        return "there is no kubelet's checkpoint";
    case KUBELET_FILE_UNREADABLE:
    case KUBELET_FILE_DAMAGED: /* of a later format, perhaps: that it was written must do */
        return NULL;
    case KUBELET_FILE_READ:
        return is_in_file(list, &file->checkpoint) ? NULL : "not in the kubelet's checkpoint";
    }
    return NULL;
}

/* Appends as long as there is room: the first ones are named in any case. */
static void __attribute__((format(printf, 2, 3))) say(struct taken *out, const char *format, ...)
{
    size_t len = strlen(out->words);
    va_list args;

    va_start(args, format);
    vsnprintf(out->words + len, sizeof out->words - len, format, args);
    va_end(args);
}

static void add_missing(struct taken *out, const char *resource, const char *why)
{
    say(out, "%s%s: %s", out->words[0] ? "; " : "", resource, why);
}

static size_t count_lists(const struct advertised *advertised)
{
    size_t lists = 0;

    for (size_t i = 0; i < advertised->len; i++)
        lists += !advertised->lists[i].too_long;
    return lists;
}

static bool is_waited_for(const struct advertised_list *list,
                          const Bridge__V1__ReportRequest *report)
{
    return !list->too_long && !is_refused(find_report(report, list->resource));
}

static void say_taken(const struct advertised *advertised, const Bridge__V1__ReportRequest *report,
                      struct taken *out)
{
    const char *before = "; it has refused ";
    size_t lists = 0;

    for (size_t i = 0; i < advertised->len; i++)
        lists += is_waited_for(&advertised->lists[i], report);
    say(out, "all resources (%zu) are registered and stored", lists);
    for (size_t i = 0; i < advertised->len; i++) {
        if (advertised->lists[i].too_long || is_waited_for(&advertised->lists[i], report))
            continue;
        say(out, "%s%s", before, advertised->lists[i].resource);
        before = ", ";
    }
}

static void judge_lists(const struct advertised *advertised,
                        const Bridge__V1__ReportRequest *report, const struct kubelet_file *file,
                        struct taken *out)
{
    for (size_t i = 0; i < advertised->len; i++) {
        const struct advertised_list *list = &advertised->lists[i];
        const char *why = is_waited_for(list, report) ? judge_report(list, report) : NULL;

        if (why)
            add_missing(out, list->resource, why);
    }
    /* The devices of all lists are looked through only when it is worth it. */
    for (size_t i = 0; i < advertised->len && out->words[0] == '\0'; i++) {
        const struct advertised_list *list = &advertised->lists[i];
        const char *why = is_waited_for(list, report) ? judge_file(list, file) : NULL;

        if (why)
            add_missing(out, list->resource, why);
    }
    out->all = out->words[0] == '\0';
    if (out->all)
        say_taken(advertised, report, out);
}

bool taken_stored(const struct advertised_list *list, const Bridge__V1__ReportRequest *report,
                  const struct kubelet_file *file)
{
    return report && file && file->state == KUBELET_FILE_READ && !list->too_long &&
           !judge_report(list, report) && is_in_file(list, &file->checkpoint);
}

enum displaced_seen taken_look(const struct advertised_list *list,
                               const Bridge__V1__ReportRequest *report,
                               const struct kubelet_file *file)
{
    const struct kubelet_resource *registered;

    if (!report || !file || file->state != KUBELET_FILE_READ || list->healthy == 0 ||
        judge_report(list, report))
        return DISPLACED_UNKNOWN;
    registered = find_registered(&file->checkpoint, list->resource);
    return registered && registered->healthy.len > 0 ? DISPLACED_NO : DISPLACED_YES;
}

void taken_judge(const struct advertised *advertised, const Bridge__V1__ReportRequest *report,
                 const struct kubelet_file *file, pid_t kubelet, struct taken *out)
{
    *out = (struct taken){0};
    if (count_lists(advertised) == 0) {
        out->all = true;
        say(out, "there is nothing to show it");
    } else if (!report) {
        say(out, "no bridge has reported");
    } else if (report->kubelet_pid != kubelet) {
        say(out, "the bridge has not reached it");
    } else {
        judge_lists(advertised, report, file, out);
    }
}

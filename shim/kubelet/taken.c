#include "shim/kubelet/taken.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const Bridge__V1__ResourceReport *find_report(const Bridge__V1__ReportRequest *report,
                                                     const char *resource)
{
    for (size_t i = 0; i < report->n_resources; i++) {
        if (strcmp(report->resources[i]->name, resource) == 0)
            return report->resources[i];
    }
    return NULL;
}

static bool is_refused(const Bridge__V1__ResourceReport *state)
{
    return state && state->refused && !state->registered;
}

static const struct kubelet_resource *find_registered(const struct kubelet_checkpoint *checkpoint,
                                                      const char *resource)
{
    for (size_t i = 0; i < checkpoint->resources_len; i++) {
        if (strcmp(checkpoint->resources[i].name, resource) == 0)
            return &checkpoint->resources[i];
    }
    return NULL;
}

/* Whether the healthy ones are all in `ids`; both are in the natural order. */
static bool has_healthy(const struct ids *ids, const Bridge__V1__DeviceList *list)
{
    size_t at = 0;

    for (size_t i = 0; i < list->n_devices; i++) {
        const Bridge__V1__Device *device = list->devices[i];
        int order = -1;

        if (!device->healthy)
            continue;
        while (at < ids->len && (order = strverscmp(ids->v[at], device->id)) < 0)
            at++;
        if (order != 0)
            return false;
    }
    return true;
}

static bool is_in_file(const struct shown_list *shown, const struct kubelet_checkpoint *checkpoint)
{
    const struct kubelet_resource *registered = find_registered(checkpoint, shown->resource);
    Bridge__V1__DeviceList *list;
    bool found;

    if (!registered)
        return false;
    list = shown_unpack(shown);
    found = has_healthy(&registered->healthy, list);
    bridge__v1__device_list__free_unpacked(list, NULL);
    return found;
}

/* What the bridge has still to do for one resource, or NULL. */
static const char *judge_report(const struct shown_list *list,
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
static const char *judge_file(const struct shown_list *list, const struct kubelet_file *file)
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

static size_t count_lists(const struct shown *shown)
{
    size_t lists = 0;

    for (size_t i = 0; i < shown->len; i++)
        lists += !shown->lists[i].too_long;
    return lists;
}

static bool is_waited_for(const struct shown_list *list, const Bridge__V1__ReportRequest *report)
{
    return !list->too_long && !is_refused(find_report(report, list->resource));
}

static void say_taken(const struct shown *shown, const Bridge__V1__ReportRequest *report,
                      struct taken *out)
{
    const char *before = "; it has refused ";
    size_t lists = 0;

    for (size_t i = 0; i < shown->len; i++)
        lists += is_waited_for(&shown->lists[i], report);
    say(out, "all resources (%zu) are registered and stored", lists);
    for (size_t i = 0; i < shown->len; i++) {
        if (shown->lists[i].too_long || is_waited_for(&shown->lists[i], report))
            continue;
        say(out, "%s%s", before, shown->lists[i].resource);
        before = ", ";
    }
}

static void judge_lists(const struct shown *shown, const Bridge__V1__ReportRequest *report,
                        const struct kubelet_file *file, struct taken *out)
{
    for (size_t i = 0; i < shown->len; i++) {
        const struct shown_list *list = &shown->lists[i];
        const char *why = is_waited_for(list, report) ? judge_report(list, report) : NULL;

        if (why)
            add_missing(out, list->resource, why);
    }
    /* The devices of all lists are looked through only when it is worth it. */
    for (size_t i = 0; i < shown->len && out->words[0] == '\0'; i++) {
        const struct shown_list *list = &shown->lists[i];
        const char *why = is_waited_for(list, report) ? judge_file(list, file) : NULL;

        if (why)
            add_missing(out, list->resource, why);
    }
    out->all = out->words[0] == '\0';
    if (out->all)
        say_taken(shown, report, out);
}

enum displaced_seen taken_look(const struct shown_list *list,
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

void taken_judge(const struct shown *shown, const Bridge__V1__ReportRequest *report,
                 const struct kubelet_file *file, pid_t kubelet, struct taken *out)
{
    *out = (struct taken){0};
    if (count_lists(shown) == 0) {
        out->all = true;
        say(out, "there is nothing to show it");
    } else if (!report) {
        say(out, "no bridge has reported");
    } else if (report->kubelet_pid != kubelet) {
        say(out, "the bridge has not reached it");
    } else {
        judge_lists(shown, report, file, out);
    }
}

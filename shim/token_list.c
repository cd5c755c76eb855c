#include "shim/token_list.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cri-proto/lift_marker.h"
#include "cri-proto/token.h"
#include "shim/dra/kubelet_claims.h"
#include "shim/kubelet/checkpoint_file.h"
#include "shim/printable.h"

static bool has_token(const struct kubelet_allocation *allocation)
{
    const V1beta1__ContainerAllocateResponse *options = allocation->options;

    for (size_t i = 0; options && i < options->n_annotations; i++) {
        if (strncmp(options->annotations[i]->key, TOKEN_KEY_PREFIX, strlen(TOKEN_KEY_PREFIX)) == 0)
            return true;
    }
    return false;
}

static void say(const struct kubelet_allocation *allocation)
{
    put_printable(stdout, allocation->pod_uid);
    putchar('\t');
    put_printable(stdout, allocation->container);
    putchar('\t');
    put_printable(stdout, allocation->resource);
    for (size_t i = 0; i < allocation->devices_len; i++) {
        putchar(i == 0 ? '\t' : ',');
        put_printable(stdout, allocation->devices[i].id);
    }
    putchar('\n');
}

static int list_containers(const char *kubelet_plugin_dir)
{
    char path[PATH_MAX], err[KUBELET_CHECKPOINT_ERROR_BYTES_MAX];
    struct kubelet_checkpoint checkpoint = {0};
    enum kubelet_file_state state;
    time_t written;

    snprintf(path, sizeof path, "%s/" KUBELET_CHECKPOINT_FILE, kubelet_plugin_dir);
    state = checkpoint_file_read(path, &checkpoint, &written, err, sizeof err);
    if (state == KUBELET_FILE_MISSING)
        return 0;
    if (state != KUBELET_FILE_READ) {
        fprintf(stderr, "%s: %s\n", path, err);
        return -1;
    }
    for (size_t i = 0; i < checkpoint.allocations_len; i++) {
        if (has_token(&checkpoint.allocations[i]))
            say(&checkpoint.allocations[i]);
    }
    kubelet_checkpoint_fini(&checkpoint);
    return 0;
}

/* A text of a claim's; what it has not is empty. */
static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static void say_claim(const char *pod_uid, const json_t *claim, const char *resource,
                      const char *device)
{
    put_printable(stdout, pod_uid);
    fputs("\tclaim ", stdout);
    put_printable(stdout, text_of(claim, "Namespace"));
    putchar('/');
    put_printable(stdout, text_of(claim, "ClaimName"));
    putchar('\t');
    put_printable(stdout, resource);
    if (device) {
        putchar('\t');
        put_printable(stdout, device);
    }
    putchar('\n');
}

static void say_devices(const char *pod_uid, const json_t *claim, const json_t *devices)
{
    const json_t *device, *name;
    struct lift_marker marker;
    bool said = false;
    size_t i, k;

    json_array_foreach(devices, i, device) {
        json_array_foreach(json_object_get(device, "CDIDeviceIDs"), k, name) {
            if (!json_is_string(name) || !lift_marker_read(json_string_value(name), &marker))
                continue;
            say_claim(pod_uid, claim, marker.pool, marker.device);
            said = true;
        }
    }
    if (!said)
        say_claim(pod_uid, claim, LIFT_DRIVER, NULL);
}

static int list_claims(const char *kubelet_registry_dir)
{
    json_t *list, *claim, *driver, *none;
    const char *pod_uid;
    int err = kubelet_claims_read(kubelet_registry_dir, LIFT_DRIVER, &list);
    size_t i;

    if (err) {
        fprintf(stderr, "the kubelet's claims, beside %s: %s\n", kubelet_registry_dir,
                err == -EBADMSG ? "a form that is not known" : strerror(-err));
        return -1;
    }
    json_array_foreach(list, i, claim) {
        driver = json_object_get(json_object_get(claim, "DriverState"), LIFT_DRIVER);
        if (!driver)
            continue;
        json_object_foreach(json_object_get(claim, "PodUIDs"), pod_uid, none) {
            say_devices(pod_uid, claim, json_object_get(driver, "Devices"));
        }
    }
    json_decref(list);
    return 0;
}

int token_list_print(const char *kubelet_plugin_dir, const char *kubelet_registry_dir)
{
    if (list_containers(kubelet_plugin_dir) || list_claims(kubelet_registry_dir))
        return -1;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "the list could not be written\n");
        return -1;
    }
    return 0;
}

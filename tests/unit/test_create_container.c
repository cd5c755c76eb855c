/* shim/relay/create_container.c: reading a request, and what a fragment in front of it merges
 * to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "cri-proto/cri_v1.pb-c.h"
#include "h2_script.h"
#include "shim/relay/create_container.h"
#include "shim/relay/limits.h"
#include "shim/rpc/rpc.h"

#define TEXT(text) ((char[]){text}) /* protobuf-c wants char * */

/* A kubelet's request in small; what is put behind it is a field nobody knows. */
static void put_request(struct buffer *out, bool with_sandbox)
{
    Runtime__V1__KeyValue env = RUNTIME__V1__KEY_VALUE__INIT, *envs[] = {&env};
    Runtime__V1__ContainerMetadata metadata = RUNTIME__V1__CONTAINER_METADATA__INIT;
    Runtime__V1__ContainerConfig__AnnotationsEntry
        annotation = RUNTIME__V1__CONTAINER_CONFIG__ANNOTATIONS_ENTRY__INIT,
        names = RUNTIME__V1__CONTAINER_CONFIG__ANNOTATIONS_ENTRY__INIT,
        *annotations[] = {&annotation, &names};
    Runtime__V1__ContainerConfig__LabelsEntry label =
                                                  RUNTIME__V1__CONTAINER_CONFIG__LABELS_ENTRY__INIT,
                                              *labels[] = {&label};
    Runtime__V1__CDIDevice cdi = RUNTIME__V1__CDIDEVICE__INIT, *cdis[] = {&cdi};
    Runtime__V1__ContainerConfig config = RUNTIME__V1__CONTAINER_CONFIG__INIT;
    Runtime__V1__PodSandboxMetadata pod = RUNTIME__V1__POD_SANDBOX_METADATA__INIT;
    Runtime__V1__PodSandboxConfig__AnnotationsEntry
        wish = RUNTIME__V1__POD_SANDBOX_CONFIG__ANNOTATIONS_ENTRY__INIT,
        *wishes[] = {&wish};
    Runtime__V1__PodSandboxConfig sandbox = RUNTIME__V1__POD_SANDBOX_CONFIG__INIT;
    Runtime__V1__CreateContainerRequest request = RUNTIME__V1__CREATE_CONTAINER_REQUEST__INIT;
    uint8_t bytes[1024];
    size_t n;

    env.key = TEXT("SAME");
    env.value = (ProtobufCBinaryData){3, (uint8_t *)"pod"};
    metadata.name = TEXT("main");
    metadata.attempt = 2;
    annotation.key = TEXT("token");
    annotation.value = TEXT("of the pod");
    label.key = TEXT("io.kubernetes.pod.uid");
    label.value = TEXT("label-uid");
    config.metadata = &metadata;
    names.key = TEXT("cdi.k8s.io/gpu.example.com_claim");
    names.value = TEXT("gpu.example.com/claim=1,gpu.example.com/claim=2");
    config.n_envs = config.n_labels = 1;
    config.n_annotations = 2;
    config.envs = envs;
    config.annotations = annotations;
    config.labels = labels;
    cdi.name = TEXT("gpu.example.com/claim=0");
    config.n_cdi_devices = 1;
    config.cdi_devices = cdis;
    pod.name = TEXT("web");
    pod.uid = TEXT("uid-1");
    pod.attempt = 3;
    pod.namespace_ = TEXT("default");
    wish.key = TEXT("devices.cri-device-shim/main");
    wish.value = TEXT("vendor.com/gpu=1");
    sandbox.metadata = &pod;
    sandbox.n_annotations = 1;
    sandbox.annotations = wishes;
    request.pod_sandbox_id = TEXT("sandbox-1");
    request.config = &config;
    request.sandbox_config = with_sandbox ? &sandbox : NULL;
    n = runtime__v1__create_container_request__pack(&request, bytes);
    h2_put(out, bytes, n);
    h2_put(out, "\xf8\x3f\x05", 3); /* field 1023 */
}

static void a_request_is_read(void **state)
{
    struct buffer b = {0};
    struct create_container *c;
    struct devicemgr_create r;

    (void)state;
    put_request(&b, true);
    assert_int_equal(create_container_read(buffer_data(&b), buffer_len(&b), &c), RPC_OK);
    buffer_fini(&b); /* not needed any more */
    create_container_request(c, &r);
    assert_string_equal(r.sandbox_id, "sandbox-1");
    assert_string_equal(r.pod_uid, "uid-1");
    assert_string_equal(r.pod_namespace, "default");
    assert_string_equal(r.pod_name, "web");
    assert_string_equal(r.container, "main");
    assert_int_equal(r.attempt, 2);
    assert_int_equal(r.sandbox_attempt, 3);
    assert_int_equal(r.container_annotations_len, 2);
    assert_string_equal(r.container_annotations[0].key, "token");
    assert_string_equal(r.container_annotations[0].value, "of the pod");
    assert_int_equal(r.pod_annotations_len, 1);
    assert_string_equal(r.pod_annotations[0].value, "vendor.com/gpu=1");
    assert_int_equal(r.cdi_annotated_len, 2);
    assert_int_equal(r.cdi_devices_len, 3); /* the field's and an annotation's */
    assert_string_equal(r.cdi_devices[0], "gpu.example.com/claim=0");
    assert_string_equal(r.cdi_devices[1], "gpu.example.com/claim=1");
    assert_string_equal(r.cdi_devices[2], "gpu.example.com/claim=2");
    create_container_free(c);
}

struct more {
    const char *bytes;
    size_t len;
    size_t annotations; /* the container's, with the two of the request */
};

#define MORE(bytes, annotations)                                                                   \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, annotations                                                      \
    }
#define ZEROS_5 "\x80\x80\x80\x80\x80" /* of a varint */

/* What is behind it here protobuf-c does not read, and the runtimes do. */
static int read_with(const struct more *more, struct create_container **out)
{
    struct buffer b = {0};
    int r;

    put_request(&b, true);
    h2_put(&b, more->bytes, more->len);
    r = create_container_read(buffer_data(&b), buffer_len(&b), out);
    buffer_fini(&b);
    return r;
}

static void what_only_the_runtimes_read_is_read(void **state)
{
    static const struct more ALL[] = {
        MORE("\xc3\x3e\x08\x01\xc4\x3e", 2),                  /* a group, of no known number */
        MORE("\xc3\x3e\xcb\x3e\x12\x01x\xcc\x3e\xc4\x3e", 2), /* one in it */
        MORE("\xc3\x3e\x00\x01\x0c", 2),                      /* ended by another number */
        MORE("\x12\x06\xc3\x3e\x08\x01\xc4\x3e", 2),          /* in the config */
        MORE("\x12\x0a\x52\x08\x0a\x00\xc3\x3e\x08\x01\xc4\x3e", 3), /* in an annotation */
        MORE("\xc0\xbe" ZEROS_5 "\x00\x01", 2),                      /* a tag of eight bytes */
        MORE("\xc0\xbe" ZEROS_5 "\x80\x80\x7e\x01", 2),              /* over 64 bits */
        MORE("\x12" ZEROS_5 "\x00", 2),                              /* a length of six */
        MORE("\x92\x80\x80\x80\x80\x01\x04\x52\x02\x0a\x00", 3),     /* a number of 33 bits */
        MORE("\x10\x01", 2),                                         /* a config that is a number */
        MORE("\x13\x14", 2),                                         /* or a group */
        MORE("\x12\x02\x50\x01", 2),             /* annotations that are a number */
        MORE("\x12\x05\x0a\x03\x12\x01\x80", 2), /* an attempt that is a text */
    };

    (void)state;
    for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++) {
        struct create_container *c;
        struct devicemgr_create r;

        assert_int_equal(read_with(&ALL[i], &c), RPC_OK);
        create_container_request(c, &r);
        assert_string_equal(r.pod_uid, "uid-1");
        assert_string_equal(r.container, "main");
        assert_int_equal(r.attempt, 2);
        assert_int_equal(r.container_annotations_len, ALL[i].annotations);
        assert_string_equal(r.container_annotations[0].key, "token");
        assert_int_equal(r.pod_annotations_len, 1);
        assert_int_equal(r.cdi_devices_len, 3);
        create_container_free(c);
    }
}

static void what_nobody_reads_is_told(void **state)
{
    static const struct more ALL[] = {
        MORE("\xc3\x3e\x08\x01", 0),             /* a group without an end */
        MORE("\xc4\x3e", 0),                     /* an end without a group */
        MORE("\xc3\x3e\x0f\xc4\x3e", 0),         /* no such type in it */
        MORE("\x02\x00", 0),                     /* number 0 */
        MORE("\x80\x80\x80\x80\xc0\x00\x00", 0), /* 2^31 */
        MORE("\xc0\xbe" ZEROS_5 ZEROS_5, 0),     /* a tag without an end */
        MORE("\xc2\x3e\x7f", 0),                 /* more than there is */
        MORE("\x12\x03\x0a\x7f\x0a", 0),         /* the same in the config, */
        MORE("\x12\x05\x0a\x03\x0a\x7f\x0a", 0), /* in its metadata, */
        MORE("\x12\x04\x3a\x02\x12\x7f", 0),     /* in a mount, */
        MORE("\x1a\x04\x0a\x02\x0a\x7f", 0),     /* and in the pod's metadata */
    };

    (void)state;
    for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++) {
        struct create_container *c;

        assert_int_equal(read_with(&ALL[i], &c), RPC_INTERNAL);
    }
}

/* Of an annotation gogo/protobuf makes a text nearly always; an older runtime knows no CDI devices,
 * and skips them. */
static void what_each_runtime_reads_in_its_way_is_refused(void **state)
{
    static const struct more ALL[] = {
        MORE("\x12\x05\x8a\x01\x02\x0a\x7f", 0), /* a CDI device that is longer than there is */
        MORE("\x12\x08\x52\x06\x08\x01k\x12\x01v", 0),           /* a key that is a number */
        MORE("\x12\x08\x52\x06\x0a\x01k\x13\x01v", 0),           /* a value that is a group */
        MORE("\x12\x06\x52\x02\x0a\x02\x20\x01", 0),             /* a key over the entry's end */
        MORE("\x12\x07\x52\x01\x8a\x00\x02\x20\x01", 0),         /* a tag over it */
        MORE("\x12\x04\x52\x02\x00\x01", 0),                     /* number 0 */
        MORE("\x12\x05\x52\x03\x80\x00\x01", 0),                 /* in two bytes */
        MORE("\x12\x09\x52\x07\x80\x80\x80\x80\xc0\x00\x01", 0), /* 2^31 */
        MORE("\x12\x05\x4a\x03\x08\x01k", 0),                    /* the same of a label, */
        MORE("\x1a\x05\x3a\x03\x08\x01k", 0),                    /* and of the pod's annotations */
    };

    (void)state;
    for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++) {
        struct create_container *c;

        assert_int_equal(read_with(&ALL[i], &c), RPC_INVALID_ARGUMENT);
    }
}

static void a_request_without_its_pod(void **state)
{
    struct buffer b = {0};
    struct create_container *c;
    struct devicemgr_create r;

    (void)state;
    put_request(&b, false);
    assert_int_equal(create_container_read(buffer_data(&b), buffer_len(&b), &c), RPC_OK);
    create_container_request(c, &r);
    assert_string_equal(r.pod_uid, "label-uid");
    assert_int_equal(r.sandbox_attempt, 0);
    assert_string_equal(r.pod_name, "");
    assert_int_equal(r.pod_annotations_len, 0);
    create_container_free(c);
    buffer_fini(&b);

    h2_put(&b,
           "\x0a\x03"
           "box",
           5);
    assert_int_equal(create_container_read(buffer_data(&b), buffer_len(&b), &c), RPC_OK);
    create_container_request(c, &r);
    assert_string_equal(r.pod_uid, "box");
    assert_string_equal(r.container, "");
    create_container_free(c);
    buffer_fini(&b);

    assert_int_equal(create_container_read((const uint8_t *)"", 0, &c), RPC_OK);
    create_container_request(c, &r);
    assert_string_equal(r.pod_uid, "");
    create_container_free(c);
    create_container_free(NULL);
}

/* The runtime finds what is wrong there. */
static void what_is_not_asked_for_is_not_looked_at(void **state)
{
    static const char ENV[] = "\x12\x04\x32\x02\x0a\x7f"; /* its key is longer than it */
    struct create_container *c;

    (void)state;
    assert_int_equal(create_container_read((const uint8_t *)ENV, sizeof ENV - 1, &c), RPC_OK);
    create_container_free(c);
}

/* Two labels of one key, as no kubelet sends them: the last is the one that there is in the
 * runtime. */
static void of_labels_of_one_key_the_last_counts(void **state)
{
    static const char LABELS[] = "\x12\x40\x4a\x1e\x0a\x15"
                                 "io.kubernetes.pod.uid\x12\x05"
                                 "first"
                                 "\x4a\x1e\x0a\x15"
                                 "io.kubernetes.pod.uid\x12\x05"
                                 "other";
    struct create_container *c;
    struct devicemgr_create r;

    (void)state;
    assert_int_equal(create_container_read((const uint8_t *)LABELS, sizeof LABELS - 1, &c), RPC_OK);
    create_container_request(c, &r);
    assert_string_equal(r.pod_uid, "other");
    create_container_free(c);
}

/* One message in two occurrences is their merger, field by field. */
static void what_comes_in_parts_is_one(void **state)
{
    static const char PARTS[] = "\x12\x04\x0a\x02\x10\x03" /* config: metadata: attempt 3 */
                                "\x1a\x04\x0a\x02\x20\x02" /* the pod's: attempt 2 */
                                "\x12\x06\x0a\x04\x0a\x02"
                                "me"
                                "\x1a\x05\x0a\x03\x12\x01"
                                "u";
    static const char NUMBERLESS[] = "\x12\x05\x0a\x03\x0a\x01"
                                     "i"
                                     "\x12\x06\x0a\x04\x0a\x02"
                                     "me";
    struct create_container *c;
    struct devicemgr_create r;

    (void)state;
    assert_int_equal(create_container_read((const uint8_t *)PARTS, sizeof PARTS - 1, &c), RPC_OK);
    create_container_request(c, &r);
    assert_string_equal(r.container, "me");
    assert_string_equal(r.pod_uid, "u");
    assert_int_equal(r.attempt, 3);
    assert_int_equal(r.sandbox_attempt, 2);
    create_container_free(c);

    assert_int_equal(create_container_read((const uint8_t *)NUMBERLESS, sizeof NUMBERLESS - 1, &c),
                     RPC_OK);
    create_container_request(c, &r);
    assert_string_equal(r.container, "me");
    assert_int_equal(r.attempt, 0);
    create_container_free(c);
}

/* They are not looked at, and take more memory than any other field for what they are. */
static void many_short_arguments_are_no_reason_to_refuse(void **state)
{
    enum { ARGUMENTS = 64 * 1024, BYTES = 2 * ARGUMENTS };
    struct buffer b = {0};
    struct create_container *c;

    (void)state;
    h2_put(&b, "\x12\x80\x80\x08", 4);
    for (int i = 0; i < ARGUMENTS; i++)
        h2_put(&b, "\x22", 2); /* args: "" */
    assert_int_equal(buffer_len(&b), 4 + BYTES);
    assert_int_equal(create_container_read(buffer_data(&b), buffer_len(&b), &c), RPC_OK);
    create_container_free(c);
    buffer_fini(&b);
}

static void garbage_is_told(void **state)
{
    struct buffer b = {0};
    struct create_container *c = NULL;

    (void)state;
    put_request(&b, true);
    for (size_t n = 1; n < buffer_len(&b); n++) { /* no cut may crash; most do not parse */
        int r = create_container_read(buffer_data(&b), n, &c);

        assert_true(r == RPC_OK || r == RPC_INTERNAL);
        if (r == RPC_OK)
            create_container_free(c);
    }
    buffer_fini(&b);
    for (int i = 0; i < 100000; i++) /* 300 kB that would ask for a hundred times as much */
        h2_put(&b, "\x12\x02\x32\0", 4);
    c = NULL;
    if (create_container_read(buffer_data(&b), buffer_len(&b), &c) == RPC_OK)
        create_container_free(c);
    buffer_fini(&b);
}

static uint8_t *fragment_in_front(const struct buffer *request, size_t *len)
{
    V1beta1__ContainerAllocateResponse__EnvsEntry
        env = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__ENVS_ENTRY__INIT,
        *envs[] = {&env};
    V1beta1__Mount mount = V1BETA1__MOUNT__INIT, *mounts[] = {&mount};
    V1beta1__DeviceSpec device = V1BETA1__DEVICE_SPEC__INIT, *devices[] = {&device};
    V1beta1__ContainerAllocateResponse__AnnotationsEntry
        annotation = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__ANNOTATIONS_ENTRY__INIT,
        *annotations[] = {&annotation};
    V1beta1__CDIDevice cdi = V1BETA1__CDIDEVICE__INIT, *cdis[] = {&cdi};
    V1beta1__ContainerAllocateResponse options = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
    uint8_t *bytes = NULL;

    env.key = TEXT("SAME");
    env.value = TEXT("plugin");
    mount.container_path = TEXT("/in");
    mount.host_path = TEXT("/out");
    mount.read_only = true;
    device.container_path = TEXT("/dev/a");
    device.host_path = TEXT("/dev/b");
    device.permissions = TEXT("rw");
    annotation.key = TEXT("token");
    annotation.value = TEXT("of the plugin");
    cdi.name = TEXT("vendor.com/gpu=0");
    options.n_envs = options.n_mounts = options.n_devices = options.n_annotations = 1;
    options.n_cdi_devices = 1;
    options.envs = envs;
    options.mounts = mounts;
    options.devices = devices;
    options.annotations = annotations;
    options.cdi_devices = cdis;
    return create_container_fragment(&options, buffer_data(request), buffer_len(request), &bytes,
                                     len) == 0
               ? bytes
               : NULL;
}

static void a_fragment_merges_as_the_kubelet_does(void **state)
{
    struct buffer b = {0};
    size_t len = 0;
    uint8_t *fragment = fragment_in_front(&b, &len);
    Runtime__V1__CreateContainerRequest *m;

    (void)state;
    assert_non_null(fragment);
    h2_put(&b, fragment, len);
    free(fragment);
    put_request(&b, true);
    m = runtime__v1__create_container_request__unpack(NULL, buffer_len(&b), buffer_data(&b));
    assert_non_null(m);
    assert_string_equal(m->pod_sandbox_id, "sandbox-1");
    assert_string_equal(m->sandbox_config->metadata->uid, "uid-1");
    assert_string_equal(m->config->metadata->name, "main");
    assert_int_equal(m->config->n_envs, 2); /* the plugin's first: the pod's wins */
    assert_memory_equal(m->config->envs[0]->value.data, "plugin", 6);
    assert_memory_equal(m->config->envs[1]->value.data, "pod", 3);
    assert_int_equal(m->config->n_annotations, 3); /* of one key, the later is the map's */
    assert_string_equal(m->config->annotations[1]->value, "of the pod");
    assert_int_equal(m->config->n_mounts, 1);
    assert_string_equal(m->config->mounts[0]->container_path, "/in");
    assert_string_equal(m->config->mounts[0]->host_path, "/out");
    assert_true(m->config->mounts[0]->readonly);
    assert_false(m->config->mounts[0]->selinux_relabel);
    assert_int_equal(m->config->mounts[0]->propagation, 0);
    assert_int_equal(m->config->mounts[0]->n_uidmappings, 0);
    assert_int_equal(m->config->mounts[0]->n_gidmappings, 0);
    assert_string_equal(m->config->devices[0]->container_path, "/dev/a");
    assert_string_equal(m->config->devices[0]->host_path, "/dev/b");
    assert_string_equal(m->config->devices[0]->permissions, "rw");
    assert_string_equal(m->config->cdi_devices[0]->name, "vendor.com/gpu=0");
    assert_int_equal(m->base.n_unknown_fields, 1);
    assert_int_equal(m->base.unknown_fields[0].tag, 1023);
    runtime__v1__create_container_request__free_unpacked(m, NULL);
    buffer_fini(&b);
}

/* In two parts: config.linux.security_context.namespace_options.userns_options: mode POD, uids
 * {host_id 131072, 0, length 65536}; gids {host_id 196608, 1, length 65535}; more behind them that
 * protobuf-c does not read. */
#define USERS                                                                                      \
    "\x12\x14\x7a\x12\x12\x10\x1a\x0e\x2a\x0c\x08\x00\x12\x08\x08\x80\x80\x08\x18\x80\x80\x04"     \
    "\x12\x14\x7a\x12\x12\x10\x1a\x0e\x2a\x0c\x1a\x0a\x08\x80\x80\x0c\x10\x01\x18\xff\xff\x03"     \
    "\x12\x06\xc3\x3e\x08\x01\xc4\x3e"
#define USERS_LEN (sizeof USERS - 1)

static void assert_mapping(const Runtime__V1__IDMapping *mapping, uint32_t host_id,
                           uint32_t container_id, uint32_t length)
{
    assert_int_equal(mapping->host_id, host_id);
    assert_int_equal(mapping->container_id, container_id);
    assert_int_equal(mapping->length, length);
}

static void mounts_in_a_user_namespace_are_mapped(void **state)
{
    struct buffer b = {0};
    size_t len = 0;
    uint8_t *fragment;
    Runtime__V1__CreateContainerRequest *m;
    Runtime__V1__Mount *mount;

    (void)state;
    h2_put(&b, USERS, USERS_LEN);
    fragment = fragment_in_front(&b, &len);
    m = runtime__v1__create_container_request__unpack(NULL, len, fragment);
    assert_non_null(m);
    assert_null(m->config->linux);
    mount = m->config->mounts[0];
    assert_int_equal(mount->n_uidmappings, 1);
    assert_mapping(mount->uidmappings[0], 131072, 0, 65536);
    assert_int_equal(mount->n_gidmappings, 1);
    assert_mapping(mount->gidmappings[0], 196608, 1, 65535);
    runtime__v1__create_container_request__free_unpacked(m, NULL);
    free(fragment);
    buffer_fini(&b);
}

/* The runtime finds what is wrong there. */
static void who_is_who_cannot_be_read(void **state)
{
    static const char ALL[][5] = {"\x12\x02\x7a\x02", "\x12\x02\x78\x01", "\x12\x02\x7a\x00"};

    (void)state;
    for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++) {
        struct buffer b = {0};
        size_t len = 0;
        uint8_t *fragment;
        Runtime__V1__CreateContainerRequest *m;

        h2_put(&b, ALL[i], 4);
        fragment = fragment_in_front(&b, &len);
        m = runtime__v1__create_container_request__unpack(NULL, len, fragment);
        assert_non_null(m);
        assert_int_equal(m->config->mounts[0]->n_uidmappings, 0);
        runtime__v1__create_container_request__free_unpacked(m, NULL);
        free(fragment);
        buffer_fini(&b);
    }
}

static void put_uids(struct buffer *out, Runtime__V1__IDMapping **uids, size_t uids_len)
{
    Runtime__V1__UserNamespace users = RUNTIME__V1__USER_NAMESPACE__INIT;
    Runtime__V1__NamespaceOption namespaces = RUNTIME__V1__NAMESPACE_OPTION__INIT;
    Runtime__V1__LinuxContainerSecurityContext security; /* its macro names deprecated fields */
    Runtime__V1__LinuxContainerConfig its = RUNTIME__V1__LINUX_CONTAINER_CONFIG__INIT;
    Runtime__V1__ContainerConfig config = RUNTIME__V1__CONTAINER_CONFIG__INIT;
    Runtime__V1__CreateContainerRequest request = RUNTIME__V1__CREATE_CONTAINER_REQUEST__INIT;
    uint8_t bytes[4096];

    runtime__v1__linux_container_security_context__init(&security);
    users.uids = uids;
    users.n_uids = uids_len;
    namespaces.userns_options = &users;
    security.namespace_options = &namespaces;
    its.security_context = &security;
    config.linux = &its;
    request.config = &config;
    assert_true(runtime__v1__create_container_request__get_packed_size(&request) <= sizeof bytes);
    h2_put(out, bytes, runtime__v1__create_container_request__pack(&request, bytes));
}

/* Each mount would have what the request has once. */
static void who_is_who_for_too_many_mounts(void **state)
{
    enum { UIDS = 1024, MOUNTS = RELAY_MESSAGE_BYTES_MAX / 20 / UIDS + 1 };
    static V1beta1__Mount *mounts[MOUNTS];
    static Runtime__V1__IDMapping *uids[UIDS];
    Runtime__V1__IDMapping uid = RUNTIME__V1__IDMAPPING__INIT;
    V1beta1__Mount mount = V1BETA1__MOUNT__INIT;
    V1beta1__ContainerAllocateResponse options = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
    struct buffer b = {0};
    uint8_t *bytes;
    size_t len;

    (void)state;
    for (size_t i = 0; i < UIDS; i++)
        uids[i] = &uid;
    for (size_t i = 0; i < MOUNTS; i++)
        mounts[i] = &mount;
    put_uids(&b, uids, UIDS);
    options.mounts = mounts;
    options.n_mounts = MOUNTS;
    assert_int_equal(
        create_container_fragment(&options, buffer_data(&b), buffer_len(&b), &bytes, &len),
        -EMSGSIZE);
    options.n_mounts = MOUNTS - 1;
    assert_int_equal(
        create_container_fragment(&options, buffer_data(&b), buffer_len(&b), &bytes, &len), 0);
    free(bytes);
    buffer_fini(&b);
}

static void empty_options_change_nothing(void **state)
{
    V1beta1__ContainerAllocateResponse options = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
    uint8_t *bytes;
    size_t len;

    (void)state;
    assert_int_equal(
        create_container_fragment(&options, (const uint8_t *)USERS, USERS_LEN, &bytes, &len), 0);
    assert_int_equal(len, 2); /* an empty config, which merges to what is there */
    assert_memory_equal(bytes, "\x12\0", 2);
    free(bytes);
}

static void without_memory_nothing_leaks(void **state)
{
    struct buffer b = {0};
    bool failed = true;

    (void)state;
    put_request(&b, true);
    h2_put(&b, "\x12\x04\xc3\x3e\xc4\x3e", 6); /* a group: it is read twice */
    h2_put(&b, USERS, USERS_LEN);
    for (unsigned n = 1; failed; n++) {
        struct create_container *c = NULL;
        uint8_t *fragment;
        size_t len;
        int r;

        alloc_fail_at(n);
        alloc_fail_enable(true);
        r = create_container_read(buffer_data(&b), buffer_len(&b), &c);
        fragment = fragment_in_front(&b, &len);
        alloc_fail_enable(false);
        failed = alloc_failed();
        assert_true(fragment || failed);
        free(fragment);
        assert_true(r == RPC_OK || (failed && r == RPC_RESOURCE_EXHAUSTED));
        if (r == RPC_OK)
            create_container_free(c);
    }
    alloc_fail_at(0);
    buffer_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_read),
        cmocka_unit_test(what_only_the_runtimes_read_is_read),
        cmocka_unit_test(what_nobody_reads_is_told),
        cmocka_unit_test(what_each_runtime_reads_in_its_way_is_refused),
        cmocka_unit_test(a_request_without_its_pod),
        cmocka_unit_test(what_is_not_asked_for_is_not_looked_at),
        cmocka_unit_test(of_labels_of_one_key_the_last_counts),
        cmocka_unit_test(what_comes_in_parts_is_one),
        cmocka_unit_test(many_short_arguments_are_no_reason_to_refuse),
        cmocka_unit_test(garbage_is_told),
        cmocka_unit_test(a_fragment_merges_as_the_kubelet_does),
        cmocka_unit_test(mounts_in_a_user_namespace_are_mapped),
        cmocka_unit_test(who_is_who_cannot_be_read),
        cmocka_unit_test(who_is_who_for_too_many_mounts),
        cmocka_unit_test(empty_options_change_nothing),
        cmocka_unit_test(without_memory_nothing_leaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

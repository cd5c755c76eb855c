/*
 * Rewriting a CreateContainer request: what protobuf makes of fragment + original must be what the
 * merge rules say (create_container.h).
 *
 * Input: a byte with the number of options, each as a letter of its kind and its texts up to a NUL;
 * the rest is the original. Repeated fields: the options' come first, the original's follow
 * unchanged; mounts have the ids of the original's user namespace. Annotations: the last of a key
 * counts, so the original's. All else is the original's to the byte, unknown fields too. What
 * parses must not be called unreadable, and what is read of it says what the whole does
 * (create_container_read() looks at a part only, so it may read what does not parse); so it must
 * with more behind it that protobuf-c does not read, and the runtimes do (wire.h). With
 * mounts redirected (mount_redirect.h) it is the original but for those paths; with CDI names once
 * (cdi_names.h), but for those left out; with references to the options' envs replaced
 * (command_vars.h), but for those texts, which are what a kubelet's way of expanding makes of them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cri-proto/create_v1.pb-c.h"
#include "cri-proto/cri_v1.pb-c.h"
#include "cri-proto/deviceplugin_v1beta1.pb-c.h"
#include "cri-proto/field_numbers.h"
#include "cri-proto/lift_marker.h"
#include "shim/relay/cdi_names.h"
#include "shim/relay/command_vars.h"
#include "shim/relay/create_container.h"
#include "shim/relay/limits.h"
#include "shim/relay/mount_redirect.h"
#include "shim/relay/wire.h"
#include "shim/rpc/rpc.h"
#include "tests/fuzz/fuzz.h"

#define OPTIONS_MAX 32
#define REDIRECT_FROM "/tmp"
#define REDIRECT_TO                                                                                \
    "/a/directory/with/a/name/so/long/that/the/lengths/around/it/need/one/more/byte"               \
    "/each/of/them"

/* The options and the memory of their entries. */
struct options {
    V1beta1__ContainerAllocateResponse message;
    V1beta1__ContainerAllocateResponse__EnvsEntry envs[OPTIONS_MAX];
    V1beta1__ContainerAllocateResponse__EnvsEntry *env_list[OPTIONS_MAX];
    V1beta1__Mount mounts[OPTIONS_MAX];
    V1beta1__Mount *mount_list[OPTIONS_MAX];
    V1beta1__DeviceSpec devices[OPTIONS_MAX];
    V1beta1__DeviceSpec *device_list[OPTIONS_MAX];
    V1beta1__ContainerAllocateResponse__AnnotationsEntry annotations[OPTIONS_MAX];
    V1beta1__ContainerAllocateResponse__AnnotationsEntry *annotation_list[OPTIONS_MAX];
    V1beta1__CDIDevice cdi[OPTIONS_MAX];
    V1beta1__CDIDevice *cdi_list[OPTIONS_MAX];
    char *texts[3 * OPTIONS_MAX];
    size_t texts_len;
};

static char *next_text(struct options *o, struct fuzz_input *in)
{
    return o->texts[o->texts_len++] = fuzz_text(in);
}

static void add_mount(struct options *o, struct fuzz_input *in)
{
    size_t i = o->message.n_mounts++;

    v1beta1__mount__init(&o->mounts[i]);
    o->mounts[i].read_only = fuzz_u8(in) & 1;
    o->mounts[i].container_path = next_text(o, in);
    o->mounts[i].host_path = next_text(o, in);
    o->mount_list[i] = &o->mounts[i];
}

static void add_device(struct options *o, struct fuzz_input *in)
{
    size_t i = o->message.n_devices++;

    v1beta1__device_spec__init(&o->devices[i]);
    o->devices[i].container_path = next_text(o, in);
    o->devices[i].host_path = next_text(o, in);
    o->devices[i].permissions = next_text(o, in);
    o->device_list[i] = &o->devices[i];
}

static void add_annotation(struct options *o, struct fuzz_input *in)
{
    size_t i = o->message.n_annotations++;

    v1beta1__container_allocate_response__annotations_entry__init(&o->annotations[i]);
    o->annotations[i].key = next_text(o, in);
    o->annotations[i].value = next_text(o, in);
    o->annotation_list[i] = &o->annotations[i];
}

static void add_env(struct options *o, struct fuzz_input *in)
{
    size_t i = o->message.n_envs++;

    v1beta1__container_allocate_response__envs_entry__init(&o->envs[i]);
    o->envs[i].key = next_text(o, in);
    o->envs[i].value = next_text(o, in);
    o->env_list[i] = &o->envs[i];
}

static void add_cdi(struct options *o, struct fuzz_input *in)
{
    size_t i = o->message.n_cdi_devices++;

    v1beta1__cdidevice__init(&o->cdi[i]);
    o->cdi[i].name = next_text(o, in);
    o->cdi_list[i] = &o->cdi[i];
}

static void options_read(struct options *o, struct fuzz_input *in)
{
    size_t n = fuzz_u8(in) % (OPTIONS_MAX + 1);

    v1beta1__container_allocate_response__init(&o->message);
    o->message.envs = o->env_list;
    o->message.mounts = o->mount_list;
    o->message.devices = o->device_list;
    o->message.annotations = o->annotation_list;
    o->message.cdi_devices = o->cdi_list;
    for (size_t i = 0; i < n; i++) {
        switch (fuzz_u8(in)) {
        case 'm':
            add_mount(o, in);
            break;
        case 'd':
            add_device(o, in);
            break;
        case 'a':
            add_annotation(o, in);
            break;
        case 'c':
            add_cdi(o, in);
            break;
        default:
            add_env(o, in);
            break;
        }
    }
}

static void options_fini(struct options *o)
{
    for (size_t i = 0; i < o->texts_len; i++)
        free(o->texts[i]);
}

/* ---- what was put in front ---- */

static bool same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static void check_envs(const struct options *o, const Runtime__V1__ContainerConfig *config)
{
    for (size_t i = 0; i < o->message.n_envs; i++) {
        const Runtime__V1__KeyValue *env = config->envs[i];

        FUZZ_CHECK(same(env->key, o->envs[i].key), "env %s", env->key);
        FUZZ_CHECK(env->value.len == strlen(o->envs[i].value) &&
                       memcmp(env->value.data ? env->value.data : (uint8_t *)"", o->envs[i].value,
                              env->value.len) == 0,
                   "env %s", env->key);
        FUZZ_CHECK(env->base.n_unknown_fields == 0, "env %s", env->key);
    }
}

static void check_mounts(const struct options *o, const Runtime__V1__ContainerConfig *config)
{
    for (size_t i = 0; i < o->message.n_mounts; i++) {
        const Runtime__V1__Mount *mount = config->mounts[i];

        FUZZ_CHECK(same(mount->container_path, o->mounts[i].container_path) &&
                       same(mount->host_path, o->mounts[i].host_path) &&
                       mount->readonly == o->mounts[i].read_only,
                   "mount %s", mount->container_path);
        FUZZ_CHECK(!mount->selinux_relabel && mount->propagation == 0 &&
                       !mount->recursive_read_only && !mount->image && mount->n_mount_options == 0,
                   "mount %s", mount->container_path);
    }
}

static void check_devices(const struct options *o, const Runtime__V1__ContainerConfig *config)
{
    for (size_t i = 0; i < o->message.n_devices; i++) {
        const Runtime__V1__Device *device = config->devices[i];

        FUZZ_CHECK(same(device->container_path, o->devices[i].container_path) &&
                       same(device->host_path, o->devices[i].host_path) &&
                       same(device->permissions, o->devices[i].permissions),
                   "device %s", device->container_path);
    }
    for (size_t i = 0; i < o->message.n_cdi_devices; i++)
        FUZZ_CHECK(same(config->cdi_devices[i]->name, o->cdi[i].name), "%s", o->cdi[i].name);
}

/* The value that counts, the last; NULL: no such key. */
static const char *effective(const Runtime__V1__ContainerConfig *config, const char *key)
{
    for (size_t i = config ? config->n_annotations : 0; i-- > 0;) {
        if (same(config->annotations[i]->key, key))
            return config->annotations[i]->value;
    }
    return NULL;
}

static void check_annotations(const struct options *o, const Runtime__V1__ContainerConfig *original,
                              const Runtime__V1__ContainerConfig *merged)
{
    for (size_t i = 0; i < o->message.n_annotations; i++) {
        const char *key = o->annotations[i].key;
        const char *expected = effective(original, key);

        for (size_t j = o->message.n_annotations; !expected && j-- > 0;) {
            if (same(o->annotations[j].key, key))
                expected = o->annotations[j].value;
        }
        FUZZ_CHECK(same(effective(merged, key), expected), "annotation %s", key);
    }
}

/* ---- who is who ---- */

/* protobuf-c takes field numbers that the runtimes do not. */
static bool users_are_read(struct fuzz_input in)
{
    const struct wire_known what = {.message = &create__v1__users__descriptor};
    struct buffer out = {0};
    int r = wire_put_known(&out, &what, in.bytes, in.len);

    buffer_fini(&out);
    return r == 0;
}

static void check_mapping(const Runtime__V1__IDMapping *is, const Runtime__V1__IDMapping *as)
{
    FUZZ_CHECK(is->host_id == as->host_id && is->container_id == as->container_id &&
                   is->length == as->length,
               "%u, %u, %u", is->host_id, is->container_id, is->length);
}

/* As of all that the kubelet mounts in the pod's user namespace. */
static void check_users(const Runtime__V1__Mount *mount, const Runtime__V1__ContainerConfig *config,
                        bool readable)
{
    const Runtime__V1__LinuxContainerConfig *its = config->linux;
    const Runtime__V1__LinuxContainerSecurityContext *security = its ? its->security_context : NULL;
    const Runtime__V1__NamespaceOption *all = security ? security->namespace_options : NULL;
    const Runtime__V1__UserNamespace *users = all && readable ? all->userns_options : NULL;

    FUZZ_CHECK(mount->n_uidmappings == (users ? users->n_uids : 0) &&
                   mount->n_gidmappings == (users ? users->n_gids : 0),
               "mount %s", mount->container_path);
    for (size_t i = 0; i < mount->n_uidmappings; i++)
        check_mapping(mount->uidmappings[i], users->uids[i]);
    for (size_t i = 0; i < mount->n_gidmappings; i++)
        check_mapping(mount->gidmappings[i], users->gids[i]);
}

static void check_all_users(const struct options *o, struct fuzz_input original,
                            const Runtime__V1__ContainerConfig *config)
{
    bool readable = users_are_read(original);

    for (size_t i = 0; i < o->message.n_mounts; i++)
        check_users(config->mounts[i], config, readable);
}

/* ---- what was there ---- */

/* Drops the options' entries from the front of the merged message's lists. */
#define DROP_FRONT(config, list, n)                                                                \
    do {                                                                                           \
        FUZZ_CHECK((config)->n_##list >= (n), "%zu, %zu", (config)->n_##list, (size_t)(n));        \
        (config)->n_##list -= (n);                                                                 \
        if ((n) > 0)                                                                               \
            (config)->list += (n);                                                                 \
    } while (0)

static void check_equal(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    size_t a_len = protobuf_c_message_get_packed_size(a);
    size_t b_len = protobuf_c_message_get_packed_size(b);
    uint8_t *bytes = malloc(a_len + b_len + 1);

    if (!bytes)
        abort();
    protobuf_c_message_pack(a, bytes);
    protobuf_c_message_pack(b, bytes + a_len);
    FUZZ_CHECK(a_len == b_len && memcmp(bytes, bytes + a_len, a_len) == 0, "%zu, %zu bytes", a_len,
               b_len);
    free(bytes);
}

static void check_rest(const struct options *o, const Runtime__V1__CreateContainerRequest *original,
                       const Runtime__V1__CreateContainerRequest *merged)
{
    Runtime__V1__CreateContainerRequest rest = *merged;
    Runtime__V1__ContainerConfig config = *merged->config;

    DROP_FRONT(&config, envs, o->message.n_envs);
    DROP_FRONT(&config, mounts, o->message.n_mounts);
    DROP_FRONT(&config, devices, o->message.n_devices);
    DROP_FRONT(&config, annotations, o->message.n_annotations);
    DROP_FRONT(&config, cdi_devices, o->message.n_cdi_devices);
    rest.config = &config;
    if (!original->config) {
        FUZZ_CHECK(protobuf_c_message_get_packed_size(&config.base) == 0, "a config from nowhere");
        rest.config = NULL;
    }
    check_equal(&original->base, &rest.base);
}

static void check_merge(const struct options *o, struct fuzz_input original_bytes,
                        const Runtime__V1__CreateContainerRequest *original)
{
    Runtime__V1__CreateContainerRequest *merged;
    uint8_t *fragment, *bytes;
    size_t len;
    int r;

    r = create_container_fragment(&o->message, original_bytes.bytes, original_bytes.len, &fragment,
                                  &len);
    if (r == -ENOMEM && o->message.n_mounts > 0) /* ids in very many parts */
        return;
    FUZZ_CHECK(r == 0, "%d", r);
    bytes = malloc(len + original_bytes.len + 1);
    if (!bytes)
        abort();
    memcpy(bytes, fragment, len);
    if (original_bytes.len > 0)
        memcpy(bytes + len, original_bytes.bytes, original_bytes.len);
    merged = runtime__v1__create_container_request__unpack(NULL, len + original_bytes.len, bytes);
    FUZZ_CHECK((merged != NULL) == (original != NULL), "one of them parses");
    if (merged) {
        check_rest(o, original, merged);
        check_envs(o, merged->config);
        check_mounts(o, merged->config);
        check_all_users(o, original_bytes, merged->config);
        check_devices(o, merged->config);
        check_annotations(o, original->config, merged->config);
        runtime__v1__create_container_request__free_unpacked(merged, NULL);
    }
    free(fragment);
    free(bytes);
}

/* ---- reading ---- */

static void check_annotation_list(const struct devicemgr_annotation *list, size_t len)
{
    for (size_t i = 0; i < len; i++)
        FUZZ_CHECK(list[i].key && list[i].value, "annotation %zu", i);
}

static void check_same_annotations(const struct devicemgr_annotation *read, size_t i,
                                   const char *key, const char *value)
{
    FUZZ_CHECK(same(read[i].key, key) && same(read[i].value, value), "annotation %zu", i);
}

/* Of a message in two parts protobuf-c forgets the first one's number (create_v1.proto). */
static bool same_number(uint32_t read, uint32_t whole)
{
    return read == whole || whole == 0;
}

static void check_same_container(const struct create_container *c,
                                 const struct devicemgr_create *request,
                                 const Runtime__V1__ContainerConfig *config)
{
    FUZZ_CHECK(request->container_annotations_len == config->n_annotations, "%zu",
               request->container_annotations_len);
    for (size_t i = 0; i < config->n_annotations; i++)
        check_same_annotations(request->container_annotations, i, config->annotations[i]->key,
                               config->annotations[i]->value);
    FUZZ_CHECK(create_container_mounts_len(c) == config->n_mounts, "other mounts");
    for (size_t i = 0; i < config->n_mounts; i++)
        FUZZ_CHECK(same(create_container_mount(c, i), config->mounts[i]->host_path) &&
                       create_container_mount_readonly(c, i) == config->mounts[i]->readonly,
                   "mount %zu", i);
    FUZZ_CHECK(request->cdi_devices_len >= config->n_cdi_devices, "fewer CDI devices");
    for (size_t i = 0; i < config->n_cdi_devices; i++)
        FUZZ_CHECK(same(request->cdi_devices[i], config->cdi_devices[i]->name), "device %zu", i);
    if (config->metadata)
        FUZZ_CHECK(same(request->container, config->metadata->name) &&
                       same_number(request->attempt, config->metadata->attempt),
                   "%s", request->container);
}

/* What was read is what the whole says. */
static void check_same_request(const struct create_container *c,
                               const struct devicemgr_create *request,
                               const Runtime__V1__CreateContainerRequest *original)
{
    const Runtime__V1__PodSandboxConfig *sandbox = original->sandbox_config;

    FUZZ_CHECK(same(request->sandbox_id, original->pod_sandbox_id), "%s", request->sandbox_id);
    if (original->config)
        check_same_container(c, request, original->config);
    FUZZ_CHECK(request->pod_annotations_len == (sandbox ? sandbox->n_annotations : 0), "%zu",
               request->pod_annotations_len);
    for (size_t i = 0; sandbox && i < sandbox->n_annotations; i++)
        check_same_annotations(request->pod_annotations, i, sandbox->annotations[i]->key,
                               sandbox->annotations[i]->value);
    if (sandbox && sandbox->metadata)
        FUZZ_CHECK((same(request->pod_uid, sandbox->metadata->uid) || !*sandbox->metadata->uid) &&
                       same(request->pod_namespace, sandbox->metadata->namespace_) &&
                       same(request->pod_name, sandbox->metadata->name) &&
                       same_number(request->sandbox_attempt, sandbox->metadata->attempt),
                   "%s", request->pod_uid);
}

static void check_read(struct fuzz_input bytes, const Runtime__V1__CreateContainerRequest *original)
{
    struct devicemgr_create request;
    struct create_container *c;
    int code = create_container_read(bytes.bytes, bytes.len, &c);
    bool valid = original && field_numbers_valid(&original->base);

    FUZZ_CHECK(code == RPC_OK || code == RPC_RESOURCE_EXHAUSTED ||
                   ((code == RPC_INTERNAL || code == RPC_INVALID_ARGUMENT) && !valid),
               "code %d", code);
    if (code != RPC_OK)
        return;
    create_container_request(c, &request);
    FUZZ_CHECK(request.pod_uid && request.pod_namespace && request.pod_name && request.container,
               "a field without a text");
    check_annotation_list(request.container_annotations, request.container_annotations_len);
    check_annotation_list(request.pod_annotations, request.pod_annotations_len);
    if (valid)
        check_same_request(c, &request, original);
    create_container_free(c);
}

/* Fields that protobuf-c does not read (wire.h), of numbers that nobody knows: behind what it reads
 * they change nothing of what is read. */
static void check_read_with_more(struct fuzz_input bytes,
                                 const Runtime__V1__CreateContainerRequest *original)
{
    static const char MORE[] = "\xc3\x3e\x08\x01\xc4\x3e"          /* a group */
                               "\xc0\xbe\x80\x80\x80\x80\x00\x01"  /* a tag of seven bytes */
                               "\x12\x80\x80\x80\x80\x80\x00"      /* a length of six */
                               "\x12\x06\xc3\x3e\x08\x01\xc4\x3e"; /* a group in the config */
    struct fuzz_input with = {.len = bytes.len + sizeof MORE - 1};
    uint8_t *both = malloc(with.len);

    if (!both)
        abort();
    if (bytes.len > 0)
        memcpy(both, bytes.bytes, bytes.len);
    memcpy(both + bytes.len, MORE, sizeof MORE - 1);
    with.bytes = both;
    check_read(with, original);
    free(both);
}

/* ---- mounts redirected ---- */

static bool is_redirected(const Runtime__V1__Mount *mount)
{
    return !mount->readonly &&
           mount_place(mount->host_path, strlen(mount->host_path), REDIRECT_FROM) == MOUNT_AT;
}

/* `out` is the original but for paths that are to be redirected, though perhaps not for all of
 * them: a path with a NUL looks like another one when it is decoded. */
static void check_redirected(Runtime__V1__CreateContainerRequest *original,
                             const struct buffer *out)
{
    Runtime__V1__CreateContainerRequest *changed =
        runtime__v1__create_container_request__unpack(NULL, buffer_len(out), buffer_data(out));
    Runtime__V1__ContainerConfig *config = original ? original->config : NULL;

    FUZZ_CHECK(changed || !original, "it can be read no more");
    if (!original) { /* the lengths of what is changed are written in protobuf-c's way, too */
        runtime__v1__create_container_request__free_unpacked(changed, NULL);
        return;
    }
    FUZZ_CHECK(config && changed->config && config->n_mounts == changed->config->n_mounts,
               "other mounts");
    for (size_t i = 0; i < config->n_mounts; i++) {
        Runtime__V1__Mount *was = config->mounts[i], *is = changed->config->mounts[i];

        if (same(was->host_path, is->host_path))
            continue;
        FUZZ_CHECK(is_redirected(was) && same(is->host_path, REDIRECT_TO), "%s, %s", was->host_path,
                   is->host_path);
        free(is->host_path);
        is->host_path = strdup(was->host_path);
        if (!is->host_path)
            abort();
    }
    check_equal(&original->base, &changed->base);
    runtime__v1__create_container_request__free_unpacked(changed, NULL);
}

static void check_redirect(struct fuzz_input bytes, Runtime__V1__CreateContainerRequest *original)
{
    struct buffer out = {0}, again = {0};
    int r = mount_redirect(bytes.bytes, bytes.len, REDIRECT_FROM, REDIRECT_TO, &out);

    FUZZ_CHECK(r == 0 || r == 1, "%d", r);
    FUZZ_CHECK(r == 1 || !out.bytes, "bytes of nothing");
    if (r == 0)
        return;
    FUZZ_CHECK(mount_redirect(buffer_data(&out), buffer_len(&out), REDIRECT_FROM, REDIRECT_TO,
                              &again) == 0,
               "there is one left");
    check_redirected(original, &out);
    buffer_fini(&out);
}

/* ---- names of CDI devices ---- */

static bool has_device(const Runtime__V1__ContainerConfig *config, size_t len, const char *name)
{
    for (size_t i = 0; i < len; i++) {
        if (same(config->cdi_devices[i]->name, name))
            return true;
    }
    return false;
}

static size_t distinct(const Runtime__V1__ContainerConfig *config)
{
    size_t n = 0;

    for (size_t i = 0; config && i < config->n_cdi_devices; i++)
        n += !has_device(config, i, config->cdi_devices[i]->name);
    return n;
}

/* Whether a name may be one that no runtime is to see. */
static bool may_have_marker(struct fuzz_input bytes)
{
    return memmem(bytes.bytes, bytes.len, LIFT_MARKER_PREFIX, strlen(LIFT_MARKER_PREFIX));
}

/* Each device is still there, once, and no annotation is without a name that had one. A name with a
 * NUL looks like another one when it is decoded. */
static void check_names(struct fuzz_input bytes, Runtime__V1__CreateContainerRequest *original,
                        bool field_read)
{
    Runtime__V1__CreateContainerRequest *changed;
    struct buffer out = {0}, again = {0};
    size_t left_out = 0;
    const struct cdi_names names = {.field_read = field_read};
    int r = cdi_names_once(bytes.bytes, bytes.len, &names, &out, &left_out);

    FUZZ_CHECK(r == 0 || r == 1, "%d", r);
    FUZZ_CHECK(r == 1 || !out.bytes, "bytes of nothing");
    if (r == 0)
        return;
    FUZZ_CHECK(left_out > 0 || may_have_marker(bytes), "none");
    FUZZ_CHECK(cdi_names_once(buffer_data(&out), buffer_len(&out), &names, &again, &left_out) == 0,
               "there is one left");
    changed =
        runtime__v1__create_container_request__unpack(NULL, buffer_len(&out), buffer_data(&out));
    FUZZ_CHECK(changed || !original, "it can be read no more");
    if (original && !memchr(bytes.bytes, '\0', bytes.len) && !may_have_marker(bytes))
        FUZZ_CHECK(
            distinct(changed->config) == distinct(original->config) &&
                (!changed->config || changed->config->n_cdi_devices == distinct(changed->config)),
            "another device");
    runtime__v1__create_container_request__free_unpacked(changed, NULL);
    buffer_fini(&out);
}

/* ---- references to variables ---- */

struct expansion {
    const struct options *options;
    const Runtime__V1__ContainerConfig *config;
    size_t put; /* bytes; once it is too large for a message, no more */
    bool found;
};

/* The value of the options' variable; NULL: there is none, or the request sets it, too. */
static const char *value_of(const struct expansion *e, const char *name, size_t len)
{
    const Runtime__V1__ContainerConfig *config = e->config;
    const struct options *o = e->options;

    for (size_t i = 0; i < config->n_envs; i++) {
        if (strlen(config->envs[i]->key) == len && memcmp(config->envs[i]->key, name, len) == 0)
            return NULL;
    }
    for (size_t i = o->message.n_envs; i-- > 0;) {
        if (strlen(o->envs[i].key) == len && memcmp(o->envs[i].key, name, len) == 0)
            return o->envs[i].value;
    }
    return NULL;
}

/* As Expand() of third_party/forked/golang/expansion goes along, but for "$$". */
static void expand_text(struct expansion *e, const char *text, FILE *out)
{
    for (const char *at = text; *at && e->put <= RELAY_MESSAGE_BYTES_MAX; at++) {
        const char *closer = at[0] == '$' && at[1] == '(' ? strchr(at + 2, ')') : NULL;
        const char *value = closer ? value_of(e, at + 2, (size_t)(closer - at - 2)) : NULL;
        size_t len = value ? strlen(value) : closer ? (size_t)(closer + 1 - at) : 1;

        e->found = e->found || value;
        e->put += len;
        fwrite(value ? value : at, 1, len, out);
        at = closer ? closer : at;
    }
}

static void expand_texts(struct expansion *e, char **texts, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char *text = NULL;
        size_t text_len;
        FILE *out = open_memstream(&text, &text_len);

        if (!out)
            abort();
        expand_text(e, texts[i], out);
        if (fclose(out) != 0)
            abort();
        free(texts[i]);
        texts[i] = text;
    }
}

/* Whether there was something to expand. */
static bool expand_config(const struct options *o, Runtime__V1__ContainerConfig *config)
{
    struct expansion e = {o, config, 0, false};

    if (config) {
        expand_texts(&e, config->command, config->n_command);
        expand_texts(&e, config->args, config->n_args);
    }
    return e.found;
}

/* A text with a NUL looks like another one when it is decoded. */
static void check_vars(const struct options *o, struct fuzz_input bytes)
{
    Runtime__V1__CreateContainerRequest *expected, *changed;
    struct buffer out = {0};
    int r = command_vars_expand(bytes.bytes, bytes.len, &o->message, &out);

    FUZZ_CHECK(r == 0 || r == 1 || r == -EMSGSIZE, "%d", r);
    FUZZ_CHECK(r == 1 || !out.bytes, "bytes of nothing");
    if (r != 1)
        return;
    expected = runtime__v1__create_container_request__unpack(NULL, bytes.len, bytes.bytes);
    changed =
        runtime__v1__create_container_request__unpack(NULL, buffer_len(&out), buffer_data(&out));
    FUZZ_CHECK(changed || !expected, "it can be read no more");
    if (expected && !memchr(bytes.bytes, '\0', bytes.len)) {
        FUZZ_CHECK(expand_config(o, expected->config), "it names none");
        check_equal(&expected->base, &changed->base);
    }
    runtime__v1__create_container_request__free_unpacked(expected, NULL);
    runtime__v1__create_container_request__free_unpacked(changed, NULL);
    buffer_fini(&out);
}

/* ---- packed in the one way ---- */

/* Whether protobuf-c knows all that mount_redirect() and command_vars_expand() walk over: then it
 * packs it in the one way. */
static bool is_plain(const Runtime__V1__CreateContainerRequest *request)
{
    const Runtime__V1__ContainerConfig *config = request->config;
    size_t unknown = request->base.n_unknown_fields;

    if (config)
        unknown += config->base.n_unknown_fields;
    for (size_t i = 0; config && i < config->n_mounts; i++)
        unknown += config->mounts[i]->base.n_unknown_fields;
    for (size_t i = 0; config && i < config->n_envs; i++)
        unknown += config->envs[i]->base.n_unknown_fields;
    return unknown == 0;
}

static uint8_t *pack(const Runtime__V1__CreateContainerRequest *request, size_t *len)
{
    uint8_t *bytes = malloc(runtime__v1__create_container_request__get_packed_size(request) + 1);

    if (!bytes)
        abort();
    *len = runtime__v1__create_container_request__pack(request, bytes);
    return bytes;
}

static void check_bytes(const struct buffer *out, const uint8_t *bytes, size_t len)
{
    FUZZ_CHECK(buffer_len(out) == len && memcmp(buffer_data(out), bytes, len) == 0,
               "%zu, %zu bytes", buffer_len(out), len);
}

/* Of a request in the one way of packing: every mount, and to the byte. */
static void check_redirect_plain(Runtime__V1__CreateContainerRequest *request)
{
    Runtime__V1__ContainerConfig *config = request->config;
    size_t before_len, after_len, redirected = 0;
    uint8_t *before = pack(request, &before_len), *after;
    struct buffer out = {0};
    int r = mount_redirect(before, before_len, REDIRECT_FROM, REDIRECT_TO, &out);

    for (size_t i = 0; config && i < config->n_mounts; i++) {
        if (!is_redirected(config->mounts[i]))
            continue;
        redirected++;
        free(config->mounts[i]->host_path);
        config->mounts[i]->host_path = strdup(REDIRECT_TO);
        if (!config->mounts[i]->host_path)
            abort();
    }
    after = pack(request, &after_len);
    FUZZ_CHECK(r == (redirected > 0), "%d, %zu mounts", r, redirected);
    if (r == 1)
        check_bytes(&out, after, after_len);
    buffer_fini(&out);
    free(before);
    free(after);
}

/* Of a request in the one way of packing: every text, and to the byte. */
static void check_vars_plain(const struct options *o, Runtime__V1__CreateContainerRequest *request)
{
    size_t before_len, after_len;
    uint8_t *before = pack(request, &before_len), *after;
    struct buffer out = {0};
    int r = command_vars_expand(before, before_len, &o->message, &out);
    bool changed = expand_config(o, request->config);

    after = pack(request, &after_len);
    if (r == -EMSGSIZE)
        FUZZ_CHECK(after_len > RELAY_MESSAGE_BYTES_MAX, "%zu bytes", after_len);
    else
        FUZZ_CHECK(r == changed, "%d, %d", r, changed);
    if (r == 1)
        check_bytes(&out, after, after_len);
    buffer_fini(&out);
    free(before);
    free(after);
}

/* protobuf-c drops what a tag of five bytes has over 32 bits, and reads a boolean of whichever
 * type; a runtime refuses most of those. */
static bool is_read_by_a_runtime(struct fuzz_input in)
{
    static const ProtobufCMessageDescriptor *const with_boolean[] = {
        &create__v1__mount__descriptor};
    const struct wire_known what = {&create__v1__request__descriptor, with_boolean, 1};
    struct buffer out = {0};
    int r = wire_put_known(&out, &what, in.bytes, in.len);

    buffer_fini(&out);
    return r == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    Runtime__V1__CreateContainerRequest *original;
    struct options *o = calloc(1, sizeof *o);

    if (!o)
        abort();
    options_read(o, &in);
    original = runtime__v1__create_container_request__unpack(NULL, in.len, in.bytes);
    check_read(in, original);
    if (original && field_numbers_valid(&original->base) && is_read_by_a_runtime(in))
        check_read_with_more(in, original);
    check_merge(o, in, original);
    check_redirect(in, original);
    check_names(in, original, false);
    check_names(in, original, true);
    check_vars(o, in);
    if (original && is_plain(original)) {
        check_redirect_plain(original);
        check_vars_plain(o, original);
    }
    if (original)
        runtime__v1__create_container_request__free_unpacked(original, NULL);
    options_fini(o);
    free(o);
    return 0;
}

#include "shim/relay/create_container.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cri-proto/create_v1.pb-c.h"
#include "cri-proto/cri_v1.pb-c.h"
#include "shim/relay/cdi_names.h"
#include "shim/relay/limits.h"
#include "shim/relay/wire.h"
#include "shim/rpc/message.h"
#include "shim/rpc/rpc.h"

#define LABEL_POD_UID "io.kubernetes.pod.uid"
#define LABEL_POD_NAME "io.kubernetes.pod.name"
#define LABEL_POD_NAMESPACE "io.kubernetes.pod.namespace"

/* Three numbers of 32 bits, with what stands before each and before all. */
#define ID_MAPPING_BYTES_MAX 20

struct create_container {
    struct message_arena arena;
    const Create__V1__Request *request; /* in the arena */
    struct devicemgr_annotation *container_annotations;
    struct devicemgr_annotation *pod_annotations;
    const char **cdi_devices; /* those of the field, then those of annotations */
    size_t cdi_devices_len;
    char *annotated; /* what the latter are in: the annotations' values, cut */
};

/* ---- names of CDI devices ---- */

static bool names_cdi(const Create__V1__Config__AnnotationsEntry *annotation)
{
    return strncmp(annotation->key, CDI_NAMES_ANNOTATION, strlen(CDI_NAMES_ANNOTATION)) == 0;
}

/* Counts as many as there may be, and the bytes of their texts. */
static void count_annotated(const Create__V1__Config *config, size_t *names, size_t *bytes)
{
    *names = *bytes = 0;
    for (size_t i = 0; i < config->n_annotations; i++) {
        const char *value = config->annotations[i]->value;

        if (!names_cdi(config->annotations[i]))
            continue;
        *bytes += strlen(value) + 1;
        *names += 1;
        for (; *names < RELAY_CDI_NAMES_MAX && (value = strchr(value, ',')); value++)
            *names += 1;
    }
}

/* There is room for them. */
static void take_annotated(struct create_container *c, size_t most)
{
    const Create__V1__Config *config = c->request->config;
    char *at = c->annotated;

    for (size_t i = 0; i < config->n_annotations; i++) {
        char *rest = at, *name;

        if (!names_cdi(config->annotations[i]))
            continue;
        at = stpcpy(at, config->annotations[i]->value) + 1;
        while (c->cdi_devices_len < most && (name = strsep(&rest, ",")))
            c->cdi_devices[c->cdi_devices_len++] = name;
    }
}

/* False: out of memory. */
static bool read_cdi(struct create_container *c)
{
    const Create__V1__Config *config = c->request->config;
    size_t names, bytes;

    if (!config)
        return true;
    count_annotated(config, &names, &bytes);
    c->annotated = malloc(bytes + 1);
    c->cdi_devices = calloc(config->n_cdi_devices + names + 1, sizeof *c->cdi_devices);
    if (!c->annotated || !c->cdi_devices)
        return false;
    for (size_t i = 0; i < config->n_cdi_devices; i++)
        c->cdi_devices[c->cdi_devices_len++] = config->cdi_devices[i]->name;
    take_annotated(c, config->n_cdi_devices + names);
    return true;
}

/* ---- the request ---- */

static const Create__V1__Request *unpack(struct create_container *c, const uint8_t *bytes,
                                         size_t len, int *code)
{
    c->arena = (struct message_arena){.most = RELAY_DECODED_BYTES_MAX};
    return (const Create__V1__Request *)message_unpack(&create__v1__request__descriptor, bytes, len,
                                                       &c->arena, code);
}

/* containerd 1.6 knows no CDI devices. */
static const ProtobufCMessageDescriptor *const UNCERTAIN[] = {
    &create__v1__config__labels_entry__descriptor,
    &create__v1__config__annotations_entry__descriptor,
    &create__v1__sandbox__annotations_entry__descriptor,
    &create__v1__cdidevice__descriptor,
};

static const struct wire_known KNOWN = {&create__v1__request__descriptor, UNCERTAIN,
                                        sizeof UNCERTAIN / sizeof *UNCERTAIN};

/* What protobuf-c does not read, and the runtimes do. */
static const Create__V1__Request *unpack_known(struct create_container *c, const uint8_t *bytes,
                                               size_t len, int *code)
{
    const Create__V1__Request *request = NULL;
    struct buffer known = {0};

    message_arena_fini(&c->arena);
    switch (wire_put_known(&known, &KNOWN, bytes, len)) {
    case 0:
        request = unpack(c, buffer_data(&known), buffer_len(&known), code);
        break;
    case -EBADMSG:
        *code = RPC_INTERNAL;
        break;
    case -EILSEQ:
        *code = RPC_INVALID_ARGUMENT;
        break;
    default:
        *code = RPC_RESOURCE_EXHAUSTED;
        break;
    }
    buffer_fini(&known);
    return request;
}

int create_container_read(const uint8_t *bytes, size_t len, struct create_container **out)
{
    struct create_container *c = calloc(1, sizeof *c);
    const Create__V1__Request *request;
    int code = RPC_RESOURCE_EXHAUSTED;

    if (!c)
        return RPC_RESOURCE_EXHAUSTED;
    request = unpack(c, bytes, len, &code);
    if (!request && code == RPC_INTERNAL)
        request = unpack_known(c, bytes, len, &code);
    if (!request) {
        create_container_free(c);
        return code;
    }
    c->request = request;
    /* One more than there are: never 0. */
    c->container_annotations = calloc(request->config ? request->config->n_annotations + 1 : 1,
                                      sizeof *c->container_annotations);
    c->pod_annotations =
        calloc(request->sandbox_config ? request->sandbox_config->n_annotations + 1 : 1,
               sizeof *c->pod_annotations);
    if (!c->container_annotations || !c->pod_annotations || !read_cdi(c)) {
        create_container_free(c);
        return RPC_RESOURCE_EXHAUSTED;
    }
    *out = c;
    return RPC_OK;
}

void create_container_free(struct create_container *c)
{
    if (!c)
        return;
    message_arena_fini(&c->arena);
    free(c->container_annotations);
    free(c->pod_annotations);
    free(c->cdi_devices);
    free(c->annotated);
    free(c);
}

/* Of entries with one key the last one is in a map. */
static const char *label(const Create__V1__Config *config, const char *key)
{
    for (size_t i = config ? config->n_labels : 0; i > 0; i--) {
        if (strcmp(config->labels[i - 1]->key, key) == 0)
            return config->labels[i - 1]->value;
    }
    return "";
}

/* The last one counts; there may be none. */
static uint32_t last(const uint32_t *numbers, size_t len)
{
    return len > 0 ? numbers[len - 1] : 0;
}

static void take_pod(const Create__V1__Request *request, struct devicemgr_create *out)
{
    const Create__V1__Sandbox *sandbox = request->sandbox_config;
    const Create__V1__Pod *pod = sandbox ? sandbox->metadata : NULL;

    out->sandbox_attempt = pod ? last(pod->attempt, pod->n_attempt) : 0;
    out->pod_uid = pod ? pod->uid : label(request->config, LABEL_POD_UID);
    out->pod_namespace = pod ? pod->namespace_ : label(request->config, LABEL_POD_NAMESPACE);
    out->pod_name = pod ? pod->name : label(request->config, LABEL_POD_NAME);
    if (!*out->pod_uid)
        out->pod_uid = request->pod_sandbox_id;
}

void create_container_request(struct create_container *c, struct devicemgr_create *out)
{
    const Create__V1__Config *config = c->request->config;
    const Create__V1__Sandbox *sandbox = c->request->sandbox_config;

    *out = (struct devicemgr_create){.sandbox_id = c->request->pod_sandbox_id, .container = ""};
    take_pod(c->request, out);
    if (config && config->metadata) {
        out->container = config->metadata->name;
        out->attempt = last(config->metadata->attempt, config->metadata->n_attempt);
    }
    for (size_t i = 0; config && i < config->n_annotations; i++) {
        c->container_annotations[i].key = config->annotations[i]->key;
        c->container_annotations[i].value = config->annotations[i]->value;
    }
    out->container_annotations = c->container_annotations;
    out->container_annotations_len = config ? config->n_annotations : 0;
    for (size_t i = 0; sandbox && i < sandbox->n_annotations; i++) {
        c->pod_annotations[i].key = sandbox->annotations[i]->key;
        c->pod_annotations[i].value = sandbox->annotations[i]->value;
    }
    out->pod_annotations = c->pod_annotations;
    out->pod_annotations_len = sandbox ? sandbox->n_annotations : 0;
    out->cdi_devices = c->cdi_devices;
    out->cdi_devices_len = c->cdi_devices_len;
    out->cdi_annotated_len = c->cdi_devices_len - (config ? config->n_cdi_devices : 0);
}

size_t create_container_mounts_len(const struct create_container *c)
{
    return c->request->config ? c->request->config->n_mounts : 0;
}

const char *create_container_mount(const struct create_container *c, size_t index)
{
    return c->request->config->mounts[index]->host_path;
}

bool create_container_mount_readonly(const struct create_container *c, size_t index)
{
    return c->request->config->mounts[index]->readonly;
}

/* ---- who is who ---- */

/* Of the pod's user namespace; NULL: nothing is said of one. */
static const Create__V1__Users__UserNamespace *user_namespace(const Create__V1__Users *users)
{
    const Create__V1__Users__Config *config = users->config;
    const Create__V1__Users__Linux *its = config ? config->linux : NULL;
    const Create__V1__Users__Security *security = its ? its->security_context : NULL;
    const Create__V1__Users__Namespaces *all = security ? security->namespace_options : NULL;

    return all ? all->userns_options : NULL;
}

/* Reads it into the arena: *out, or NULL. Of what the runtimes do not read, either, they say so.
 * 0, -ENOMEM or -EMSGSIZE. */
static int read_users(const uint8_t *bytes, size_t len, struct message_arena *arena,
                      const Create__V1__Users__UserNamespace **out)
{
    static const struct wire_known USERS = {.message = &create__v1__users__descriptor};
    const Create__V1__Users *users = NULL;
    struct buffer known = {0};
    int r = wire_put_known(&known, &USERS, bytes, len), code;

    if (r == 0)
        users = (const Create__V1__Users *)message_unpack(USERS.message, buffer_data(&known),
                                                          buffer_len(&known), arena, &code);
    buffer_fini(&known);
    *out = users ? user_namespace(users) : NULL;
    if (r == -EBADMSG)
        return 0;
    return r == 0 && !users ? -ENOMEM : r;
}

/* ---- the fragment ---- */

/* Arrays of one kind of message and of the pointers protobuf-c wants to them, in one allocation
 * each. */
struct fragment {
    Runtime__V1__KeyValue *envs;
    Runtime__V1__KeyValue **env_list;
    Runtime__V1__Mount *mounts;
    Runtime__V1__Mount **mount_list;
    struct message_arena arena;
    const Create__V1__Users__UserNamespace *users; /* in the arena; NULL: none, or no mounts */
    Runtime__V1__Device *devices;
    Runtime__V1__Device **device_list;
    Runtime__V1__ContainerConfig__AnnotationsEntry *annotations;
    Runtime__V1__ContainerConfig__AnnotationsEntry **annotation_list;
    Runtime__V1__CDIDevice *cdi;
    Runtime__V1__CDIDevice **cdi_list;
};

static void fragment_fini(struct fragment *f)
{
    free(f->envs);
    free(f->env_list);
    free(f->mounts);
    free(f->mount_list);
    message_arena_fini(&f->arena);
    free(f->devices);
    free(f->device_list);
    free(f->annotations);
    free(f->annotation_list);
    free(f->cdi);
    free(f->cdi_list);
}

#define ALLOCATE(items, list, n)                                                                   \
    ((items) = calloc((n) + 1, sizeof *(items)), (list) = calloc((n) + 1, sizeof *(list)),         \
     (items) && (list))

static int fragment_init(struct fragment *f, const V1beta1__ContainerAllocateResponse *o)
{
    *f = (struct fragment){.arena.most = RELAY_USERS_BYTES_MAX};
    if (ALLOCATE(f->envs, f->env_list, o->n_envs) &&
        ALLOCATE(f->mounts, f->mount_list, o->n_mounts) &&
        ALLOCATE(f->devices, f->device_list, o->n_devices) &&
        ALLOCATE(f->annotations, f->annotation_list, o->n_annotations) &&
        ALLOCATE(f->cdi, f->cdi_list, o->n_cdi_devices))
        return 0;
    fragment_fini(f);
    return -ENOMEM;
}

static void put_envs(struct fragment *f, const V1beta1__ContainerAllocateResponse *o)
{
    for (size_t i = 0; i < o->n_envs; i++) {
        runtime__v1__key_value__init(&f->envs[i]);
        f->envs[i].key = o->envs[i]->key;
        f->envs[i].value.data = (uint8_t *)o->envs[i]->value;
        f->envs[i].value.len = strlen(o->envs[i]->value);
        f->env_list[i] = &f->envs[i];
    }
}

/* Whether a message may have no room for them with each mount; the kernel takes 340 of each. */
static bool are_too_many(const Create__V1__Users__UserNamespace *users, size_t mounts)
{
    return users && (users->n_uids + users->n_gids) * mounts >
                        RELAY_MESSAGE_BYTES_MAX / ID_MAPPING_BYTES_MAX;
}

/* As the kubelet does it for all that a pod mounts in a user namespace
 * (pkg/kubelet/kuberuntime/kuberuntime_container_linux.go). */
static void put_users(const Create__V1__Users__UserNamespace *users, Runtime__V1__Mount *mount)
{
    mount->n_uidmappings = users->n_uids;
    mount->uidmappings = users->uids;
    mount->n_gidmappings = users->n_gids;
    mount->gidmappings = users->gids;
}

/* Read-only as asked; never relabelled, propagation private, as the kubelet does it. 0, -ENOMEM or
 * -EMSGSIZE. */
static int put_mounts(struct fragment *f, const V1beta1__ContainerAllocateResponse *o,
                      const uint8_t *bytes, size_t len)
{
    int r = o->n_mounts > 0 ? read_users(bytes, len, &f->arena, &f->users) : 0;

    if (r == 0 && are_too_many(f->users, o->n_mounts))
        r = -EMSGSIZE;
    for (size_t i = 0; r == 0 && i < o->n_mounts; i++) {
        runtime__v1__mount__init(&f->mounts[i]);
        f->mounts[i].container_path = o->mounts[i]->container_path;
        f->mounts[i].host_path = o->mounts[i]->host_path;
        f->mounts[i].readonly = o->mounts[i]->read_only;
        if (f->users)
            put_users(f->users, &f->mounts[i]);
        f->mount_list[i] = &f->mounts[i];
    }
    return r;
}

static void put_devices(struct fragment *f, const V1beta1__ContainerAllocateResponse *o)
{
    for (size_t i = 0; i < o->n_devices; i++) {
        runtime__v1__device__init(&f->devices[i]);
        f->devices[i].container_path = o->devices[i]->container_path;
        f->devices[i].host_path = o->devices[i]->host_path;
        f->devices[i].permissions = o->devices[i]->permissions;
        f->device_list[i] = &f->devices[i];
    }
}

static void put_annotations(struct fragment *f, const V1beta1__ContainerAllocateResponse *o)
{
    for (size_t i = 0; i < o->n_annotations; i++) {
        runtime__v1__container_config__annotations_entry__init(&f->annotations[i]);
        f->annotations[i].key = o->annotations[i]->key;
        f->annotations[i].value = o->annotations[i]->value;
        f->annotation_list[i] = &f->annotations[i];
    }
}

static void put_cdi_devices(struct fragment *f, const V1beta1__ContainerAllocateResponse *o)
{
    for (size_t i = 0; i < o->n_cdi_devices; i++) {
        runtime__v1__cdidevice__init(&f->cdi[i]);
        f->cdi[i].name = o->cdi_devices[i]->name;
        f->cdi_list[i] = &f->cdi[i];
    }
}

static int pack(const struct fragment *f, const V1beta1__ContainerAllocateResponse *o,
                uint8_t **out, size_t *out_len)
{
    Runtime__V1__CreateContainerRequest request = RUNTIME__V1__CREATE_CONTAINER_REQUEST__INIT;
    Runtime__V1__ContainerConfig config = RUNTIME__V1__CONTAINER_CONFIG__INIT;
    size_t len;
    uint8_t *bytes;

    request.config = &config;
    config.n_envs = o->n_envs;
    config.envs = f->env_list;
    config.n_mounts = o->n_mounts;
    config.mounts = f->mount_list;
    config.n_devices = o->n_devices;
    config.devices = f->device_list;
    config.n_annotations = o->n_annotations;
    config.annotations = f->annotation_list;
    config.n_cdi_devices = o->n_cdi_devices;
    config.cdi_devices = f->cdi_list;
    len = runtime__v1__create_container_request__get_packed_size(&request);
    bytes = malloc(len);
    if (!bytes)
        return -ENOMEM;
    runtime__v1__create_container_request__pack(&request, bytes);
    *out = bytes;
    *out_len = len;
    return 0;
}

int create_container_fragment(const V1beta1__ContainerAllocateResponse *options,
                              const uint8_t *bytes, size_t len, uint8_t **out, size_t *out_len)
{
    struct fragment f;
    int r = fragment_init(&f, options);

    if (r < 0)
        return r;
    put_envs(&f, options);
    put_devices(&f, options);
    put_annotations(&f, options);
    put_cdi_devices(&f, options);
    r = put_mounts(&f, options, bytes, len);
    if (r == 0)
        r = pack(&f, options, out, out_len);
    fragment_fini(&f);
    return r;
}

/* ---- the answer ---- */

char *create_container_id(const uint8_t *message, size_t len)
{
    struct message_arena arena = {.most = RELAY_DECODED_BYTES_MAX};
    const Runtime__V1__CreateContainerResponse *response;
    char *id = NULL;
    int code;

    response = (const Runtime__V1__CreateContainerResponse *)message_unpack(
        &runtime__v1__create_container_response__descriptor, message, len, &arena, &code);
    if (response && *response->container_id)
        id = strdup(response->container_id);
    message_arena_fini(&arena);
    return id;
}

bool create_container_may_be(int status)
{
    return status == RPC_CANCELLED || status == RPC_DEADLINE_EXCEEDED ||
           status == RPC_UNAVAILABLE || status == RPC_ABORTED;
}

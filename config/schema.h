/*
 * Every key of the settings file: one row each, in one table. Its name, type, default and bounds,
 * where its value goes, and what is said about a bad one. The rest of this room follows the table:
 * reading, defaults, advice, freeing. A test holds example.toml against it.
 */
#ifndef CONFIG_SCHEMA_H
#define CONFIG_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "config/config.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A unix socket's path: sun_path without its NUL. */
#define SOCKET_BYTES_MAX (sizeof((struct sockaddr_un *)NULL)->sun_path - 1)
/* On which plugins register, in plugin_dir; and the kubelet's own, in its directory. */
#define PLUGIN_SOCKET "/kubelet.sock"
/* Where the bridge's sockets are below kubelet_plugin_dir, "DIR/cri-device-shim/NAME.sock"; it
 * shortens a NAME to what fits. 40 bytes for "NAME.sock" leave 35 for the name: enough for most
 * resources as they are, and for a part of any other with a digest. 107 - 17 - 40 = 50. */
#define BRIDGE_SUBDIRECTORY "/cri-device-shim/"
#define BRIDGE_NAME_BYTES 40
/* The names of links in kubelet_registry_dir (shim/registry/kubelet_link.h). */
#define KUBELET_LINK_BYTES (sizeof "/cri-device-shim-0123456789abcdef.sock" - 1)
/* Of a driver's sockets in registry_dir, "/DRIVER-PODUID-reg.sock", which are its own to
 * shorten. */
#define REGISTRY_NAME_BYTES 40
/* A process's name in /proc/PID/comm: TASK_COMM_LEN without its NUL, proc(5). */
#define COMM_BYTES_MAX 15

/* In the order in which advice looks for a key that stands in the wrong one. */
enum schema_section {
    SECTION_TOP, /* to SECTION_CONTROL: those of which there is one, in struct config itself */
    SECTION_LOG,
    SECTION_METRICS,
    SECTION_PLUGINS,
    SECTION_ANNOTATIONS,
    SECTION_BRIDGE,
    SECTION_DRA,
    SECTION_CLUSTER,
    SECTION_SHUTDOWN,
    SECTION_CONTROL,
    SECTION_DEVICE,
    SECTION_RESOURCE, /* its own keys, and those of other sections with an `override` */
    SECTION_TAINT,
    SECTION_DRIVER,
    SECTION_PATH, /* from here on: what is an element of a key's array, and of no advice */
    SECTION_MOUNT,
    SECTION_PERIOD,
    SECTION_ATTRIBUTE,
    SECTIONS,
};

/* What is at `offset`. */
enum schema_type {
    VALUE_TEXT,      /* char *: see `text`; NULL where the file has none */
    VALUE_SOCKET,    /* char *: a socket's absolute path, without "unix://" */
    VALUE_DIRECTORY, /* char *: absolute, without '/' at its end; at most `limit` bytes */
    VALUE_DURATION,  /* uint64_t: ms */
    VALUE_CHOICE,    /* int: of `choices` */
    VALUE_FLAG,      /* bool */
    VALUE_COUNT,     /* unsigned */
    VALUE_INTEGER,   /* int32_t */
    VALUE_SCALAR,    /* char *: a text (see `text`), in quotes; a whole number, true or false */
    VALUE_NAMES,     /* char **, and size_t at `len`: see `text`; at most `limit`, 0: any number */
    VALUE_ENVIRONMENT, /* struct config_env *, and size_t at `len`: 1 to `limit` */
    VALUE_TABLE,       /* none: the keys of `inner` are in the same struct */
    VALUE_TABLES,      /* the struct of `inner` *, and size_t at `len`: 1 to `limit`, 0: any */
};

struct schema_text {
    bool (*valid)(const char *text);
    const char *type;  /* expected where it is no string at all */
    const char *value; /* expected where it is one; NULL: the same */
};

struct schema_choice {
    const char *name; /* NULL: the end */
    int value;
};

struct schema_key {
    enum schema_section section;
    const char *name;
    enum schema_type type;
    size_t offset;
    /* As in the file, without quotes; of names, with ',' between them. NULL: none. */
    const char *initial;
    const char *min, *max; /* of durations and numbers, as they are written; min NULL: 0 */
    size_t len;            /* the offset of a list's length; 0: it is no list */
    /* The offset of a path in struct config, in whose directory this one is unless the file says
     * otherwise, as `initial` is in that one's; 0: there is none. */
    size_t beside;
    size_t override; /* in struct config_resource, where a [[resource]] may have its own; 0: no */
    bool live;       /* it may change without a restart (compare.h) */
    bool older_name; /* of another key, whose place it shares */
    size_t limit;
    bool may_be_empty;    /* of a socket: there is none then */
    const char *expected; /* of arrays: in place of another type; NULL: "[[NAME]] tables" */
    const char *reason;   /* why a path has this limit; NULL: it is a socket's */
    const char *required; /* expected where the table does not have the key; NULL: it need not */
    const struct schema_text *text;
    const struct schema_choice *choices;
    enum schema_section inner;
};

struct schema_table {
    const char *name;    /* as a person writes it */
    size_t bytes;        /* of its struct */
    const char *element; /* expected in the array; NULL: "a NAME table" */
    bool or_text;        /* a string stands for a table with just the first key */
};

extern const struct schema_key schema_keys[];
extern const size_t schema_keys_len;
extern const struct schema_table schema_tables[SECTIONS];

/* The key behind `after` (NULL: the first) that a section knows; NULL: no more. */
const struct schema_key *schema_next(enum schema_section section, const struct schema_key *after);

/* The key of that name; NULL: the section knows none. */
const struct schema_key *schema_find(enum schema_section section, const char *name, size_t len);

/* What a key of which there is one is called where a person reads it: "drain", "plugins.grace",
 * "[[device]]". */
#define SCHEMA_NAME_BYTES 64
void schema_full_name(const struct schema_key *key, char out[SCHEMA_NAME_BYTES]);

/* What it is in `config` if the file does not have it, as value_print() writes it. */
void schema_initial(const struct schema_key *key, const struct config *config, char *out,
                    size_t size);

/* Where the value of one of the keys of `section` is in `base`, the section's struct. */
void *schema_slot(const struct schema_key *key, enum schema_section section, void *base);

/* ---- values, each at its slot; of tables, the list alone ---- */

/* "1h30m", "500ms": whole numbers, each unit once, the largest first. */
bool value_duration(const char *text, uint64_t *out_ms);

/* A list's length. */
size_t *value_len(const struct schema_key *key, void *slot);

bool value_same(const struct schema_key *key, void *a, void *b);
void value_exchange(const struct schema_key *key, void *a, void *b);

/* As in the file, without quotes; of names, with ',' between them; of tables, how many, if any. One
 * that is too long is cut. */
void value_print(const struct schema_key *key, void *slot, char *out, size_t size);

/* Frees it, of tables all that is in them; a zeroed one has nothing. */
void value_fini(const struct schema_key *key, void *slot);

/* Rules that more than one key has. */
bool text_is_absolute(const char *text); /* a path without controls */
bool text_is_glob(const char *path);

#ifdef __cplusplus
}
#endif

#endif

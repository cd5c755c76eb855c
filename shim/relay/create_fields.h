/*
 * Numbers of the fields of a CreateContainerRequest that are looked up in its bytes (api.proto).
 */
#ifndef SHIM_RELAY_CREATE_FIELDS_H
#define SHIM_RELAY_CREATE_FIELDS_H

enum create_field {
    CREATE_CONFIG = 2,
    CREATE_CONFIG_COMMAND = 3,
    CREATE_CONFIG_ARGS = 4,
    CREATE_CONFIG_ENVS = 6,
    CREATE_CONFIG_MOUNTS = 7,
    CREATE_CONFIG_ANNOTATIONS = 10,
    CREATE_CONFIG_CDI_DEVICES = 17,
    CREATE_ENTRY_KEY = 1, /* of a map's entry, and of a KeyValue */
    CREATE_ENTRY_VALUE = 2,
};

#endif

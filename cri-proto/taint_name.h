/*
 * The names in a taint of a device, as Kubernetes has them (k8s.io/apimachinery/pkg/util/validation).
 */
#ifndef CRI_PROTO_TAINT_NAME_H
#define CRI_PROTO_TAINT_NAME_H

#include <stdbool.h>

/* A label's name, with or without a prefix; a label's value, which may be "". */
bool taint_key_valid(const char *key);
bool taint_value_valid(const char *value);
/* A driver's name: a DNS subdomain of at most 63 characters. */
bool taint_driver_valid(const char *name);

/* Most that a key or a value may have. */
#define TAINT_KEY_BYTES_MAX (253 + 1 + 63)
#define TAINT_VALUE_BYTES_MAX 63

#endif

/*
 * The rule for extended-resource names (pkg/apis/core/v1/helper/helpers.go,
 * IsExtendedResourceName).
 */
#ifndef CRI_PROTO_RESOURCE_NAME_H
#define CRI_PROTO_RESOURCE_NAME_H

#include <stdbool.h>

/*
 * Whether `name` is one: it has a '/', no "kubernetes.io/" in it, does not begin with "requests.",
 * and "requests." + name is a qualified name: a DNS subdomain (RFC 1123 labels joined by dots, at
 * most 253 characters) before the one '/', and after it 1 to 63 of [A-Za-z0-9._-] that begin and
 * end with a letter or digit.
 */
bool resource_name_valid(const char *name);

#endif

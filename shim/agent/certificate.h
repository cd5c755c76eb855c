/*
 * A client certificate and its key, in PEM: whether they belong together, and whose they are.
 */
#ifndef SHIM_AGENT_CERTIFICATE_H
#define SHIM_AGENT_CERTIFICATE_H

#include <stdbool.h>
#include <stddef.h>

/* A DNS subdomain and its NUL. */
#define NODE_NAME_BYTES_MAX 254

/* Whether the first certificate of the one and the first key of the other are a pair. A rotation
 * may have replaced just one of the files. */
bool certificate_fits(const char *certificate, size_t certificate_len, const char *key,
                      size_t key_len);

/* The NAME of a node's certificate, whose subject is system:node:NAME in the group system:nodes
 * (pkg/auth/nodeidentifier/default.go). False: it is nobody of that kind. */
bool certificate_node(const char *certificate, size_t len, char name[NODE_NAME_BYTES_MAX]);

#endif

/*
 * The forms of names that Kubernetes has (k8s.io/apimachinery/pkg/util/validation). The locale has
 * no say in them.
 */
#ifndef CRI_PROTO_KUBE_NAME_H
#define CRI_PROTO_KUBE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* A DNS label of RFC 1123, as a namespace is. */
bool kube_name_is_dns_label(const char *text);
/* A DNS subdomain, as a node is: words of such letters, joined by dots. */
bool kube_name_is_dns_subdomain(const char *text, size_t len);
/* A DRA driver's: a DNS subdomain of at most 63 characters. */
bool kube_name_is_driver(const char *text);
/* What labels and taints have as their key: a name, with or without a DNS subdomain and '/' in
 * front. */
bool kube_name_is_qualified(const char *text);
/* And as their value, which may be "". */
bool kube_name_is_label_value(const char *text);

/* Most that each may have. */
#define KUBE_SUBDOMAIN_BYTES_MAX 253
#define KUBE_QUALIFIED_BYTES_MAX (KUBE_SUBDOMAIN_BYTES_MAX + 1 + 63)
#define KUBE_LABEL_VALUE_BYTES_MAX 63

#endif

/*
 * cri-device-shimctl deviceclass: what is to be applied to a cluster, so that pods can ask for a
 * resource that is published as a DRA driver's ([[resource]] dra). It takes its name alone, and
 * asks no daemon.
 */
#include <string.h>

#include "cri-proto/kube_name.h"
#include "cri-proto/lift_marker.h"
#include "cri-proto/lifted_name.h"
#include "cri-proto/resource_name.h"
#include "shim/ctl/commands.h"
#include "shim/must.h"
#include "shim/rpc/rpc.h"

/* From 1.34 on. */
#define API_VERSION "resource.k8s.io/v1"

struct deviceclass {
    const char *resource;
    char name[LIFTED_CLASS_BYTES];
    char selector[LIFTED_POOL_BYTES + 160];
    bool extended, template;
};

/* False: it is none, and `failure` says why. */
static bool read_class(const struct command_run *run, struct deviceclass *class,
                       struct client_failure *failure)
{
    const char *name = command_given(run, "name");
    char attribute[LIFTED_POOL_BYTES];

    *class = (struct deviceclass){.resource = run->arguments[0],
                                  .extended = command_given(run, "extended"),
                                  .template = command_given(run, "template")};
    if (!resource_name_valid(class->resource))
        return client_fail(failure, RPC_INVALID_ARGUMENT, "\"%.300s\" is no resource's name",
                           class->resource);
    if (name && !kube_name_is_dns_subdomain(name, strlen(name)))
        return client_fail(failure, RPC_INVALID_ARGUMENT,
                           "\"%.300s\" is no name of a DeviceClass: a DNS subdomain", name);
    if (!lifted_name_attribute(class->resource, attribute))
        return client_fail(failure, RPC_INVALID_ARGUMENT,
                           "the resource's name is too long to be an attribute of its devices; "
                           "select them by one of [[resource.attribute]]");
    if (name)
        snprintf(class->name, sizeof class->name, "%s", name);
    else
        lifted_name_class(class->resource, class->name);
    snprintf(class->selector, sizeof class->selector,
             "device.driver == \"" LIFT_DRIVER "\" && device.attributes[\"" LIFT_DRIVER
             "\"].resource == \"%s\"",
             attribute);
    return true;
}

/* ---- for kubectl; all values are in quotes, since some names are numbers or flags in YAML ---- */

static void put_class(FILE *out, const struct deviceclass *class)
{
    fprintf(
        out,
        "# Devices of %s, where [[resource]] dra = true publishes them. A claim has 32 devices at "
        "most;\n"
        "# what the plugin prefers and the topology manager are not asked.\n"
        "apiVersion: \"" API_VERSION "\"\n"
        "kind: \"DeviceClass\"\n"
        "metadata:\n"
        "  name: \"%s\"\n"
        "spec:\n",
        class->resource, class->name);
    if (class->extended)
        fprintf(
            out,
            "  # Pods ask for it by resources.limits; one claim has all such devices of a pod.\n"
            "  extendedResourceName: \"%s\"\n",
            class->resource);
    fprintf(out,
            "  selectors:\n"
            "  - cel:\n"
            "      expression: '%s'\n",
            class->selector);
}

static void put_template(FILE *out, const struct deviceclass *class)
{
    fprintf(out,
            "---\n"
            "# For a pod's spec.resourceClaims: resourceClaimTemplateName.\n"
            "apiVersion: \"" API_VERSION "\"\n"
            "kind: \"ResourceClaimTemplate\"\n"
            "metadata:\n"
            "  name: \"%s\"\n"
            "spec:\n"
            "  spec:\n"
            "    devices:\n"
            "      requests:\n"
            "      - name: \"device\"\n"
            "        exactly:\n"
            "          deviceClassName: \"%s\"\n",
            class->name, class->name);
}

/* ---- for programs, and for kubectl likewise ---- */

static json_t *class_of(const struct deviceclass *class)
{
    json_t *spec =
        must(json_pack("{s:[{s:{s:s}}]}", "selectors", "cel", "expression", class->selector));

    if (class->extended)
        json_value_set(spec, "extendedResourceName", json_value_text(class->resource));
    return must(json_pack("{s:s, s:s, s:{s:s}, s:o}", "apiVersion", API_VERSION, "kind",
                          "DeviceClass", "metadata", "name", class->name, "spec", spec));
}

static json_t *template_of(const struct deviceclass *class)
{
    return must(json_pack("{s:s, s:s, s:{s:s}, s:{s:{s:{s:[{s:s, s:{s:s}}]}}}}", "apiVersion",
                          API_VERSION, "kind", "ResourceClaimTemplate", "metadata", "name",
                          class->name, "spec", "spec", "devices", "requests", "name", "device",
                          "exactly", "deviceClassName", class->name));
}

static void put_json(const struct show *show, const struct deviceclass *class)
{
    json_t *items = must(json_array());

    json_value_append(items, class_of(class));
    if (class->template)
        json_value_append(items, template_of(class));
    show_json(show, must(json_pack("{s:s, s:s, s:o}", "apiVersion", "v1", "kind", "List", "items",
                                   items)));
}

static bool run(const struct command_run *run, struct client_failure *failure)
{
    struct deviceclass class;

    if (!read_class(run, &class, failure))
        return false;
    switch (run->show.format) {
    case SHOW_JSON:
        put_json(&run->show, &class);
        break;
    case SHOW_NAME:
        fprintf(run->show.out, "deviceclass/%s\n", class.name);
        if (class.template)
            fprintf(run->show.out, "resourceclaimtemplate/%s\n", class.name);
        break;
    default:
        put_class(run->show.out, &class);
        if (class.template)
            put_template(run->show.out, &class);
    }
    return true;
}

const struct command deviceclass_command = {
    .name = "deviceclass",
    .arguments = "RESOURCE",
    .summary = "the DeviceClass of one that is published for claims, for kubectl apply -f -",
    .arguments_min = 1,
    .arguments_max = 1,
    .options = {{"extended", 'e', NULL, "pods may ask for it by resources.limits, too"},
                {"name", 0, "NAME", "what it is called, in place of NAME.DOMAIN of the resource"},
                {"template", 't', NULL, "and a ResourceClaimTemplate of one device"}},
    .run = run,
};

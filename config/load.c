#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/read.h"

#define FILE_BYTES_MAX (1024 * 1024)

int config_read(const char *path, char **text, size_t *len, struct config_error *err)
{
    const char *why = NULL;
    FILE *file = fopen(path, "rbe");
    char *bytes = malloc(FILE_BYTES_MAX + 2);

    if (file && bytes)
        *len = fread(bytes, 1, FILE_BYTES_MAX + 1, file);
    if (!bytes)
        why = "out of memory";
    else if (!file || ferror(file))
        why = strerror(errno);
    else if (*len > FILE_BYTES_MAX)
        why = "it is larger than 1 MiB";
    if (file)
        fclose(file);
    if (!why) {
        bytes[*len] = '\0';
        *text = bytes;
        return 0;
    }
    free(bytes);
    snprintf(err->text, sizeof err->text, "%s: cannot be read: %s; expected a TOML file", path,
             why);
    return -1;
}

/* The defaults are read from no tree. */
static void fill(struct reading *r, struct tree_node *root)
{
    read_section(r, SECTION_TOP, root, r->config);
    if (!r->out_of_memory)
        check_settings(r, root);
}

int config_parse(const char *text, size_t len, const char *path, struct config *out,
                 struct config_error *err)
{
    struct config filled = {0};
    struct reading r = {.config = &filled};
    struct tree_node root = {0};
    struct tree_fault fault;
    bool good;

    if (!path || tree_parse(text, len, &root, &fault) == 0)
        fill(&r, path ? &root : NULL);
    else if (fault.text[0] == '\0')
        r.out_of_memory = true;
    else
        faults_add(&r.faults, fault.at, fault.expected, "%s", fault.text);
    good = !r.out_of_memory && r.faults.total == 0;
    if (r.out_of_memory)
        snprintf(err->text, sizeof err->text, "out of memory");
    else if (!good)
        faults_print(&r.faults, path, err->text, sizeof err->text);
    faults_fini(&r.faults);
    tree_fini(&root);
    if (good)
        *out = filled;
    else
        config_fini(&filled);
    return good ? 0 : -1;
}

int config_load(const char *path, struct config *out, struct config_error *err)
{
    char *text = NULL;
    size_t len = 0;
    int result;

    if (path && config_read(path, &text, &len, err) < 0)
        return -1;
    result = config_parse(text, len, path, out, err);
    free(text);
    return result;
}

void config_fini(struct config *config)
{
    read_fini(SECTION_TOP, config);
    memset(config, 0, sizeof *config);
}

#include "shim/config_argument.h"

#include <argp.h>
#include <stdio.h>

#include "config/config.h"
#include "shim/must.h"
#include "shim/version.h"

static const char *name;

static void print_version(FILE *out, struct argp_state *state)
{
    (void)state;
    fprintf(out, "%s %s\n", name, version_text);
}

static const struct argp_option OPTIONS[] = {
    {"config", 'c', "FILE", 0, "Settings, the daemon's; default: " CONFIG_PATH_DEFAULT ", or none",
     0},
    {0},
};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    const char **path = state->input;

    if (key != 'c')
        return ARGP_ERR_UNKNOWN;
    *path = value;
    return 0;
}

const char *config_argument(int argc, char **argv, const char *program, const char *doc)
{
    const struct argp argp = {.options = OPTIONS, .parser = parse_option, .doc = doc};
    const char *path = NULL;

    name = program;
    argp_program_version_hook = print_version;
    if (argp_parse(&argp, argc, argv, 0, NULL, &path) != 0)
        must(NULL); /* a wrong line has ended the process; without memory nothing of it was read */
    return path;
}

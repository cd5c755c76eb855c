/*
 * The command line of the programs beside the daemon: --config FILE, --help, --version.
 */
#ifndef SHIM_CONFIG_ARGUMENT_H
#define SHIM_CONFIG_ARGUMENT_H

/* The settings' file, borrowed from argv; NULL: the default one, or none. A wrong command line, and
 * what only asks, end the process as argp does. `program` (its name) and `doc` (what it is for) are
 * literals. */
const char *config_argument(int argc, char **argv, const char *program, const char *doc);

#endif

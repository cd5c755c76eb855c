/*
 * The simulation: the device manager against a seeded random world.
 *
 *   sim [--seeds N] [--from S]   runs N seeds from S on
 *   sim --seed S [-v]            replays one; -v prints every event
 *   --faults N                   seconds with faults; then they stop, and the node must come to
 * rest
 *   --failures N                 ends after so many seeds that fail (default 5)
 *   --quiet                      of a seed that fails only its line, not what led there
 *   --decisions FILE             what became of each create is written there (decisions.sh); only
 *                                the large worlds are played, as the others write nothing
 *   --unasked                    nobody asks why meanwhile, which is to make no difference
 *   --settled                    the settings stay as they were
 *   --unsteered                  there is no operator, as to a device manager that knows of none
 *   --only WORLD                 of the worlds of a seed this small one: ends, taints, down, homes,
 *                                lifts, replaced
 *
 * The last line is "N passed, N failed": properties that were looked at (property.h) and, of enough
 * seeds, situations that must be reached (count.h). The line before tells of the seeds.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/sim/down_world.h"
#include "tests/sim/end_world.h"
#include "tests/sim/home_world.h"
#include "tests/sim/lift_world.h"
#include "tests/sim/property.h"
#include "tests/sim/replace_world.h"
#include "tests/sim/taint_world.h"
#include "tests/sim/world.h"

#define SEED_SECONDS_MAX 60 /* of a processor */
#define FAILURES_MAX 5

struct arguments {
    uint64_t from;
    uint64_t seeds;
    uint64_t faults_ms;
    uint64_t failures; /* then there is enough to look at */
    bool verbose;
    bool quiet;
    bool unasked;
    bool settled;
    bool unsteered;
    FILE *decisions;
    bool (*only)(struct world *w);
};

static struct world world;

/* Those that are beside the large one. */
static const struct {
    const char *name;
    bool (*run)(struct world *w);
} SMALL[] = {{"ends", end_world_run},   {"taints", taint_world_run},
             {"down", down_world_run},  {"homes", home_world_run},
             {"lifts", lift_world_run}, {"replaced", replace_world_run}};

#define SMALL_LEN (sizeof SMALL / sizeof *SMALL)

static const struct argp_option OPTIONS[] = {
    {"seeds", 'n', "N", 0, "How many seeds (default 1000)", 0},
    {"from", 'f', "S", 0, "The first of them (default 1)", 0},
    {"seed", 's', "S", 0, "Only this one", 0},
    {"faults", 't', "N", 0, "Seconds with faults (default 60)", 0},
    {"failures", 'k', "N", 0, "End after so many that fail (default 5)", 0},
    {"quiet", 'q', NULL, 0, "Of a seed that fails only its line", 0},
    {"decisions", 'd', "FILE", 0, "Write what became of each create", 0},
    {"unasked", 'u', NULL, 0, "Nobody asks why", 0},
    {"settled", 'c', NULL, 0, "The settings stay as they were", 0},
    {"unsteered", 'o', NULL, 0, "There is no operator", 0},
    {"only", 'w', "WORLD", 0, "Only this small world: ends, taints, down, homes, lifts, replaced",
     0},
    {"verbose", 'v', NULL, 0, "Print every event", 0},
    {0},
};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    struct arguments *args = state->input;

    switch (key) {
    case 'n':
        args->seeds = strtoull(value, NULL, 10);
        return 0;
    case 'f':
        args->from = strtoull(value, NULL, 10);
        return 0;
    case 's':
        args->from = strtoull(value, NULL, 10);
        args->seeds = 1;
        return 0;
    case 't':
        args->faults_ms = strtoull(value, NULL, 10) * 1000;
        return 0;
    case 'k':
        args->failures = strtoull(value, NULL, 10);
        return 0;
    case 'q':
        args->quiet = true;
        return 0;
    case 'd':
        args->decisions = fopen(value, "w");
        if (!args->decisions)
            argp_failure(state, EXIT_FAILURE, errno, "%s", value);
        return 0;
    case 'u':
        args->unasked = true;
        return 0;
    case 'c':
        args->settled = true;
        return 0;
    case 'o':
        args->unsteered = true;
        return 0;
    case 'w':
        for (size_t i = 0; i < SMALL_LEN; i++) {
            if (strcmp(SMALL[i].name, value) == 0)
                args->only = SMALL[i].run;
        }
        if (!args->only)
            argp_error(state, "there is no such small world: %s", value);
        return 0;
    case 'v':
        args->verbose = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp ARGP = {
    .options = OPTIONS,
    .parser = parse_option,
    .doc = "Runs the device manager against seeded random worlds.",
};

static void print_failure(const char *what)
{
    printf("seed %" PRIu64 ": %s\nreplay: %s --seed %" PRIu64 " --faults %" PRIu64 " -v\n",
           world.play.seed, what, program_invocation_name, world.play.seed,
           world.play.faults_ms / 1000);
    fflush(stdout);
}

/* An assertion of the core, or a run that does not end: the process is lost, the seed is not. */
static void on_signal(int number)
{
    print_failure(number == SIGPROF ? "does not end" : "aborted");
    printf("0 passed, 1 failed\n");
    fflush(stdout);
    _exit(EXIT_FAILURE);
}

/* SIGPROF after so much of a processor; 0: never. */
static void limit(time_t seconds)
{
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = seconds}, NULL);
}

/* Of AddressSanitizer, where the build has it. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void on_death(void)
{
    print_failure("the sanitizer ends it");
}

static bool run_worlds(const struct play *play, const struct arguments *args)
{
    bool holds;

    if (args->only) {
        world = (struct world){.play = *play};
        return args->only(&world);
    }
    holds = world_run(&world, play);
    for (size_t i = 0; holds && !args->decisions && i < SMALL_LEN; i++)
        holds = SMALL[i].run(&world);
    return holds;
}

/* Of one that fails the last events are printed, for which it is run again. */
static bool run_seed(uint64_t seed, const struct arguments *args)
{
    struct play play = {.seed = seed,
                        .faults_ms = args->faults_ms,
                        .verbose = args->verbose,
                        .unasked = args->unasked,
                        .settled = args->settled,
                        .unsteered = args->unsteered,
                        .decisions = args->decisions != NULL};
    bool holds;

    limit(SEED_SECONDS_MAX);
    holds = run_worlds(&play, args);
    if (args->decisions)
        decisions_write(&world, args->decisions);
    if (!holds && !args->verbose && !args->quiet && !args->only) {
        play.recording = true;
        world_fini(&world);
        (void)run_worlds(&play, args);
        world_print_journal(&world);
    }
    if (!holds)
        print_failure(world.broken);
    world_fini(&world);
    limit(0);
    return holds;
}

static int summarize(const struct arguments *args, uint64_t seeds, uint64_t failed, uint64_t steps)
{
    size_t looked_at, broken, missing = counts_missing();

    properties_count(&looked_at, &broken);
    counts_print();
    if (seeds < COUNT_SEEDS_MIN || args->only)
        missing = 0;
    if (missing > 0)
        printf("%zu of these situations were not reached\n", missing);
    printf("%" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64 " events\n", seeds, failed, steps);
    printf("%zu passed, %zu failed\n",
           looked_at - broken + (seeds < COUNT_SEEDS_MIN || args->only ? 0 : COUNTS_LEN - missing),
           broken + missing);
    return broken + missing == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct arguments args = {
        .from = 1, .seeds = 1000, .faults_ms = 60000, .failures = FAILURES_MAX};
    uint64_t failed = 0, steps = 0, rest_ms = 0, i = 0;

    argp_parse(&ARGP, argc, argv, 0, NULL, &args);
    signal(SIGABRT, on_signal);
    signal(SIGSEGV, on_signal);
    signal(SIGPROF, on_signal);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(on_death);
    while (i < args.seeds && failed < args.failures) {
        failed += !run_seed(args.from + i++, &args);
        steps += world.steps;
        rest_ms = world.rest_ms > rest_ms ? world.rest_ms : rest_ms;
    }
    printf("longest until all pods had what they asked for: %" PRIu64 " s\n", rest_ms / 1000);
    if (args.decisions && fclose(args.decisions) != 0)
        return EXIT_FAILURE;
    return summarize(&args, i, failed, steps);
}

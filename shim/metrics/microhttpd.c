#include "shim/metrics/microhttpd.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/log.h"

#define LIBRARY "libmicrohttpd.so.12"

static const struct {
    const char *name;
    size_t offset;
} SYMBOLS[] = {
    {"MHD_start_daemon", offsetof(struct microhttpd, start_daemon)},
    {"MHD_stop_daemon", offsetof(struct microhttpd, stop_daemon)},
    {"MHD_run", offsetof(struct microhttpd, run)},
    {"MHD_get_timeout", offsetof(struct microhttpd, get_timeout)},
    {"MHD_get_daemon_info", offsetof(struct microhttpd, get_daemon_info)},
    {"MHD_lookup_connection_value", offsetof(struct microhttpd, lookup_value)},
    {"MHD_get_connection_values", offsetof(struct microhttpd, each_value)},
    {"MHD_create_response_from_buffer", offsetof(struct microhttpd, create_response)},
    {"MHD_add_response_header", offsetof(struct microhttpd, add_header)},
    {"MHD_queue_response", offsetof(struct microhttpd, queue_response)},
    {"MHD_destroy_response", offsetof(struct microhttpd, destroy_response)},
};

static bool find(void *library, struct microhttpd *out)
{
    for (size_t i = 0; i < sizeof SYMBOLS / sizeof *SYMBOLS; i++) {
        void *symbol = dlsym(library, SYMBOLS[i].name);

        if (!symbol)
            return false;
        memcpy((char *)out + SYMBOLS[i].offset, &symbol, sizeof symbol);
    }
    return true;
}

/* ---- what loading leaves behind ---- */

struct objects {
    unsigned skip; /* those that were loaded before */
    unsigned seen;
};

static int count_object(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)info, (void)size;
    ((struct objects *)user)->seen++;
    return 0;
}

static int let_go(struct dl_phdr_info *info, size_t size, void *user)
{
    struct objects *objects = user;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    (void)size;
    if (objects->seen++ < objects->skip)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + segment->p_vaddr;

        if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W))
            madvise((void *)(from & -page), segment->p_memsz + (from & (page - 1)), MADV_DONTNEED);
    }
    return 0;
}

/* Resolving names has touched 2 MiB of libraries that a scrape never needs: pages of their files,
 * which the kernel reads again should anybody want one. */
static void *load(void)
{
    struct objects objects = {0};
    void *library;

    dl_iterate_phdr(count_object, &objects);
    library = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);
    objects = (struct objects){.skip = objects.seen};
    if (library)
        dl_iterate_phdr(let_go, &objects);
    return library;
}

const struct microhttpd *microhttpd_load(void)
{
    static struct microhttpd functions;
    static bool loaded, said;
    void *library;

    if (loaded)
        return &functions;
    library = load();
    loaded = library && find(library, &functions);
    if (!loaded && !said)
        log_error("metrics: " LIBRARY ": %s", library ? "it is another one" : dlerror());
    said = true;
    if (!loaded && library)
        dlclose(library);
    return loaded ? &functions : NULL;
}

#include "shim/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- pages ---- */

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

/* What may be written to stays: it is not in the file as it is here. */
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

void library_let_go(void)
{
    struct objects objects = {0};

    dl_iterate_phdr(let_go, &objects);
}

/* ---- loading ---- */

static void *load(const char *file)
{
    struct objects objects = {0};
    void *library;

    dl_iterate_phdr(count_object, &objects);
    library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
    objects = (struct objects){.skip = objects.seen};
    if (library)
        dl_iterate_phdr(let_go, &objects);
    return library;
}

const char *library_load(const char *file, const struct library_function *functions, size_t len,
                         void *table)
{
    void *library = load(file);

    if (!library)
        return dlerror();
    for (size_t i = 0; i < len; i++) {
        void *function = dlsym(library, functions[i].name);

        if (!function) {
            dlclose(library);
            return "it is another one";
        }
        *(void **)((char *)table + functions[i].offset) = function;
    }
    return NULL;
}

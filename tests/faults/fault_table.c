#include "tests/faults/fault_table.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* By system calls of its own: the functions of these names are what fails. */
struct fault_table *fault_table_map(const char *path)
{
    struct fault_table *table;
    long fd = syscall(SYS_open, path, O_RDWR | O_CLOEXEC, 0);

    if (fd < 0)
        return NULL;
    table = (struct fault_table *)syscall(SYS_mmap, NULL, sizeof *table, PROT_READ | PROT_WRITE,
                                          MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (table == MAP_FAILED || table->magic != FAULT_MAGIC)
        return NULL;
    return table;
}

/* NULL: there is no room. */
static struct fault_site *find(struct fault_table *table, uint64_t key)
{
    for (unsigned i = 0; i < FAULT_SITES_MAX; i++) {
        struct fault_site *site = &table->sites[(key + i) & (FAULT_SITES_MAX - 1)];
        uint64_t found = 0;

        if (atomic_compare_exchange_strong(&site->key, &found, key) || found == key)
            return site;
    }
    return NULL;
}

static bool spend(struct fault_table *table)
{
    int budget = atomic_load(&table->budget);

    while (budget > 0)
        if (atomic_compare_exchange_weak(&table->budget, &budget, budget - 1))
            return true;
    return false;
}

bool fault_table_is_time(const struct fault_table *table, uint64_t now_ms)
{
    return now_ms >= atomic_load(&table->last_ms) + table->gap_ms;
}

bool fault_table_take(struct fault_table *table, uint64_t key, uint64_t now_ms,
                      struct fault_site **site)
{
    unsigned nobody = 0;

    *site = find(table, key);
    if (!*site) {
        atomic_fetch_add(&table->full, 1);
        return false;
    }
    atomic_fetch_add(&(*site)->met, 1);
    if (atomic_load(&(*site)->pid) || key % table->stride != table->phase || !spend(table))
        return false;
    if (!atomic_compare_exchange_strong(&(*site)->pid, &nobody, (unsigned)getpid()))
        return false; /* another process was faster; one call less fails in this round */
    atomic_store(&table->last_ms, now_ms);
    (*site)->at_ms = now_ms;
    (*site)->number = atomic_fetch_add(&table->failed, 1) + 1;
    return true;
}

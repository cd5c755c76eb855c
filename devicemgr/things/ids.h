/*
 * A list of device ids. An id is any text without NUL; the natural order of ids ("g2" before "g10")
 * is strverscmp(3)'s.
 */
#ifndef DEVICEMGR_THINGS_IDS_H
#define DEVICEMGR_THINGS_IDS_H

#include <stdbool.h>
#include <stddef.h>

struct ids {
    char **v;
    size_t len;
};

/* A zeroed struct is an empty list; so are most, in passing. */
void ids_clear(struct ids *ids);
static inline void ids_fini(struct ids *ids)
{
    if (ids->v)
        ids_clear(ids);
}

void ids_add(struct ids *ids, const char *id);
/* False: it is there. Takes O(len). */
bool ids_add_new(struct ids *ids, const char *id);
/* The same of a sorted list, which stays sorted. */
bool ids_insert(struct ids *ids, const char *id);
/* `to` need not be set before, and is not freed. */
void ids_copy(struct ids *to, char *const *v, size_t len);
void ids_sort(struct ids *ids);
/* Its order, for qsort() of pointers to ids. */
int ids_order(const void *a, const void *b);
/* Takes O(len). */
bool ids_contain(const struct ids *ids, const char *id);
/* The same of a sorted list, in O(log len). */
bool ids_contain_sorted(const struct ids *ids, const char *id);
/* In what is sorted by ids, `len` items of `bytes` each, which begin with a pointer to their id:
 * where the first is that does not come before `id`, and, with `behind`, is not it either. In O(log
 * len). */
size_t ids_place(const void *items, size_t len, size_t bytes, const char *id, bool behind);
/* In the same order. */
bool ids_equal(const struct ids *a, const struct ids *b);
/* Of a sorted list: whether some id is in it twice. */
bool ids_repeat(const struct ids *ids);

#endif

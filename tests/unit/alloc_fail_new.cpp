/*
 * What C++ allocates fails as malloc does (alloc_fail.h).
 */
#include <cstdlib>
#include <new>

void *operator new(size_t bytes)
{
    void *out = malloc(bytes);

    if (!out)
        throw std::bad_alloc();
    return out;
}

void operator delete(void *old) noexcept
{
    free(old);
}

void operator delete(void *old, size_t) noexcept
{
    free(old);
}

#include "shim/relay/flow.h"

#include <assert.h>

/* The largest WINDOW_UPDATE (RFC 9113 §6.9). */
static uint32_t increment_of(int64_t bytes)
{
    return bytes <= 0 ? 0 : bytes < INT32_MAX ? (uint32_t)bytes : INT32_MAX;
}

void flow_init(struct flow *f, int64_t window)
{
    *f = (struct flow){.send = window, .client = window};
}

void flow_shift(struct flow *f, int64_t delta)
{
    f->send += delta;
    f->client += delta;
}

void flow_passed(struct flow *f, uint64_t bytes)
{
    f->send -= (int64_t)bytes;
    f->client -= (int64_t)bytes;
}

void flow_withheld(struct flow *f, uint32_t frame_bytes, uint32_t kept_bytes)
{
    assert(kept_bytes <= frame_bytes);
    f->client -= frame_bytes;
    f->pending += kept_bytes;
    f->surplus -= frame_bytes - kept_bytes;
}

void flow_added(struct flow *f, uint64_t bytes)
{
    f->pending += (int64_t)bytes;
    f->surplus += (int64_t)bytes;
}

void flow_sent(struct flow *f, uint64_t bytes)
{
    assert(f->pending >= (int64_t)bytes);
    f->send -= (int64_t)bytes;
    f->pending -= (int64_t)bytes;
}

void flow_dropped(struct flow *f, uint64_t bytes)
{
    assert(f->pending >= (int64_t)bytes);
    f->pending -= (int64_t)bytes;
    f->surplus -= (int64_t)bytes;
}

uint32_t flow_update(struct flow *f, uint32_t increment)
{
    uint32_t swallowed = 0;

    if (f->surplus > 0)
        swallowed = f->surplus < increment ? (uint32_t)f->surplus : increment;
    f->send += increment;
    f->client += increment - swallowed;
    f->surplus -= swallowed;
    return increment - swallowed;
}

void flow_credit(struct flow *f, uint32_t bytes)
{
    f->client += bytes;
    f->surplus += bytes;
}

uint32_t flow_owed(const struct flow *f)
{
    return increment_of(-f->surplus);
}

uint32_t flow_lag(const struct flow *f)
{
    return increment_of(f->send - f->client);
}

bool flow_check(const struct flow *f)
{
    return f->pending >= 0 && f->surplus == f->client - f->send + f->pending;
}

#include "shim/relay/tally.h"

/* A client's streams are odd (RFC 9113 §5.1.1). */
static uint32_t place_of(uint32_t stream, unsigned nth)
{
    return (stream / 2 + nth * (TALLY_PLACES / TALLY_TRIES)) % TALLY_PLACES;
}

/* Where `stream` is among its places; TALLY_PLACES: nowhere. */
static uint32_t find(const struct tally *tally, uint32_t owner, uint32_t stream)
{
    for (unsigned nth = 0; nth < TALLY_TRIES; nth++) {
        uint32_t place = place_of(owner, nth);

        if (tally->places[place].stream == stream)
            return place;
    }
    return TALLY_PLACES;
}

void tally_begin(struct tally *tally, uint32_t stream, enum cri_method method)
{
    uint32_t place;

    if (stream == 0 || find(tally, stream, stream) < TALLY_PLACES)
        return;
    tally->counts->begun[method]++;
    place = find(tally, stream, 0);
    if (place == TALLY_PLACES) {
        tally->counts->untimed++;
        return;
    }
    tally->places[place].stream = stream;
    tally->places[place].method = method;
    tally->places[place].begun_us = tally->now_us();
}

static void end(struct tally *tally, uint32_t place, int code)
{
    uint32_t method = tally->places[place].method;
    unsigned index = code >= 0 && code < TALLY_CODES - 1 ? (unsigned)code : TALLY_CODES - 1;

    tally->counts->ended[method][index]++;
    histogram_add(&tally->counts->took[method], tally->now_us() - tally->places[place].begun_us);
    tally->places[place].stream = 0;
}

void tally_end(struct tally *tally, uint32_t stream, int code)
{
    uint32_t place = stream ? find(tally, stream, stream) : TALLY_PLACES;

    if (place < TALLY_PLACES)
        end(tally, place, code);
}

void tally_end_all(struct tally *tally, int code)
{
    for (uint32_t place = 0; place < TALLY_PLACES; place++) {
        if (tally->places[place].stream)
            end(tally, place, code);
    }
}

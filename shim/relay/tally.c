#include "shim/relay/tally.h"

/* A client's streams are odd (RFC 9113 §5.1.1). */
static uint32_t place_of(uint32_t stream, unsigned nth)
{
    return (stream / 2 + nth * (TALLY_PLACES / TALLY_TRIES)) % TALLY_PLACES;
}

/* Where `stream` is among its places; TALLY_PLACES: nowhere. With an `owner` of 0 the first of them
 * that is free. */
static uint32_t find(const struct tally *tally, uint32_t owner, uint32_t stream)
{
    for (unsigned nth = 0; nth < TALLY_TRIES; nth++) {
        uint32_t place = place_of(stream, nth);

        if (tally->places[place].stream == owner)
            return place;
    }
    return TALLY_PLACES;
}

static uint64_t now_us(struct tally *tally)
{
    uint64_t now = tally->read_us;

    if (now > TALLY_READ_UNASKED)
        return now;
    now = tally->now_us();
    if (tally->read_us == TALLY_READ_UNASKED)
        tally->read_us = now;
    return now;
}

static void begin(struct tally *tally, struct tally_place *place, uint32_t stream,
                  enum cri_method method)
{
    tally->counts->begun[method]++;
    place->stream = stream;
    place->method = method;
    place->begun_us = now_us(tally);
}

static void end(struct tally *tally, struct tally_place *place, int code)
{
    unsigned index = (unsigned)code < TALLY_CODES - 1 ? (unsigned)code : TALLY_CODES - 1;

    tally->counts->ended[place->method][index]++;
    histogram_add(&tally->counts->took[place->method], now_us(tally) - place->begun_us);
    place->stream = 0;
}

/* Its first place is another's, or was when it began. */
static void begin_elsewhere(struct tally *tally, uint32_t stream, enum cri_method method)
{
    uint32_t place = find(tally, 0, stream);

    if (stream == 0 || find(tally, stream, stream) < TALLY_PLACES)
        return;
    if (place == TALLY_PLACES) {
        tally->counts->begun[method]++;
        tally->counts->untimed[method]++;
        return;
    }
    tally->elsewhere += place != place_of(stream, 0);
    begin(tally, &tally->places[place], stream, method);
}

static void end_elsewhere(struct tally *tally, uint32_t stream, int code)
{
    uint32_t place = find(tally, stream, stream);

    if (place == TALLY_PLACES)
        return;
    tally->elsewhere--;
    end(tally, &tally->places[place], code);
}

void tally_begin(struct tally *tally, uint32_t stream, enum cri_method method)
{
    struct tally_place *place = &tally->places[place_of(stream, 0)];

    if (place->stream == 0 && tally->elsewhere == 0 && stream != 0)
        begin(tally, place, stream, method);
    else if (place->stream != stream)
        begin_elsewhere(tally, stream, method);
}

void tally_end(struct tally *tally, uint32_t stream, int code)
{
    struct tally_place *place = &tally->places[place_of(stream, 0)];

    if (stream == 0)
        return;
    if (place->stream == stream)
        end(tally, place, code);
    else if (tally->elsewhere > 0)
        end_elsewhere(tally, stream, code);
}

void tally_end_all(struct tally *tally, int code)
{
    for (struct tally_place *p = tally->places; p < tally->places + TALLY_PLACES; p++) {
        if (p->stream)
            end(tally, p, code);
    }
    tally->elsewhere = 0;
}

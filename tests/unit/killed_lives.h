/*
 * One that reads or writes a socket, is killed and goes on in another process, again and again,
 * while its peer is here: for tests that include the source it does that with. Its POINTs are the
 * steps at which it may end.
 */
#ifndef TESTS_UNIT_KILLED_LIVES_H
#define TESTS_UNIT_KILLED_LIVES_H

#include <stddef.h>
#include <stdint.h>

/* Before the source under test is included. */
#define POINT(name) lives_step()

/* Moved at once, and in all. */
#define PIECE_BYTES_MAX 20000
#define TOTAL_BYTES (1 << 20)

struct lives {
    void *shared; /* what outlives each */
    size_t shared_bytes;
    int fd;   /* the peer's; -1: all is sent */
    int kept; /* what they go on with */
    /* Goes on until all is moved: _exit(0), else another status. */
    void (*live)(void *shared, int fd, unsigned seed);
    unsigned seed, kills;
    size_t moved; /* by the peer */
};

/* A step of a life is done, which may have been its last. */
void lives_step(void);

/* Zeroed memory for all of them, and a pair of sockets; of an even `seed` with room for what is
 * written at once. */
void lives_init(struct lives *lives, unsigned seed, size_t shared_bytes,
                void (*live)(void *shared, int fd, unsigned seed));
void lives_fini(struct lives *lives);

/* Until one has moved all, with `turn` the peer's part in between. `steps_max`: they end by one of
 * their first so many steps; 0: at any time. */
void lives_run(struct lives *lives, unsigned steps_max, void (*turn)(struct lives *lives));

/* The peer's part: sends what is next, or takes and checks it. */
void lives_send(struct lives *lives);
void lives_receive(struct lives *lives);

/* The byte at a place of what is moved. */
uint8_t lives_byte_at(size_t i);

/* A number below `below`. */
unsigned lives_draw(unsigned *seed, unsigned below);

/* So many kills, or the environment's EXACT_IO_KILLS. */
unsigned lives_kills_wanted(unsigned kills);

#endif

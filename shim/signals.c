#include "shim/signals.h"

#include <signal.h>
#include <stddef.h>

#define HANDLES (sizeof((struct signals *)0)->handles / sizeof(uv_signal_t))

static void on_signal(uv_signal_t *handle, int number)
{
    struct signals *signals = handle->data;

    if (number == SIGHUP)
        signals->reload(signals->user);
    else
        signals->asked(signals->user, number);
}

void signals_start(struct signals *signals, uv_loop_t *loop, void (*asked)(void *user, int number),
                   void (*reload)(void *user), void *user)
{
    static const int numbers[HANDLES] = {SIGTERM, SIGINT, SIGHUP};

    signals->asked = asked;
    signals->reload = reload;
    signals->user = user;
    for (size_t i = 0; i < HANDLES; i++) {
        uv_signal_init(loop, &signals->handles[i]);
        signals->handles[i].data = signals;
        uv_signal_start(&signals->handles[i], on_signal, numbers[i]);
    }
}

void signals_close(struct signals *signals)
{
    for (size_t i = 0; i < HANDLES; i++)
        uv_close((uv_handle_t *)&signals->handles[i], NULL);
}

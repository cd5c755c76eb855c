#include "shim/control/asked.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include <utlist.h>

#include "shim/control/limits.h"
#include "shim/must.h"
#include "shim/rpc/message.h"

static void on_cancelled(void *user)
{
    struct asked *asked = user;

    asked->call = NULL;
}

const struct asked *asked_begin(struct asked_book *book, struct rpc_incoming *call,
                                const ProtobufCMessage *request,
                                void (*done)(void *user, const struct asked *asked,
                                             const struct devicemgr_steered *steered),
                                void *user)
{
    ProtobufCMessage *copy = message_copy(request);
    struct asked *asked;
    struct ucred peer;

    if (!copy) {
        rpc_incoming_finish(call, RPC_INVALID_ARGUMENT, CONTROL_UNREADABLE);
        return NULL;
    }
    asked = must(calloc(1, sizeof *asked));
    rpc_incoming_peer(call, &peer);
    asked->number = ++book->last_number;
    asked->call = call;
    asked->uid = peer.uid;
    asked->request = copy;
    asked->done = done;
    asked->user = user;
    DL_APPEND(book->first, asked);
    rpc_incoming_on_cancel(call, on_cancelled, asked);
    return asked;
}

void asked_by(const struct asked *asked, const char *reason, char out[static ASKED_BY_BYTES_MAX])
{
    snprintf(out, ASKED_BY_BYTES_MAX, "by uid %u%s%s", asked->uid, reason[0] ? ": " : "", reason);
}

static void forget(struct asked_book *book, struct asked *asked)
{
    DL_DELETE(book->first, asked);
    protobuf_c_message_free_unpacked(asked->request, NULL);
    free(asked);
}

void asked_done(struct asked_book *book, uint64_t number, const struct devicemgr_steered *steered)
{
    struct asked *asked = book->first;

    while (asked && asked->number != number)
        asked = asked->next;
    assert(asked);
    asked->done(asked->user, asked, steered);
    forget(book, asked);
}

void asked_fini(struct asked_book *book)
{
    while (book->first)
        forget(book, book->first);
}

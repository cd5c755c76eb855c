#include "shim/bridge/offer.h"

#include <errno.h>

static int take_list(struct offer *offer, const Bridge__V1__Resource *message)
{
    struct list *list = list_new(message->list);

    if (!list)
        return -ENOMEM;
    if (!offer->list || !list_same_devices(offer->list, list))
        offer->devices++;
    list_free(offer->list);
    offer->list = list;
    offer->version = message->version;
    offer->layout = message->layout;
    offer->health++;
    return 1;
}

static int take_changes(struct offer *offer, const Bridge__V1__Resource *message)
{
    bool shows;

    if (!offer->list || offer->layout == 0 || message->layout != offer->layout ||
        !list_takes(offer->list, message->changes, message->n_changes))
        return -ESTALE;
    shows = list_change(offer->list, message->changes, message->n_changes, offer->masked);
    offer->version = message->version;
    offer->health += shows;
    return shows;
}

int offer_take(struct offer *offer, const Bridge__V1__Resource *message)
{
    if (message->list)
        return take_list(offer, message);
    return message->n_changes > 0 ? take_changes(offer, message) : 0;
}

bool offer_set_masked(struct offer *offer, bool masked)
{
    if (masked == offer->masked)
        return false;
    offer->masked = masked;
    offer->health++;
    return true;
}

void offer_forget_version(struct offer *offer)
{
    offer->version = 0;
    offer->layout = 0;
}

void offer_fini(struct offer *offer)
{
    list_free(offer->list);
    *offer = (struct offer){0};
}

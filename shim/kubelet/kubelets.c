#include "shim/kubelet/kubelets.h"

#include "shim/must.h"
#include "shim/process.h"

void kubelets_init(struct kubelets *kubelets)
{
    *kubelets = (struct kubelets){0};
    TAILQ_INIT(&kubelets->list);
    TAILQ_INIT(&kubelets->released);
}

struct kubelet *kubelets_add(struct kubelets *kubelets, pid_t pid, uint64_t started,
                             enum kubelet_state state)
{
    struct kubelet *kubelet = must(calloc(1, sizeof *kubelet));

    kubelet->pid = pid;
    kubelet->started = started;
    kubelet->state = state;
    kubelet->socket_ms = KUBELETS_NEVER;
    kubelet->alone_ms = KUBELETS_NEVER;
    TAILQ_INIT(&kubelet->holds);
    TAILQ_INSERT_TAIL(&kubelets->list, kubelet, entry);
    kubelets->len++;
    return kubelet;
}

static void hold_free(struct kubelets *kubelets, struct holds *holds, struct hold *hold)
{
    TAILQ_REMOVE(holds, hold, entry);
    kubelets->holds_len--;
    free(hold);
}

static void holds_free(struct kubelets *kubelets, struct holds *holds)
{
    while (!TAILQ_EMPTY(holds))
        hold_free(kubelets, holds, TAILQ_FIRST(holds));
}

static void kubelet_free(struct kubelets *kubelets, struct kubelet *kubelet)
{
    holds_free(kubelets, &kubelet->holds);
    TAILQ_REMOVE(&kubelets->list, kubelet, entry);
    kubelets->len--;
    free(kubelet);
}

void kubelets_fini(struct kubelets *kubelets)
{
    while (!TAILQ_EMPTY(&kubelets->list))
        kubelet_free(kubelets, TAILQ_FIRST(&kubelets->list));
    holds_free(kubelets, &kubelets->released);
}

static bool kubelet_lives(const struct kubelet *kubelet)
{
    uint64_t started;

    return process_started(kubelet->pid, &started) == 0 && started == kubelet->started;
}

struct kubelet *kubelets_find(const struct kubelets *kubelets, pid_t pid)
{
    struct kubelet *kubelet;

    TAILQ_FOREACH(kubelet, &kubelets->list, entry) {
        if (kubelet->pid == pid && kubelet_lives(kubelet))
            return kubelet;
    }
    return NULL;
}

const struct kubelet *kubelets_newest(const struct kubelets *kubelets)
{
    const struct kubelet *kubelet = TAILQ_LAST(&kubelets->list, kubelet_list);

    while (kubelet && !kubelet_lives(kubelet))
        kubelet = TAILQ_PREV(kubelet, kubelet_list, entry);
    return kubelet;
}

bool kubelets_make_room(struct kubelets *kubelets)
{
    struct kubelet *kubelet, *next;

    for (kubelet = TAILQ_FIRST(&kubelets->list); kubelet; kubelet = next) {
        next = TAILQ_NEXT(kubelet, entry);
        if (TAILQ_EMPTY(&kubelet->holds) && !kubelet_lives(kubelet))
            kubelet_free(kubelets, kubelet);
    }
    for (kubelet = TAILQ_FIRST(&kubelets->list); kubelet && kubelets->len >= KUBELETS_MAX;
         kubelet = next) {
        next = TAILQ_NEXT(kubelet, entry);
        if (TAILQ_EMPTY(&kubelet->holds))
            kubelet_free(kubelets, kubelet);
    }
    return kubelets->len < KUBELETS_MAX;
}

bool kubelets_armed(const struct kubelets *kubelets)
{
    const struct kubelet *kubelet;

    TAILQ_FOREACH(kubelet, &kubelets->list, entry) {
        if (kubelet->state != KUBELET_OPEN)
            return true;
    }
    return false;
}

/* ---- held calls ---- */

void kubelet_begin_holding(struct kubelet *kubelet, uint64_t now_ms)
{
    if (kubelet->state != KUBELET_ARMED)
        return;
    kubelet->state = KUBELET_HOLDING;
    kubelet->since_ms = now_ms;
}

void kubelets_hold(struct kubelets *kubelets, struct kubelet *kubelet, uint64_t number,
                   uint64_t limit_ms)
{
    struct hold *hold = must(calloc(1, sizeof *hold));

    hold->number = number;
    hold->limit_ms = limit_ms;
    TAILQ_INSERT_TAIL(&kubelet->holds, hold, entry);
    kubelets->holds_len++;
}

void kubelets_open(struct kubelets *kubelets, struct kubelet *kubelet)
{
    kubelet->state = KUBELET_OPEN;
    TAILQ_CONCAT(&kubelets->released, &kubelet->holds, entry);
}

bool kubelets_take_released(struct kubelets *kubelets, uint64_t *number)
{
    struct hold *hold = TAILQ_FIRST(&kubelets->released);

    if (!hold)
        return false;
    *number = hold->number;
    hold_free(kubelets, &kubelets->released, hold);
    return true;
}

static bool cancel_in(struct kubelets *kubelets, struct holds *holds, uint64_t number)
{
    struct hold *hold;

    TAILQ_FOREACH(hold, holds, entry) {
        if (hold->number == number) {
            hold_free(kubelets, holds, hold);
            return true;
        }
    }
    return false;
}

bool kubelets_cancel(struct kubelets *kubelets, uint64_t number)
{
    bool found = cancel_in(kubelets, &kubelets->released, number);
    struct kubelet *kubelet;

    TAILQ_FOREACH(kubelet, &kubelets->list, entry) {
        found = found || cancel_in(kubelets, &kubelet->holds, number);
    }
    return found;
}

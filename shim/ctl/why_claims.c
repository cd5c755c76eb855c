#include "shim/ctl/why_claims.h"

static const char *request_word(bool unprepare)
{
    return unprepare ? "unprepare" : "prepare";
}

/* ---- for people ---- */

static void put_request(const struct show *show, const Control__V1__ClaimRequest *request)
{
    char age[SHOW_AGE_BYTES];

    fprintf(show->out, "    the kubelet waits for its %s for %s", request_word(request->unprepare),
            show_age(request->waited_ms, age));
    if (request->unbounded)
        fputs(", until the driver answers\n", show->out);
    else
        fprintf(show->out, ", and is refused in %s\n", show_age(request->left_ms, age));
}

static void put_names(const struct show *show, const Control__V1__ClaimWhy *claim)
{
    show_put(show, claim->namespace_[0] ? claim->namespace_ : "?");
    fputc('/', show->out);
    show_put(show, claim->name[0] ? claim->name : claim->uid);
}

void why_claim_put(const struct show *show, const Control__V1__ClaimWhy *claim)
{
    char age[SHOW_AGE_BYTES];

    fputs("claim ", show->out);
    put_names(show, claim);
    fputs(" (uid ", show->out);
    show_put(show, claim->uid);
    fputs("), driver ", show->out);
    show_put(show, claim->driver);
    if (claim->state[0])
        fprintf(show->out, ": %s for %s\n", claim->state, show_age(claim->since_ms, age));
    else
        fputs(": nothing is kept of it\n", show->out);
    for (size_t i = 0; i < claim->n_requests; i++)
        put_request(show, claim->requests[i]);
    if (claim->reason) {
        fputs("    ", show->out);
        why_put_step(show, claim->step);
        why_put_reason(show, claim->reason);
        fputc('\n', show->out);
    }
    if (claim->retry_ms > 0)
        fprintf(show->out, "      again:  in %s\n", show_age(claim->retry_ms, age));
    if (claim->refusal) {
        fprintf(show->out, "    its %s:\n", request_word(claim->refused_unprepare));
        why_put_refusal(show, claim->refusal);
    }
}

void why_claim_put_name(const struct show *show, const Control__V1__ClaimWhy *claim)
{
    fputs("claim/", show->out);
    put_names(show, claim);
    fputc('/', show->out);
    show_put(show, claim->driver);
    fputc('\n', show->out);
}

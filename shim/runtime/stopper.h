/*
 * Containers and sandboxes that the core wants stopped (devicemgr/ports.h, stop_container,
 * stop_sandbox): StopContainer and StopPodSandbox on a connection to the runtime of its own, since
 * a stop takes as long as its grace, and lists are not to wait behind some hundred of them where a
 * runtime bounds what one connection has open at once.
 *
 * The connection is made for the first stop and kept. One that is lost ends its stops, of which the
 * core learns, and the next stop makes another: when to try again is the core's to say. So does the
 * next where a runtime goes away and takes no more of them, beside those that it has.
 */
#ifndef SHIM_RUNTIME_STOPPER_H
#define SHIM_RUNTIME_STOPPER_H

#include <stdint.h>

#include <uv.h>

/* How much longer than the grace a runtime may take: what the kubelet gives it
 * (staging/src/k8s.io/cri-client/pkg/remote_runtime.go). */
#define STOPPER_MORE_MS 120000
/* How long the kubelet waits for the end of a sandbox (--runtime-request-timeout, by default). */
#define STOPPER_SANDBOX_MS 120000

struct stopper;

/* How the stop of that number ended; from the loop. `code` is a gRPC code, `message` borrowed. */
typedef void stopper_ended(void *user, uint64_t number, int code, const char *message);

struct stopper_ops {
    stopper_ended *container_ended, *sandbox_ended;
};

/* `endpoint` (a plain path), `ops` and `user` are borrowed until stopper_stop(). */
struct stopper *stopper_start(uv_loop_t *loop, const char *endpoint, const struct stopper_ops *ops,
                              void *user);

/* `number` is the caller's, not in use. The grace goes out in whole seconds, those begun
 * counted. */
void stopper_container(struct stopper *stopper, uint64_t number, const char *container_id,
                       uint64_t grace_ms);
void stopper_sandbox(struct stopper *stopper, uint64_t number, const char *sandbox_id);
/* It ends without a word, if it has not ended; the runtime may have stopped it, or half. */
void stopper_cancel(struct stopper *stopper, uint64_t number);

/* Ends all without a word, frees, then runs `done` from the loop. */
void stopper_stop(struct stopper *stopper, void (*done)(void *user), void *user);

#endif

/*
 * Whether a kubelet has taken, and digested, what it is shown.
 *
 * Its callback for a list sets the healthy devices and then writes the checkpoint file: once that
 * file names them, pods that have them are admitted. A kubelet that starts writes a resource with
 * no device until its plugin has registered, so what an earlier kubelet left is no proof: the file
 * counts if it was read after the bridge saw it written.
 *
 * A resource that this kubelet has refused to register it will never take: nobody waits for it.
 */
#ifndef SHIM_KUBELET_TAKEN_H
#define SHIM_KUBELET_TAKEN_H

#include <stdbool.h>
#include <sys/types.h>

#include "cri-proto/bridge_v1.pb-c.h"
#include "shim/kubelet/advertised.h"
#include "shim/kubelet/checkpoint_watch.h"

#define TAKEN_WORDS_BYTES_MAX 256

struct taken {
    bool bridge;  /* one is connected */
    bool reached; /* one has reached that kubelet: its kubelet.sock is there */
    bool all;
    char words[TAKEN_WORDS_BYTES_MAX]; /* for the log: what was taken and refused, or what is
                                          missing */
};

/* Puts a report's resources in the order of their names, which the functions below want. */
void taken_sort(Bridge__V1__ReportRequest *report);

/* `report`: the bridge's last, sorted, NULL: none. `file`: read after that report came; NULL: it is
 * being read. A list is taken only once the file has its healthy devices, and no others: the
 * kubelet writes it for much else, too. `bridge` and `reached` are the caller's to say. */
void taken_judge(const struct advertised *advertised, const Bridge__V1__ReportRequest *report,
                 const struct kubelet_file *file, pid_t kubelet, struct taken *out);

/* Whether a kubelet has stored that list, as the report says, and has its healthy devices and no
 * others, as the file says, which is not NULL, nor DAMAGED or the like. */
bool taken_stored(const struct advertised_list *list, const Bridge__V1__ReportRequest *report,
                  const struct kubelet_file *file);

/* Whether a kubelet has let go of a list with healthy devices, which it had stored, as the report
 * says: it has no healthy device of that resource now, as the file says. */
enum displaced_seen taken_look(const struct advertised_list *list,
                               const Bridge__V1__ReportRequest *report,
                               const struct kubelet_file *file);

#endif

/*
 * Whether a runtime tells its container events (GetContainerEvents) to all who listen, by what it
 * says of itself. Of one that does not, each goes to one of them, who may be gone: whoever listens
 * takes them away from the kubelet, which may go by them (EventedPLEG).
 */
#ifndef SHIM_RUNTIME_EVENT_SHARING_H
#define SHIM_RUNTIME_EVENT_SHARING_H

#include <stdbool.h>

/*
 * `name` and `version` are VersionResponse's; with an empty name it is not known yet, and false.
 *
 *   containerd  before 1.7   has none, and says so
 *               1.7          to one (containerd#7318)
 *               from 2.0 on  to all
 *   cri-o       before 1.28  to one (cri-o#6466)
 *               from 1.28 on to all
 *   others      to all, as CRI has it
 *
 * Of either a version that cannot be read counts as one that does not.
 */
bool event_sharing(const char *name, const char *version);

#endif

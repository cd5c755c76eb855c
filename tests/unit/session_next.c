#include "session_next.h"

#define SESSION_STATE_NEXT
#define session_freeze session_next_freeze
#define session_thaw session_next_thaw
#include "shim/relay/session/freeze.c"

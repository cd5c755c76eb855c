/*
 * Every maximum of the device manager.
 */
#ifndef DEVICEMGR_LIMITS_H
#define DEVICEMGR_LIMITS_H

/* A message a person reads: two or three terminal lines and a plugin's words; half of what gRPC
 * status texts may have (RPC_STATUS_TEXT_BYTES_MAX is 1024). */
#define TEXT_BYTES_MAX 512
/* Of it: a peer's own words, one name (a pod's has at most 253 characters), a list of ids. */
#define TEXT_WORDS_BYTES_MAX 160
#define TEXT_IDS_BYTES_MAX 64

/* sun_path holds 108 bytes with its NUL; the plugin directory needs at least "/x/". */
#define SOCKET_NAME_BYTES_MAX 104

/* A node has a handful; 200 are asked for by the largest known users. */
#define RESOURCES_MAX 1024
/* Creates pending or forwarded at once: a node runs at most some hundred pods. */
#define CREATES_MAX 4096
/* Resources one container may name, and the text that names them: 253 + 1 + 63 bytes a name. */
#define REQUEST_RESOURCES_MAX 64
#define REQUEST_BYTES_MAX 24576
/* Most devices one container may ask for by number. */
#define REQUEST_COUNT_MAX 65535
/* Sandboxes not in the table of which an end is remembered, 200 bytes each: a late create comes
 * within minutes, and a node of 110 pods does not remove so many in that time. */
#define SANDBOX_ENDS_MAX 2048
/* Container names of one pod whose ignored annotation was logged. */
#define POD_IGNORED_MAX 64

/* A create is never held longer than this (design §5), and its refusal leaves this long before the
 * client's own deadline, so that the client sees our words and not its own. */
#define HOLD_MS_MAX 60000
#define DEADLINE_MARGIN_MS 200
/* Most a plugin may think about its preference (design §6). */
#define PREFER_TIMEOUT_MS 500
/* A redialled connection that ends sooner than this is not dialled again: the plugin flaps. */
#define REDIAL_AGAIN_MS 1000

/* A plugin is dialled so often in quick succession, by its own registrations or ours; from then on
 * once in so long. One that registers ten times a second costs ten dials and then one a second. */
#define DIALS_AT_ONCE 10
#define DIAL_EVERY_MS 1000
/* How long a plugin that is connected may take until its first list before it counts as stopped. */
#define FIRST_LIST_MS 30000
/* A stop time is stored once its endpoint has been away this long: a plugin that only flaps, or is
 * dialled again, costs no write. What a crash before that adds to the grace period is less. */
#define STOP_STORE_MS 1000

#endif

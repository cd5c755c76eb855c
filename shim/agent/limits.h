/*
 * Every maximum and every time of the agent.
 */
#ifndef SHIM_AGENT_LIMITS_H
#define SHIM_AGENT_LIMITS_H

/* One object of the API server's. It stores 1.5 MiB at most (etcd's --max-request-bytes), packed;
 * as JSON that may be twice as much. */
#define OBJECT_BYTES_MAX (4u * 1024 * 1024)
/* One that is larger is left out, up to that: packed it has 1.5 MiB all the same, of which JSON may
 * make six times as much (control characters). More has no end. */
#define OBJECT_SKIPPED_BYTES_MAX (16u * 1024 * 1024)
/* What stands around the items of a list. */
#define LIST_HEAD_BYTES_MAX (64u * 1024)
/* All pages of one list together, which a server may answer as one (it ignores `limit` for what it
 * has in its cache): items go through one by one, so this only ends what has no end. A node has 110
 * pods by default, each of which may have 1.5 MiB. */
#define LIST_BYTES_MAX (512u * 1024 * 1024)
/* An answer to anything else. */
#define ANSWER_BYTES_MAX OBJECT_BYTES_MAX
/* Of an answer that is an error, which is read for its words. */
#define ERROR_BYTES_MAX (16u * 1024)
#define ERROR_WORDS_BYTES_MAX 512
/* How deep JSON may be nested; schemas of custom resources may be deep, ours are not. */
#define JSON_DEPTH_MAX 64
/* How many values there may be in one object: a slice of 128 devices with 32 attributes each has
 * some 20,000; of a pod there may be as many as it has bytes. Once read each takes some 250 bytes
 * of its own at most, so that an object with text and all is below 4 + 8 + 16 MiB while it is
 * looked at. */
#define JSON_VALUES_MAX 65536
/* Objects in a page of a list. */
#define LIST_PAGE 100

/* Files of the kubeconfig and those it names. */
#define CREDENTIAL_BYTES_MAX (1024u * 1024)
/* What a credential plugin writes, and how long it may take. */
#define EXEC_PLUGIN_BYTES_MAX (1024u * 1024)
#define EXEC_PLUGIN_TIMEOUT_MS 30000
/* A plugin's credentials are asked for anew that long before they end; those without an end after
 * so long. */
#define EXEC_PLUGIN_EARLY_MS 60000
#define EXEC_PLUGIN_ANEW_MS 600000
#define EXEC_PLUGIN_AGAIN_MS 10000

/* Requests: until a connection stands, and until the answer is whole. */
#define CONNECT_TIMEOUT_MS 10000
#define REQUEST_TIMEOUT_MS 30000
/* What is written may wait for webhooks, of which one may take 30 s: the server itself ends it
 * after 34 s, and says why (staging/src/k8s.io/apiserver/pkg/endpoints/handlers/rest.go). */
#define WRITE_TIMEOUT_MS 40000
/* A list of a large cluster's slowest server. */
#define LIST_TIMEOUT_MS 60000
/* A watch that begins with all there is: until it has said that this was all. */
#define STREAM_TIMEOUT_MS 30000
/* A watch's own end, of which a random part is added: the server would end it after half an
 * hour. */
#define WATCH_SECONDS_MIN 300
#define WATCH_SECONDS_SPREAD 300
/* Bookmarks come about each minute: one that is silent for that long is dead. */
#define WATCH_SILENCE_S 180
/* A watch that ended sooner without an event has not worked; with one the next begins then. */
#define WATCH_SHORT_MS 1000
/* A server that is gone without a word: the kernel asks an idle connection for a sign of life after
 * the first, each second of these again, and ends it when nothing was acknowledged for the third.
 * As client-go's pings have it (30 s, and 15 for the answer). */
#define KEEPALIVE_IDLE_S 30
#define KEEPALIVE_AGAIN_S 5
#define UNACKNOWLEDGED_MS 45000
/* A connection on which nothing came for that long when requests on it time out is of no use: less
 * than the shortest of their times. */
#define SILENT_MS 25000
/* Over HTTP/1.1 each watch has a connection of its own, and all else shares the others; over HTTP/2
 * there is one. */
#define CONNECTIONS_MAX 6

/* Until something is tried again: doubled each time, with up to as much more by chance; begins anew
 * after so long a time in which it worked. As client-go's reflector has it. */
#define BACKOFF_MS_MIN 800
#define BACKOFF_MS_MAX 30000
#define BACKOFF_QUIET_MS 120000
/* What is refused is so until somebody gives the right to it. */
#define BACKOFF_REFUSED_MS_MAX 300000
/* What a server asks for by Retry-After is kept up to that. */
#define RETRY_AFTER_MS_MAX 300000
/* Of all nodes of a cluster that starts: the first request goes out within that time, by chance. */
#define START_SPREAD_MS 1000

/* How often is looked whether what the server does not have is there by now, with up to as much
 * more by chance; and how old its word must be for a 404 to be news. */
#define SERVED_AGAIN_MS 600000
#define SERVED_OLD_MS 60000

#define REPORT_TIMEOUT_MS 10000
/* Answers that a daemon is given at a time, which may be slow; the next wait for these. */
#define ANSWERS_AT_ONCE 64
#define REPORT_AGAIN_MS 1000

/* The daemon is called again at once after a feed that worked, then doubling. */
#define FEED_AGAIN_MS_MIN 10
#define FEED_AGAIN_MS_MAX 1000
#define FEED_PINGS_MS 2000

/* The system bus: until a call has its answer, and the most until another connection is tried. */
#define BUS_CALL_TIMEOUT_MS 5000
#define BUS_AGAIN_MS_MAX 10000
/* logind is asked anew without a signal: its limit has none. */
#define LOGIND_READ_MS 60000
/* A lock that was refused is asked for again. */
#define LOCK_AGAIN_MS_MAX 60000
/* Until the service manager is told again what it did not take. */
#define LOCK_TELL_AGAIN_MS 100
/* So long before logind goes on without us we have let go. */
#define SHUTDOWN_EARLY_MS 1000

/* Orders that there are: more than a daemon has (shim/cluster/limits.h, CLUSTER_ORDERS_MAX); those
 * that are begun, of which the API server has one request each; and those that were done and are
 * remembered, so that an answer that was lost is given again and nothing is done twice. */
#define ORDERS_MAX 16384
#define ORDERS_AT_ONCE 64
/* Slices of one pool that are published, and those that are in the way of that, at once. */
#define POOL_SLICES_MAX 1024
#define ORDERS_DONE_MAX 256

#endif

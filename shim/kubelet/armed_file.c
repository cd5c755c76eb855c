#include "shim/kubelet/armed_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/boot.h"
#include "shim/file.h"
#include "shim/log.h"
#include "shim/process.h"

/* The boot's id, six numbers, and what is between them. */
#define LINE_BYTES_MAX (BOOT_ID_BYTES_MAX + 6 * 21)
#define TEXT_BYTES_MAX (KUBELETS_MAX * LINE_BYTES_MAX)

static size_t put_line(char *line, const char *boot_id, const struct kubelet *kubelet)
{
    int n =
        snprintf(line, LINE_BYTES_MAX, "%s %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                 boot_id, kubelet->pid, kubelet->started, kubelet->before.device,
                 kubelet->before.inode, kubelet->before.modified_ns);

    return n < 0 ? 0 : (size_t)n;
}

static int write_file(const char *path, const char *boot_id, const struct kubelets *kubelets)
{
    char text[TEXT_BYTES_MAX];
    const struct kubelet *kubelet;
    size_t len = 0;

    text[0] = '\0';
    TAILQ_FOREACH(kubelet, &kubelets->list, entry) {
        if (kubelet->state != KUBELET_OPEN)
            len += put_line(text + len, boot_id, kubelet);
    }
    return file_replace(path, text, len);
}

void armed_file_save(const char *path, const char *boot_id, const struct kubelets *kubelets)
{
    int r = 0;

    if (kubelets_armed(kubelets))
        r = write_file(path, boot_id, kubelets);
    else if (unlink(path) < 0 && errno != ENOENT)
        r = -errno;
    if (r < 0)
        log_warning("%s: %s; should the daemon be killed now, the next one does not know whom to "
                    "hold",
                    path, strerror(-r));
}

struct reading {
    const char *path, *boot_id;
    struct kubelets *kubelets;
    bool (*is_kubelet)(const void *user, pid_t pid);
    const void *user;
};

static void restore_line(const struct reading *r, const char *line)
{
    char boot_id[BOOT_ID_BYTES_MAX];
    struct file_identity before = {0};
    uint64_t started, now;
    int pid, end = 0, more = 0;

    /* NOLINTNEXTLINE(cert-err34-c): the widths are those that fit */
    if (sscanf(line, "%63s %9d %18" SCNu64 " %n", boot_id, &pid, &started, &end) == 3 &&
        /* NOLINTNEXTLINE(cert-err34-c): one that does not fit is another file's */
        sscanf(line + end, "%20" SCNu64 " %20" SCNu64 " %20" SCNu64 " %n", &before.device,
               &before.inode, &before.modified_ns, &more) == 3)
        end += more;
    if (end == 0 || line[end] != '\0') {
        log_warning("%s: a line makes no sense; it is left out", r->path);
        return;
    }
    if (strcmp(boot_id, r->boot_id) != 0 || r->kubelets->len >= KUBELETS_MAX ||
        process_started(pid, &now) < 0 || now != started || !r->is_kubelet(r->user, pid))
        return;
    kubelets_add(r->kubelets, pid, started, KUBELET_ARMED)->before = before;
    log_info("kubelet (process %d): its first relist is still to come", pid);
}

void armed_file_restore(const char *path, const char *boot_id, struct kubelets *kubelets,
                        bool (*is_kubelet)(const void *user, pid_t pid), const void *user)
{
    const struct reading reading = {path, boot_id, kubelets, is_kubelet, user};
    FILE *file = fopen(path, "re");
    char line[256];

    if (!file)
        return;
    while (fgets(line, sizeof line, file))
        restore_line(&reading, line);
    fclose(file);
    armed_file_save(path, boot_id, kubelets); /* without the rest */
}

/* shim/registry/kubelet_link.c on a real file system. */
#include "tests/unit/rpc_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim/registry/kubelet_link.h"

#define BOOT "boot-1"

struct fixture {
    char kubelet[64];
    char path[96]; /* of the socket */
    int file;
};

static void make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    strcpy(address.sun_path, path);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

static void open_socket(struct fixture *f)
{
    make_socket(f->path);
    f->file = open(f->path, O_PATH | O_CLOEXEC);
    assert_true(f->file >= 0);
}

static void begin(struct fixture *f, void **state)
{
    struct world *world = *state;

    snprintf(f->kubelet, sizeof f->kubelet, "%s/kubelet", world->dir);
    snprintf(f->path, sizeof f->path, "%s/csi-reg.sock", world->dir);
    assert_int_equal(mkdir(f->kubelet, 0755), 0);
    open_socket(f);
}

static void end(struct fixture *f)
{
    close(f->file);
    unlink(f->path);
    assert_int_equal(rmdir(f->kubelet), 0);
}

/* The path of the one name in the kubelet's directory; "" for none. */
static const char *only(const struct fixture *f)
{
    static char path[400];
    DIR *names = opendir(f->kubelet);
    const struct dirent *entry;
    unsigned n = 0;

    path[0] = '\0';
    while ((entry = readdir(names))) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", f->kubelet, entry->d_name);
        n++;
    }
    closedir(names);
    assert_true(n <= 1);
    return path;
}

static void leads_to_the_socket(void **state)
{
    struct fixture f;
    struct stat a, b;

    begin(&f, state);
    assert_int_equal(kubelet_link_make(f.kubelet, BOOT, f.path, f.file), 1);
    assert_int_equal(stat(only(&f), &a), 0);
    assert_int_equal(fstat(f.file, &b), 0);
    assert_int_equal(a.st_ino, b.st_ino);
    assert_int_equal(kubelet_link_make(f.kubelet, BOOT, f.path, f.file), 0);
    kubelet_link_remove(f.kubelet, BOOT, f.path);
    assert_string_equal(only(&f), "");
    kubelet_link_remove(f.kubelet, BOOT, f.path);
    end(&f);
}

/* Puts another socket in its place; the old one's inode is held, so that it is another. Returns
 * it. */
static int replace_socket(struct fixture *f)
{
    int old = f->file;

    assert_int_equal(unlink(f->path), 0);
    open_socket(f);
    return old;
}

/* The link's own inode: the kubelet is told that it is a new one. */
static ino_t link_itself(const char *path)
{
    struct stat st;

    assert_int_equal(lstat(path, &st), 0);
    return st.st_ino;
}

/* Under two names the kubelet would register the one and deregister the other at the same time. */
static void a_socket_that_takes_its_place_has_its_name(void **state)
{
    struct fixture f;
    char name[400];
    ino_t first;

    begin(&f, state);
    assert_int_equal(kubelet_link_make(f.kubelet, BOOT, f.path, f.file), 1);
    snprintf(name, sizeof name, "%s", only(&f));
    first = link_itself(name);
    close(replace_socket(&f));
    assert_int_equal(kubelet_link_make(f.kubelet, BOOT, f.path, f.file), 1);
    assert_string_equal(only(&f), name);
    assert_int_not_equal(link_itself(name), first);
    assert_int_equal(kubelet_link_make(f.kubelet, BOOT, f.path, f.file), 0);
    kubelet_link_remove(f.kubelet, BOOT, f.path);
    end(&f);
}

/* A file system gives the number of an inode away again. */
static void one_with_its_inode_is_another_too(void **state)
{
    const struct timespec times[2] = {{.tv_sec = 17, .tv_nsec = 1}, {.tv_sec = 17, .tv_nsec = 1}};
    struct fixture f;

    begin(&f, state);
    assert_int_equal(kubelet_link_make(f.kubelet, BOOT, f.path, f.file), 1);
    assert_int_equal(chmod(f.path, 0700), 0); /* it is the same one */
    assert_int_equal(kubelet_link_make(f.kubelet, BOOT, f.path, f.file), 0);
    assert_int_equal(utimensat(AT_FDCWD, f.path, times, 0), 0);
    assert_int_equal(kubelet_link_make(f.kubelet, BOOT, f.path, f.file), 1);
    assert_int_equal(utimensat(AT_FDCWD, f.path, NULL, 0), 0);
    kubelet_link_clean(f.kubelet, BOOT);
    assert_string_equal(only(&f), "");
    end(&f);
}

static void another_boot_has_another_name(void **state)
{
    struct fixture f;
    char first[400];

    begin(&f, state);
    assert_int_equal(kubelet_link_make(f.kubelet, BOOT, f.path, f.file), 1);
    snprintf(first, sizeof first, "%s", only(&f));
    kubelet_link_clean(f.kubelet, "boot-2");
    assert_string_equal(only(&f), "");
    assert_int_equal(kubelet_link_make(f.kubelet, "boot-2", f.path, f.file), 1);
    assert_string_not_equal(only(&f), first);
    kubelet_link_remove(f.kubelet, "boot-2", f.path);
    end(&f);
}

static void what_is_in_its_way_goes(void **state)
{
    struct fixture f;
    char name[400];

    begin(&f, state);
    assert_int_equal(kubelet_link_make(f.kubelet, BOOT, f.path, f.file), 1);
    snprintf(name, sizeof name, "%s", only(&f));
    assert_int_equal(unlink(name), 0);
    assert_int_equal(symlink("/elsewhere", name), 0);
    assert_int_equal(kubelet_link_make(f.kubelet, BOOT, f.path, f.file), 1);
    assert_int_equal(kubelet_link_make(f.kubelet, BOOT, f.path, f.file), 0);
    kubelet_link_remove(f.kubelet, BOOT, f.path);
    end(&f);
}

static void there_may_be_no_directory(void **state)
{
    struct fixture f;

    begin(&f, state);
    assert_int_equal(kubelet_link_make("/nowhere/at/all", BOOT, f.path, f.file), -ENOENT);
    kubelet_link_remove("/nowhere/at/all", BOOT, f.path);
    kubelet_link_clean("/nowhere/at/all", BOOT);
    end(&f);
}

/* A daemon that starts leaves what is right, and files that are not of ours. */
static void cleans_what_leads_nowhere(void **state)
{
    struct fixture f;
    char foreign[128];

    begin(&f, state);
    assert_int_equal(kubelet_link_make(f.kubelet, BOOT, f.path, f.file), 1);
    kubelet_link_clean(f.kubelet, BOOT);
    assert_string_not_equal(only(&f), "");
    close(replace_socket(&f)); /* while no daemon ran */
    kubelet_link_clean(f.kubelet, BOOT);
    assert_string_equal(only(&f), "");

    assert_int_equal(kubelet_link_make(f.kubelet, BOOT, f.path, f.file), 1);
    assert_int_equal(unlink(f.path), 0);
    kubelet_link_clean(f.kubelet, BOOT);
    assert_string_equal(only(&f), "");

    snprintf(foreign, sizeof foreign, "%s/" KUBELET_LINK_PREFIX "x.sock", f.kubelet);
    make_socket(foreign);
    kubelet_link_clean(f.kubelet, BOOT);
    assert_string_equal(only(&f), foreign);
    assert_int_equal(unlink(foreign), 0);
    snprintf(foreign, sizeof foreign, "%s/csi-reg.sock", f.kubelet);
    assert_int_equal(symlink("/nowhere", foreign), 0);
    kubelet_link_clean(f.kubelet, BOOT);
    assert_string_equal(only(&f), foreign);
    assert_int_equal(unlink(foreign), 0);
    end(&f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(leads_to_the_socket),
        TEST(a_socket_that_takes_its_place_has_its_name),
        TEST(one_with_its_inode_is_another_too),
        TEST(another_boot_has_another_name),
        TEST(what_is_in_its_way_goes),
        TEST(there_may_be_no_directory),
        TEST(cleans_what_leads_nowhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* shim/registry/info.c: what a plugin may say of itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cri-proto/kube_name.h"
#include "shim/registry/info.h"
#include "shim/registry/limits.h"

#define SOCKET "/var/lib/kubelet/plugins_registry/x-reg.sock"

static const char *check(const char *type, const char *name, const char *endpoint,
                         const char *const *versions, size_t versions_len)
{
    static char words[INFO_WORDS_BYTES_MAX];
    Pluginregistration__PluginInfo info = PLUGINREGISTRATION__PLUGIN_INFO__INIT;
    bool good;

    info.type = (char *)type;
    info.name = (char *)name;
    info.endpoint = (char *)endpoint;
    info.supported_versions = (char **)versions;
    info.n_supported_versions = versions_len;
    words[0] = '\0';
    good = info_check(&info, SOCKET, words);
    assert_int_equal(good, words[0] == '\0');
    return words;
}

static const char *check_driver(const char *name, const char *endpoint)
{
    const char *versions[] = {"v1.DRAPlugin"};

    return check("DRAPlugin", name, endpoint, versions, 1);
}

static const char *check_plugin(const char *name, const char *version)
{
    const char *versions[] = {"v1alpha1", version};

    return check("DevicePlugin", name, "", versions, 2);
}

static void kinds_and_endpoints(void **state)
{
    Pluginregistration__PluginInfo info = PLUGINREGISTRATION__PLUGIN_INFO__INIT;

    (void)state;
    assert_int_equal(info_kind(&info), INFO_OTHER);
    info.type = (char *)"DRAPlugin";
    assert_int_equal(info_kind(&info), INFO_DRIVER);
    info.type = (char *)"DevicePlugin";
    assert_int_equal(info_kind(&info), INFO_PLUGIN);
    info.type = (char *)"CSIPlugin";
    assert_int_equal(info_kind(&info), INFO_OTHER);
    assert_string_equal(info_endpoint(&info, SOCKET), SOCKET);
    info.endpoint = (char *)"/x.sock";
    assert_string_equal(info_endpoint(&info, SOCKET), "/x.sock");
}

/* It has our directory where it mounts the kubelet's, and names its one socket by the latter. */
static void an_endpoint_in_its_container_is_the_socket_that_was_asked(void **state)
{
    static const char asked[] = "/var/lib/cri-device-shim/plugins_registry/x.sock";
    static const char *const others[] = {
        "/var/lib/kubelet/plugins_registry/y.sock", "/var/lib/kubelet/device-plugins/x.sock",
        "/var/lib/kubelet/my_plugins_registry/x.sock", "plugins_registry/x.sock", "x.sock"};
    Pluginregistration__PluginInfo info = PLUGINREGISTRATION__PLUGIN_INFO__INIT;

    (void)state;
    info.endpoint = (char *)"/var/lib/kubelet/plugins_registry/x.sock";
    assert_ptr_equal(info_endpoint(&info, asked), asked);
    info.endpoint = (char *)"/plugins_registry/x.sock";
    assert_ptr_equal(info_endpoint(&info, asked), asked);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        info.endpoint = (char *)others[i];
        assert_ptr_equal(info_endpoint(&info, asked), others[i]);
    }
}

static void drivers(void **state)
{
    char long_name[KUBE_SUBDOMAIN_BYTES_MAX + 2], long_path[110] = "/";

    (void)state;
    assert_string_equal(check_driver("gpu.example.com", "/var/lib/kubelet/plugins/gpu/dra.sock"),
                        "");
    assert_string_equal(check_driver("gpu", ""), "");
    assert_string_equal(check_driver("", "/x"),
                        "the driver name \"\" is not a DNS subdomain of at most 253 bytes");
    for (const char *const *name =
             (const char *const[]){"a..b", ".a", "a.", "-a", "a-", "A", "a/b", "a b", NULL};
         *name; name++)
        assert_non_null(strstr(check_driver(*name, "/x"), "is not a DNS subdomain"));
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    assert_non_null(strstr(check_driver(long_name, "/x"), "aaa\" is not a DNS subdomain"));
    long_name[KUBE_SUBDOMAIN_BYTES_MAX] = '\0';
    assert_string_equal(check_driver(long_name, "/x"), "");
    assert_string_equal(check_driver("gpu", "plugins/x.sock"),
                        "the endpoint \"plugins/x.sock\" is not the absolute path of a unix socket "
                        "of at most 107 bytes");
    assert_non_null(strstr(check_driver("gpu", "/a\nb"), "the endpoint \"/a?b\" is not"));
    memset(long_path + 1, 'a', 107);
    assert_non_null(strstr(check_driver("gpu", long_path), "is not the absolute path"));
    long_path[107] = '\0';
    assert_string_equal(check_driver("gpu", long_path), "");
}

/* The words go back to the plugin in a string, which its decoder wants to be UTF-8. */
static void words_are_ascii(void **state)
{
    const char *words = check_driver("\xff\x01gp\xc3\xbc", "/x");

    (void)state;
    assert_string_equal(words,
                        "the driver name \"??gp??\" is not a DNS subdomain of at most 253 bytes");
}

static void versions_have_bounds(void **state)
{
    const char *versions[REGISTRY_VERSIONS_MAX + 1];
    char long_version[REGISTRY_VERSION_BYTES_MAX + 2];

    (void)state;
    for (size_t i = 0; i <= REGISTRY_VERSIONS_MAX; i++)
        versions[i] = "v1.DRAPlugin";
    assert_string_equal(check("DRAPlugin", "a", "/x", versions, REGISTRY_VERSIONS_MAX), "");
    assert_string_equal(check("DRAPlugin", "a", "/x", versions, REGISTRY_VERSIONS_MAX + 1),
                        "more than 32 supported versions, or one of more than 253 bytes");
    memset(long_version, 'v', sizeof long_version - 1);
    long_version[sizeof long_version - 1] = '\0';
    versions[0] = long_version;
    assert_non_null(strstr(check("DevicePlugin", "a", "/x", versions, 1), "more than 32"));
}

static void device_plugins_in_the_kubelets_words(void **state)
{
    const char *many[REGISTRY_VERSIONS_MAX];

    (void)state;
    assert_string_equal(check_plugin("vendor.com/gpu", "v1beta1"), "");
    assert_string_equal(
        check_plugin("gpu", "v1beta1"),
        "invalid name of device plugin socket: the ResourceName \"gpu\" is invalid");
    assert_string_equal(
        check_plugin("vendor.com/gpu", "v1"),
        "manager version, v1beta1, is not among plugin supported versions [v1alpha1 v1]");
    assert_string_equal(check("DevicePlugin", "vendor.com/gpu", "/x", NULL, 0),
                        "manager version, v1beta1, is not among plugin supported versions []");
    for (size_t i = 0; i < REGISTRY_VERSIONS_MAX; i++)
        many[i] = "a-version-that-is-as-long-as-versions-seldom-are";
    assert_non_null(
        strstr(check("DevicePlugin", "vendor.com/gpu", "/x", many, REGISTRY_VERSIONS_MAX),
               "supported versions [a-version"));
}

/* What the kubelet is to judge is not judged here. */
static void others_pass(void **state)
{
    (void)state;
    assert_string_equal(check("CSIPlugin", "Any Name", "relative", NULL, 0), "");
    assert_string_equal(check("", "", "", NULL, 0), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_and_endpoints),
        cmocka_unit_test(an_endpoint_in_its_container_is_the_socket_that_was_asked),
        cmocka_unit_test(drivers),
        cmocka_unit_test(words_are_ascii),
        cmocka_unit_test(versions_have_bounds),
        cmocka_unit_test(device_plugins_in_the_kubelets_words),
        cmocka_unit_test(others_pass),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* shim/agent/kubeconfig.c: what kubeadm and others write, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shim/agent/kubeconfig.h"

#define PATH "/etc/kubernetes/kubelet.conf"
#define HEAD                                                                                       \
    "apiVersion: v1\nkind: Config\ncurrent-context: b\ncontexts:\n"                                \
    "- {name: a, context: {cluster: x, user: x}}\n"                                                \
    "- name: b\n  context:\n    cluster: c\n    user: u\n"
#define CLUSTER "clusters:\n- name: c\n  cluster:\n    server: https://api:6443/\n"
#define USER "users:\n- name: u\n  user:\n"
#define TOKEN USER "    token: t\n"

static void parse(const char *text, struct kubeconfig *out)
{
    char words[KUBECONFIG_WORDS_BYTES_MAX] = "";

    if (kubeconfig_parse(text, strlen(text), PATH, out, words) < 0)
        fail_msg("%s\n%s", words, text);
}

static void assert_refused(const char *text, const char *expected)
{
    char words[KUBECONFIG_WORDS_BYTES_MAX] = "";
    struct kubeconfig config, untouched;

    memset(&config, 0x5a, sizeof config);
    untouched = config;
    if (kubeconfig_parse(text, strlen(text), PATH, &config, words) == 0)
        fail_msg("taken: %s", text);
    assert_memory_equal(&config, &untouched, sizeof config);
    if (!strstr(words, expected))
        fail_msg("\"%s\" is not in \"%s\"", expected, words);
}

static void as_kubeadm_writes_it(void **state)
{
    struct kubeconfig config;

    (void)state;
    parse(HEAD CLUSTER "    certificate-authority-data: YWJjZA==\n" USER
                       "    client-certificate: /var/lib/kubelet/pki/current.pem\n"
                       "    client-key: pki/current.pem\n",
          &config);
    assert_string_equal(config.server, "https://api:6443");
    assert_int_equal(config.ca.len, 4);
    assert_string_equal(config.ca.bytes, "abcd");
    assert_string_equal(config.certificate_file, "/var/lib/kubelet/pki/current.pem");
    assert_string_equal(config.key_file, "/etc/kubernetes/pki/current.pem");
    assert_null(config.token);
    assert_null(config.exec.command);
    assert_false(config.insecure);
    kubeconfig_fini(&config);
}

/* As a block, which ends with one, or wrapped, as base64(1) does. */
static void data_may_have_ends_of_lines(void **state)
{
    struct kubeconfig config;

    (void)state;
    parse(HEAD CLUSTER "    certificate-authority-data: |\n      YWJj\n      ZA==\n" TOKEN,
          &config);
    assert_int_equal(config.ca.len, 4);
    assert_string_equal(config.ca.bytes, "abcd");
    kubeconfig_fini(&config);
    assert_refused(HEAD CLUSTER "    certificate-authority-data: |+\n\n" TOKEN, "no base64");
    assert_refused(HEAD CLUSTER "    certificate-authority-data: YW Jj\n" TOKEN, "no base64");
}

static void data_and_tokens(void **state)
{
    struct kubeconfig config;

    (void)state;
    parse(HEAD CLUSTER "    tls-server-name: kubernetes\n    insecure-skip-tls-verify: true\n"
                       "    proxy-url: http://proxy:3128\n" USER
                       "    client-certificate-data: YQ==\n    client-key-data: YWI=\n"
                       "    token: \"t\"\n    tokenFile: token\n",
          &config);
    assert_string_equal(config.tls_server_name, "kubernetes");
    assert_string_equal(config.proxy_url, "http://proxy:3128");
    assert_true(config.insecure);
    assert_string_equal(config.certificate.bytes, "a");
    assert_string_equal(config.key.bytes, "ab");
    assert_int_equal(config.key.len, 2);
    assert_string_equal(config.token, "t");
    assert_string_equal(config.token_file, "/etc/kubernetes/token");
    kubeconfig_fini(&config);
}

static void a_plugin(void **state)
{
    struct kubeconfig config;

    (void)state;
    parse(HEAD CLUSTER USER "    exec:\n      apiVersion: client.authentication.k8s.io/v1beta1\n"
                            "      command: bin/get\n      args: [a, \"b c\"]\n"
                            "      env:\n      - {name: N, value: v}\n      - name: M\n"
                            "      provideClusterInfo: true\n",
          &config);
    assert_string_equal(config.exec.command, "/etc/kubernetes/bin/get");
    assert_string_equal(config.exec.args[1], "b c");
    assert_null(config.exec.args[2]);
    assert_string_equal(config.exec.env[0], "N=v");
    assert_string_equal(config.exec.env[1], "M=");
    assert_null(config.exec.env[2]);
    assert_true(config.exec.cluster_info);
    kubeconfig_fini(&config);
    parse(HEAD CLUSTER USER
          "    exec: {apiVersion: client.authentication.k8s.io/v1, command: get}\n",
          &config);
    assert_string_equal(config.exec.command, "get"); /* found as a shell would */
    kubeconfig_fini(&config);
}

/* What writes out every field. */
static void what_is_null_or_empty_is_not_there(void **state)
{
    struct kubeconfig config;

    (void)state;
    parse(HEAD CLUSTER
          "    certificate-authority-data: null\n    proxy-url: \"\"\n    "
          "tls-server-name: ~\n    insecure-skip-tls-verify:\n" TOKEN
          "    exec: null\n    auth-provider: null\n    username: \"\"\n    password: \"\"\n"
          "    client-certificate: null\n    client-key: \"\"\n    tokenFile:\n",
          &config);
    assert_string_equal(config.token, "t");
    assert_null(config.exec.command);
    assert_null(config.proxy_url);
    assert_null(config.token_file);
    assert_null(config.certificate_file);
    kubeconfig_fini(&config);
}

static void what_is_refused(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "no current context"},
        {"[", "no YAML"},
        {"a: &x [1]\nb: *x\n", "aliases"},
        {"current-context: b\n", "no current context"},
        {HEAD TOKEN, "has no server"},
        {HEAD "clusters:\n- {name: c, cluster: {server: \"http://api\"}}\n" TOKEN, "https://"},
        {HEAD "clusters:\n- {name: c, cluster: {server: \"https://\"}}\n" TOKEN, "https://"},
        {HEAD CLUSTER "    certificate-authority-data: '!'\n" TOKEN, "certificate-authority-data"},
        {HEAD CLUSTER "    insecure-skip-tls-verify: maybe\n" TOKEN, "insecure-skip-tls-verify"},
        {HEAD CLUSTER "    tls-server-name: [a]\n" TOKEN, "tls-server-name"},
        {HEAD CLUSTER USER "    client-certificate: /a\n", "not both"},
        {HEAD CLUSTER USER "    client-key-data: YQ==\n", "not both"},
        {HEAD CLUSTER USER "    username: a\n", "something older"},
        {HEAD CLUSTER USER "    exec: {apiVersion: x, command: y}\n", "another apiVersion"},
        {HEAD CLUSTER USER "    exec: {apiVersion: client.authentication.k8s.io/v1}\n",
         "no command"},
        {HEAD CLUSTER USER "    token: \"a\\0b\"\n", "no text: token"},
        {HEAD CLUSTER USER "    token: |\n      a\n", "the end of a line"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(cases[i].text, cases[i].words);
}

/* Whatever is missing of a file that was right, it is read or refused. */
static void cut_at_every_byte(void **state)
{
    static const char TEXT[] = HEAD CLUSTER
        "    certificate-authority-data: YWJjZA==\n" USER
        "    exec: {apiVersion: client.authentication.k8s.io/v1, command: get, args: [a]}\n";
    char words[KUBECONFIG_WORDS_BYTES_MAX];
    unsigned taken = 0;

    (void)state;
    for (size_t len = 0; len < sizeof TEXT; len++) {
        struct kubeconfig config;

        if (kubeconfig_parse(TEXT, len, PATH, &config, words) < 0)
            continue;
        taken++;
        kubeconfig_fini(&config);
    }
    assert_in_range(taken, 1, sizeof TEXT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_kubeadm_writes_it),
        cmocka_unit_test(data_may_have_ends_of_lines),
        cmocka_unit_test(data_and_tokens),
        cmocka_unit_test(a_plugin),
        cmocka_unit_test(what_is_null_or_empty_is_not_there),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(cut_at_every_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

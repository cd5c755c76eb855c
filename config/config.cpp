/*
 * The TOML loader. toml++ is C++, so this file is, and only this one: nothing of it leaves through
 * config.h.
 *
 * A load walks the parsed tables, notes each fault with its place and reports the one that stands
 * first in the file.
 */
#include "config/config.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <climits>
#include <sys/stat.h>
#include <sys/un.h>

/* The parser asserts things that a file can break. Its own way then is to abort, or with NDEBUG to
 * go on undefined; here it is an exception, and so an error like any other. */
struct parser_gave_up {
};
#undef NDEBUG
#define TOML_ASSERT(condition) ((condition) ? void() : throw parser_gave_up())

#include <toml++/toml.h>

namespace
{

using std::string;
using std::string_view;

constexpr size_t file_bytes_max = 1024 * 1024;
constexpr size_t socket_bytes_max = sizeof(sockaddr_un::sun_path) - 1;
/* What must still fit behind plugin_dir: the socket on which plugins register. */
constexpr string_view plugin_socket = "/kubelet.sock";
/* Longest value repeated in a message, so that the advice behind it is never cut off. */
constexpr size_t quoted_bytes_max = 60;
/* Elements of a [[device]]'s paths, mounts and envs, each: a container that gets the device gets
 * them all. */
constexpr size_t elements_max = 64;

constexpr uint64_t second_ms = 1000, minute_ms = 60 * second_ms, hour_ms = 60 * minute_ms;

/* A path of the host and where the container sees it. */
struct binding {
    string host, container;
    bool read_only = true;
};

struct device {
    string resource, path, container_path, permissions = "rw";
    unsigned count = 1;
    bool has_container_path = false;
    std::vector<binding> paths, mounts;
    std::vector<std::pair<string, string>> envs;
};

/* What [plugins] says for all resources, and [[resource]] for one. */
struct rules {
    std::optional<uint64_t> grace_ms, hold_ms, allocate_timeout_ms;
    std::optional<config_refresh> refresh;
};

struct resource {
    string name;
    rules own;
    bool exclusive = true;
};

/* The settings while they are read; the initializers are the defaults. */
struct settings {
    string listen = "/run/cri-device-shim/cri-device-shim.sock";
    string runtime_endpoint = "/run/containerd/containerd.sock";
    string state_dir = "/var/lib/cri-device-shim";
    string plugin_dir = "/var/lib/cri-device-shim/device-plugins";
    int log_level = 6;
    uint64_t drain_ms = 10 * second_ms;
    rules general = {5 * minute_ms, 5 * second_ms, 10 * second_ms, CONFIG_REFRESH_REBOOT};
    uint64_t prestart_timeout_ms = 30 * second_ms;
    bool annotations_enabled = false;
    std::vector<string> namespaces;
    std::vector<device> devices;
    std::vector<resource> resources;
};

struct place {
    toml::source_index line = 0, column = 0;

    place() = default;
    place(const toml::source_region &region) : line(region.begin.line), column(region.begin.column)
    {
    }
    bool before(const place &other) const
    {
        return line != other.line ? line < other.line : column < other.column;
    }
};

/* ---- words ---- */

string quote(string_view text)
{
    string out = "\"";

    for (char c : text.substr(0, quoted_bytes_max))
        out += (unsigned char)c < ' ' || c == 0x7f ? '?' : c;
    if (text.size() > quoted_bytes_max)
        out += "...";
    return out + '"';
}

string_view type_name(const toml::node &node)
{
    switch (node.type()) {
    case toml::node_type::table:
        return "a table";
    case toml::node_type::array:
        return "an array";
    case toml::node_type::string:
        return "a string";
    case toml::node_type::integer:
        return "an integer";
    case toml::node_type::floating_point:
        return "a float";
    case toml::node_type::boolean:
        return "a boolean";
    default:
        return "a date or time";
    }
}

size_t edit_distance(string_view a, string_view b)
{
    std::vector<size_t> row(b.size() + 1);

    for (size_t j = 0; j <= b.size(); j++)
        row[j] = j;
    for (size_t i = 1; i <= a.size(); i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b.size(); j++) {
            const size_t above = row[j];

            row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
            diagonal = above;
        }
    }
    return row[b.size()];
}

/* ---- rules for values ---- */

bool is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_alnum(char c)
{
    return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

/* RFC 1123 label in lower case: what a namespace's name is. */
bool is_dns_label(string_view label)
{
    return !label.empty() && label.size() <= 63 && is_lower_alnum(label.front()) &&
           is_lower_alnum(label.back()) && std::all_of(label.begin(), label.end(), [](char c) {
               return is_lower_alnum(c) || c == '-';
           });
}

bool is_dns_subdomain(string_view name)
{
    size_t at = 0;

    if (name.size() > 253)
        return false;
    for (;;) {
        const size_t dot = name.find('.', at);
        const string_view label = name.substr(at, dot == name.npos ? dot : dot - at);

        /* A subdomain's label has no bound of its own in this rule. */
        if (label.empty() || !is_lower_alnum(label.front()) || !is_lower_alnum(label.back()) ||
            !std::all_of(label.begin(), label.end(),
                         [](char c) { return is_lower_alnum(c) || c == '-'; }))
            return false;
        if (dot == name.npos)
            return true;
        at = dot + 1;
    }
}

/* The rule for extended resources (kubelet-facts §1, check 2). */
bool is_resource_name(const string &name)
{
    const size_t slash = name.find('/');

    if (slash == name.npos || name.find("kubernetes.io/") != name.npos ||
        name.compare(0, 9, "requests.") == 0)
        return false;
    const string_view part = string_view(name).substr(slash + 1);
    return is_dns_subdomain("requests." + name.substr(0, slash)) && !part.empty() &&
           part.size() <= 63 && is_alnum(part.front()) && is_alnum(part.back()) &&
           std::all_of(part.begin(), part.end(),
                       [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_glob(string_view path)
{
    return path.find_first_of("*?[") != path.npos;
}

bool is_absolute(string_view path)
{
    return !path.empty() && path.front() == '/' &&
           std::none_of(path.begin(), path.end(),
                        [](char c) { return (unsigned char)c < ' ' || c == 0x7f; });
}

/* "1h30m", "500ms": whole numbers, each unit once, the largest first. */
bool parse_duration(string_view text, uint64_t *out_ms)
{
    static constexpr struct {
        string_view name;
        uint64_t ms;
    } units[] = {{"h", hour_ms}, {"m", minute_ms}, {"s", second_ms}, {"ms", 1}};
    uint64_t total = 0;
    size_t next_unit = 0;

    if (text.empty())
        return false;
    while (!text.empty()) {
        const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
        uint64_t value = 0;

        if (digits == 0 || digits > 9)
            return false;
        for (char c : text.substr(0, digits))
            value = value * 10 + (uint64_t)(c - '0');
        text.remove_prefix(digits);
        const size_t letters = std::min(text.find_first_of("0123456789"), text.size());
        while (next_unit < std::size(units) && units[next_unit].name != text.substr(0, letters))
            next_unit++;
        if (next_unit == std::size(units))
            return false;
        total += value * units[next_unit++].ms;
        text.remove_prefix(letters);
    }
    *out_ms = total;
    return true;
}

/* ---- the reader ---- */

class reader
{
  public:
    settings out;

    void read(const toml::table &root);

    bool failed() const
    {
        return !fault.empty();
    }
    const place &fault_place() const
    {
        return where;
    }
    const string &fault_text() const
    {
        return fault;
    }

  private:
    /* Takes one key's value; the reader is given so that a plain function fits. */
    using setter = void (reader::*)(const string &key, const toml::node &value);
    struct key_rule {
        string_view name;
        setter set;
    };
    struct section {
        string_view name; /* as a person writes it: "[plugins]" */
        std::vector<key_rule> keys;
    };

    static const section top, plugins, annotations, device_keys, resource_keys, path_keys,
        mount_keys;

    place where;
    string fault;
    device current;               /* the [[device]] being read */
    binding current_binding;      /* the element of paths or mounts being read */
    resource current_resource;    /* the [[resource]] being read */
    rules *target = &out.general; /* of the section being read */
    std::map<string, place> seen;

    void fail(const place &at, const string &wrong, const string &expected);
    bool wrong_type(const string &key, const toml::node &value, const string &expected);
    void unknown(const section &in, const string &key, const toml::node &value, const place &at);
    void walk(const section &in, const toml::table &table);

    bool get_string(const string &key, const toml::node &value, const string &expected, string *to);
    template <typename T>
    bool get_duration(const string &key, const toml::node &value, uint64_t min_ms, uint64_t max_ms,
                      const string &bounds, T *to_ms);
    bool get_flag(const string &key, const toml::node &value, bool *to);
    bool get_resource_name(const string &key, const toml::node &value, string *to);
    bool get_dir(const string &key, const toml::node &value, size_t bytes_max, const string &why,
                 string *to);
    bool get_socket(const string &key, const toml::node &value, string *to);

    void set_listen(const string &key, const toml::node &value);
    void set_runtime_endpoint(const string &key, const toml::node &value);
    void set_state_dir(const string &key, const toml::node &value);
    void set_log_level(const string &key, const toml::node &value);
    void set_drain(const string &key, const toml::node &value);
    void set_plugins(const string &key, const toml::node &value);
    void set_annotations(const string &key, const toml::node &value);
    void set_devices(const string &key, const toml::node &value);
    void set_plugin_dir(const string &key, const toml::node &value);
    void set_grace(const string &key, const toml::node &value);
    void set_hold(const string &key, const toml::node &value);
    void set_allocate_timeout(const string &key, const toml::node &value);
    void set_prestart_timeout(const string &key, const toml::node &value);
    void set_refresh_options(const string &key, const toml::node &value);
    void set_enabled(const string &key, const toml::node &value);
    void set_namespaces(const string &key, const toml::node &value);
    void set_resource(const string &key, const toml::node &value);
    void set_path(const string &key, const toml::node &value);
    void set_container_path(const string &key, const toml::node &value);
    void set_permissions(const string &key, const toml::node &value);
    void set_count(const string &key, const toml::node &value);
    void set_paths(const string &key, const toml::node &value);
    void set_mounts(const string &key, const toml::node &value);
    void set_envs(const string &key, const toml::node &value);
    void set_host(const string &key, const toml::node &value);
    void set_container(const string &key, const toml::node &value);
    void set_read_only(const string &key, const toml::node &value);
    bool check_length(const string &key, const toml::node &value, size_t length);
    void read_binding(const section &in, const toml::table &table);
    void read_path(const toml::node &item);
    void add_binding(const place &at, std::vector<binding> *to);
    void set_resources(const string &key, const toml::node &value);
    void set_name(const string &key, const toml::node &value);
    void set_exclusive(const string &key, const toml::node &value);
    void read_resource(const toml::table &table, std::map<string, place> *names);
    void read_device(const toml::table &table, std::map<string, place> *resources);
    void check_path(const toml::table &table);
    void check_container_path();
    void check_sockets();
};

const reader::section reader::top = {
    "the top level",
    {
        {"listen", &reader::set_listen},
        {"runtime_endpoint", &reader::set_runtime_endpoint},
        {"state_dir", &reader::set_state_dir},
        {"log_level", &reader::set_log_level},
        {"drain", &reader::set_drain},
        {"plugins", &reader::set_plugins},
        {"annotations", &reader::set_annotations},
        {"device", &reader::set_devices},
        {"resource", &reader::set_resources},
    },
};

const reader::section reader::plugins = {
    "[plugins]",
    {
        {"plugin_dir", &reader::set_plugin_dir},
        {"grace", &reader::set_grace},
        {"hold", &reader::set_hold},
        {"allocate_timeout", &reader::set_allocate_timeout},
        {"prestart_timeout", &reader::set_prestart_timeout},
        {"refresh_options", &reader::set_refresh_options},
    },
};

const reader::section reader::annotations = {
    "[annotations]",
    {
        {"enabled", &reader::set_enabled},
        {"namespaces", &reader::set_namespaces},
    },
};

const reader::section reader::device_keys = {
    "[[device]]",
    {
        {"resource", &reader::set_resource},
        {"path", &reader::set_path},
        {"container_path", &reader::set_container_path},
        {"paths", &reader::set_paths},
        {"permissions", &reader::set_permissions},
        {"count", &reader::set_count},
        {"mounts", &reader::set_mounts},
        {"envs", &reader::set_envs},
    },
};

const reader::section reader::path_keys = {
    "an element of paths",
    {
        {"host", &reader::set_host},
        {"container", &reader::set_container},
    },
};

const reader::section reader::mount_keys = {
    "an element of mounts",
    {
        {"host", &reader::set_host},
        {"container", &reader::set_container},
        {"read_only", &reader::set_read_only},
    },
};

const reader::section reader::resource_keys = {
    "[[resource]]",
    {
        {"name", &reader::set_name},
        {"grace", &reader::set_grace},
        {"hold", &reader::set_hold},
        {"allocate_timeout", &reader::set_allocate_timeout},
        {"refresh_options", &reader::set_refresh_options},
        {"exclusive", &reader::set_exclusive},
    },
};

void reader::fail(const place &at, const string &wrong, const string &expected)
{
    if (failed() && !at.before(where))
        return;
    where = at;
    fault = wrong + "; expected " + expected;
}

bool reader::wrong_type(const string &key, const toml::node &value, const string &expected)
{
    fail(value.source(), key + " is " + string(type_name(value)), expected);
    return false;
}

/* Advice in this order: the section that has this very key, the nearest name here, all names. */
void reader::unknown(const section &in, const string &name, const toml::node &value,
                     const place &at)
{
    const bool table = value.is_table() || value.is_array_of_tables();
    const string what =
        (table ? "unknown table " : "unknown key ") + quote(name) + " in " + string(in.name);
    const key_rule *nearest = nullptr;
    size_t nearest_distance = 0;
    string all;

    for (const section *other : {&top, &plugins, &annotations, &device_keys, &resource_keys}) {
        for (const key_rule &k : other->keys) {
            if (other != &in && k.name == name)
                return fail(at, what, "it in " + string(other->name));
        }
    }
    for (const key_rule &k : in.keys) {
        const size_t distance = edit_distance(name, k.name);

        if (!nearest || distance < nearest_distance) {
            nearest = &k;
            nearest_distance = distance;
        }
        all += (all.empty() ? "" : ", ") + string(k.name);
    }
    if (nearest_distance <= std::max<size_t>(1, nearest->name.size() / 3))
        return fail(at, what, quote(nearest->name) + ", the nearest name known");
    fail(at, what, "one of " + all);
}

void reader::walk(const section &in, const toml::table &table)
{
    for (const auto &[name, value] : table) {
        const string text(name.str());
        const auto known = std::find_if(in.keys.begin(), in.keys.end(),
                                        [&](const key_rule &k) { return k.name == text; });

        if (known == in.keys.end()) {
            unknown(in, text, value, name.source());
            continue;
        }
        seen[text] = value.source();
        (this->*known->set)(text, value);
    }
}

void reader::read(const toml::table &root)
{
    walk(top, root);
    check_sockets();
}

bool reader::get_string(const string &key, const toml::node &value, const string &expected,
                        string *to)
{
    if (!value.is_string())
        return wrong_type(key, value, expected);
    *to = value.as_string()->get();
    return true;
}

template <typename T>
bool reader::get_duration(const string &key, const toml::node &value, uint64_t min_ms,
                          uint64_t max_ms, const string &bounds, T *to_ms)
{
    const string example = R"(a duration in quotes, such as "500ms", "5s", "5m" or "1h30m")";
    string text;
    uint64_t ms;

    if (value.is_integer())
        return wrong_type(key, value,
                          "a duration with its unit, in quotes, such as " +
                              quote(std::to_string(value.as_integer()->get()) + "s"));
    if (!get_string(key, value, example, &text))
        return false;
    if (!parse_duration(text, &ms)) {
        fail(value.source(), key + " is " + quote(text), example);
        return false;
    }
    if (ms < min_ms || ms > max_ms) {
        fail(value.source(), key + " is " + quote(text), bounds);
        return false;
    }
    *to_ms = ms;
    return true;
}

bool reader::get_flag(const string &key, const toml::node &value, bool *to)
{
    if (!value.is_boolean())
        return wrong_type(key, value, "true or false, without quotes");
    *to = value.as_boolean()->get();
    return true;
}

bool reader::get_resource_name(const string &key, const toml::node &value, string *to)
{
    const string expected = R"(an extended resource's name, such as "vendor.com/serial")";
    string text;

    if (!get_string(key, value, expected, &text))
        return false;
    if (!is_resource_name(text)) {
        fail(value.source(), key + " is " + quote(text),
             expected + ": a DNS name outside kubernetes.io, '/', and at most 63 letters, "
                        "digits, '-', '_' or '.'");
        return false;
    }
    *to = text;
    return true;
}

bool reader::get_dir(const string &key, const toml::node &value, size_t bytes_max,
                     const string &why, string *to)
{
    string text;

    if (!get_string(key, value, "an absolute path in quotes", &text))
        return false;
    if (!is_absolute(text)) {
        fail(value.source(), key + " is " + quote(text), "an absolute path");
        return false;
    }
    while (text.size() > 1 && text.back() == '/')
        text.pop_back();
    if (text.size() > bytes_max) {
        fail(value.source(),
             key + " is " + std::to_string(text.size()) + " bytes long: " + quote(text),
             "at most " + std::to_string(bytes_max) + " bytes" + why);
        return false;
    }
    *to = text;
    return true;
}

bool reader::get_socket(const string &key, const toml::node &value, string *to)
{
    const string expected = "an absolute path in quotes, with or without unix:// in front";
    string text;

    if (!get_string(key, value, expected, &text))
        return false;
    const string shown = text;
    if (text.compare(0, 7, "unix://") == 0)
        text.erase(0, 7);
    if (!is_absolute(text)) {
        fail(value.source(), key + " is " + quote(shown), expected);
        return false;
    }
    if (text.back() == '/') {
        fail(value.source(), key + " is " + quote(shown), "the path of a socket, not a directory");
        return false;
    }
    if (text.size() > socket_bytes_max) {
        fail(value.source(),
             key + " is " + std::to_string(text.size()) + " bytes long: " + quote(text),
             "at most " + std::to_string(socket_bytes_max) + " bytes, the limit of a unix socket");
        return false;
    }
    *to = text;
    return true;
}

void reader::set_listen(const string &key, const toml::node &value)
{
    get_socket(key, value, &out.listen);
}

void reader::set_runtime_endpoint(const string &key, const toml::node &value)
{
    get_socket(key, value, &out.runtime_endpoint);
}

void reader::set_state_dir(const string &key, const toml::node &value)
{
    get_dir(key, value, PATH_MAX - 256, "", &out.state_dir);
}

void reader::set_log_level(const string &key, const toml::node &value)
{
    static const std::map<string, int> levels = {
        {"error", 3}, {"warning", 4}, {"info", 6}, {"debug", 7}};
    const string expected = R"("error", "warning", "info" or "debug")";
    string text;

    if (!get_string(key, value, expected, &text))
        return;
    const auto level = levels.find(text);
    if (level == levels.end())
        return fail(value.source(), key + " is " + quote(text), expected);
    out.log_level = level->second;
}

void reader::set_plugins(const string &key, const toml::node &value)
{
    if (!value.is_table()) {
        wrong_type(key, value, "a table, [plugins]");
        return;
    }
    walk(plugins, *value.as_table());
}

void reader::set_plugin_dir(const string &key, const toml::node &value)
{
    get_dir(key, value, socket_bytes_max - plugin_socket.size(),
            ", so that a unix socket's path in it still fits", &out.plugin_dir);
}

void reader::set_grace(const string &key, const toml::node &value)
{
    get_duration(key, value, 0, 720 * hour_ms, R"(at most "720h")", &target->grace_ms);
}

void reader::set_drain(const string &key, const toml::node &value)
{
    get_duration(key, value, 0, hour_ms, R"(at most "1h")", &out.drain_ms);
}

void reader::set_hold(const string &key, const toml::node &value)
{
    get_duration(key, value, 0, minute_ms, R"(at most "60s")", &target->hold_ms);
}

void reader::set_allocate_timeout(const string &key, const toml::node &value)
{
    get_duration(key, value, 1, hour_ms, R"(from "1ms" to "1h")", &target->allocate_timeout_ms);
}

void reader::set_prestart_timeout(const string &key, const toml::node &value)
{
    get_duration(key, value, 1, hour_ms, R"(from "1ms" to "1h")", &out.prestart_timeout_ms);
}

void reader::set_refresh_options(const string &key, const toml::node &value)
{
    static const std::map<string, config_refresh> choices = {
        {"reboot", CONFIG_REFRESH_REBOOT},
        {"plugin", CONFIG_REFRESH_PLUGIN},
        {"never", CONFIG_REFRESH_NEVER},
    };
    const string expected = R"("reboot", "plugin" or "never")";
    string text;

    if (!get_string(key, value, expected, &text))
        return;
    const auto choice = choices.find(text);
    if (choice == choices.end())
        return fail(value.source(), key + " is " + quote(text), expected);
    target->refresh = choice->second;
}

void reader::set_annotations(const string &key, const toml::node &value)
{
    if (!value.is_table()) {
        wrong_type(key, value, "a table, [annotations]");
        return;
    }
    walk(annotations, *value.as_table());
    if (out.annotations_enabled && out.namespaces.empty())
        fail(seen["enabled"], "enabled is true, but namespaces is empty: no request could be taken",
             R"(namespaces = ["a-namespace"], or ["*"] for all)");
}

void reader::set_enabled(const string &key, const toml::node &value)
{
    get_flag(key, value, &out.annotations_enabled);
}

void reader::set_namespaces(const string &key, const toml::node &value)
{
    const string expected = R"(an array of names in quotes, such as ["default"], or ["*"] for all)";

    if (!value.is_array()) {
        wrong_type(key, value, expected);
        return;
    }
    for (const toml::node &item : *value.as_array()) {
        string text;

        if (!get_string(key + "'s element", item, "a namespace in quotes", &text))
            continue;
        if (text != "*" && !is_dns_label(text))
            fail(item.source(), key + " holds " + quote(text),
                 R"(a namespace's name (at most 63 of a-z, 0-9 and '-') or "*")");
        out.namespaces.push_back(text);
    }
}

void reader::set_devices(const string &key, const toml::node &value)
{
    std::map<string, place> resources;

    if (!value.is_array()) {
        wrong_type(key, value, "[[device]] tables, with two brackets");
        return;
    }
    for (const toml::node &item : *value.as_array()) {
        if (item.is_table())
            read_device(*item.as_table(), &resources);
        else
            wrong_type("an element of device", item, "a [[device]] table");
    }
}

void reader::read_device(const toml::table &table, std::map<string, place> *resources)
{
    current = device();
    for (const key_rule &k : device_keys.keys)
        seen.erase(string(k.name));
    walk(device_keys, table);
    if (!seen.count("resource"))
        fail(table.source(), "this [[device]] has no resource", R"(resource = "vendor.com/name")");
    check_path(table);
    check_container_path();
    const auto [first, added] = resources->insert({current.resource, seen["resource"]});
    if (!added && !current.resource.empty())
        fail(seen["resource"],
             "resource " + quote(current.resource) + " stands already in line " +
                 std::to_string(first->second.line),
             "one [[device]] for each resource; its path may be a glob");
    out.devices.push_back(current);
}

void reader::set_resource(const string &key, const toml::node &value)
{
    get_resource_name(key, value, &current.resource);
}

void reader::set_path(const string &key, const toml::node &value)
{
    string text;

    if (!get_string(key, value, "an absolute path in quotes", &text))
        return;
    if (!is_absolute(text) || text.back() == '/')
        return fail(value.source(), key + " is " + quote(text),
                    "the absolute path of a device node, or a glob of such");
    if (text.size() >= PATH_MAX)
        return fail(value.source(), key + " is " + std::to_string(text.size()) + " bytes long",
                    "less than " + std::to_string(PATH_MAX) + " bytes");
    current.path = text;
}

void reader::set_container_path(const string &key, const toml::node &value)
{
    string text;

    if (!get_string(key, value, "an absolute path in quotes", &text))
        return;
    if (!is_absolute(text) || text.size() >= PATH_MAX)
        return fail(value.source(), key + " is " + quote(text), "an absolute path");
    current.container_path = text;
    current.has_container_path = true;
}

void reader::check_path(const toml::table &table)
{
    const bool one = seen.count("path"), several = seen.count("paths");

    if (!one && !several)
        fail(table.source(), "this [[device]] has no path",
             R"(path = "/dev/...", the node on the host)");
    if (!several)
        return;
    if (one)
        fail(seen["path"].before(seen["paths"]) ? seen["paths"] : seen["path"],
             "this [[device]] has path and paths", "one of them");
    if (current.has_container_path)
        fail(seen["container_path"], "container_path stands beside paths",
             R"(it with each path, as in paths = [{ host = "/dev/a", container = "/dev/b" }])");
}

void reader::check_container_path()
{
    if (!current.has_container_path || current.path.empty())
        return;
    const bool directory = current.container_path.back() == '/';
    if (is_glob(current.path) && !directory)
        fail(seen["container_path"],
             "container_path is " + quote(current.container_path) + " and path is a glob",
             "a directory that ends in '/', since a glob may match many nodes");
    if (!is_glob(current.path) && directory)
        fail(seen["container_path"], "container_path is " + quote(current.container_path),
             "the node's whole path, without '/' at the end");
}

void reader::set_permissions(const string &key, const toml::node &value)
{
    const string expected = R"(one or more of 'r', 'w' and 'm', each once, such as "rw")";
    string text;

    if (!get_string(key, value, expected, &text))
        return;
    string sorted = text;
    std::sort(sorted.begin(), sorted.end());
    const bool repeated = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
    if (text.empty() || repeated || text.find_first_not_of("rwm") != text.npos)
        return fail(value.source(), key + " is " + quote(text), expected);
    current.permissions = text;
}

void reader::set_count(const string &key, const toml::node &value)
{
    const string expected = "a whole number from 1 to 10000, without quotes";

    if (!value.is_integer()) {
        wrong_type(key, value, expected);
        return;
    }
    const int64_t count = value.as_integer()->get();
    if (count < 1 || count > 10000)
        return fail(value.source(), key + " is " + std::to_string(count), expected);
    current.count = (unsigned)count;
}

void reader::set_resources(const string &key, const toml::node &value)
{
    std::map<string, place> names;

    if (!value.is_array()) {
        wrong_type(key, value, "[[resource]] tables, with two brackets");
        return;
    }
    for (const toml::node &item : *value.as_array()) {
        if (item.is_table())
            read_resource(*item.as_table(), &names);
        else
            wrong_type("an element of resource", item, "a [[resource]] table");
    }
}

void reader::read_resource(const toml::table &table, std::map<string, place> *names)
{
    current_resource = resource();
    seen.erase("name");
    target = &current_resource.own;
    walk(resource_keys, table);
    target = &out.general;
    if (!seen.count("name"))
        fail(table.source(), "this [[resource]] has no name", R"(name = "vendor.com/name")");
    const auto [first, added] = names->insert({current_resource.name, seen["name"]});
    if (!added && !current_resource.name.empty())
        fail(seen["name"],
             "name " + quote(current_resource.name) + " stands already in line " +
                 std::to_string(first->second.line),
             "one [[resource]] for each resource");
    out.resources.push_back(current_resource);
}

void reader::set_name(const string &key, const toml::node &value)
{
    get_resource_name(key, value, &current_resource.name);
}

void reader::set_exclusive(const string &key, const toml::node &value)
{
    get_flag(key, value, &current_resource.exclusive);
}

bool reader::check_length(const string &key, const toml::node &value, size_t length)
{
    if (length > 0 && length <= elements_max)
        return true;
    fail(value.source(), key + " has " + std::to_string(length) + " elements",
         "from 1 to " + std::to_string(elements_max));
    return false;
}

void reader::read_binding(const section &in, const toml::table &table)
{
    for (const key_rule &k : in.keys)
        seen.erase(string(k.name));
    walk(in, table);
    if (!seen.count("host"))
        fail(table.source(), string(in.name) + " has no host", R"(host = "/...", where it is)");
}

/* The bindings of one container must not hide each other. */
void reader::add_binding(const place &at, std::vector<binding> *to)
{
    if (current_binding.container.empty())
        current_binding.container = current_binding.host;
    for (const binding &other : *to) {
        if (!other.container.empty() && other.container == current_binding.container)
            fail(at, "the container would see " + quote(other.container) + " twice",
                 "a container path of its own for each");
    }
    to->push_back(current_binding);
}

void reader::read_path(const toml::node &item)
{
    current_binding = binding();
    if (item.is_string())
        set_host("an element of paths", item);
    else if (item.is_table())
        read_binding(path_keys, *item.as_table());
    else
        wrong_type("an element of paths", item,
                   R"(a path in quotes, or { host = "/dev/a", container = "/dev/b" })");
    if (is_glob(current_binding.host))
        fail(item.source(), "paths holds " + quote(current_binding.host),
             "no '*', '?' or '[': several paths are one device; path may be a glob");
    add_binding(item.source(), &current.paths);
}

void reader::set_paths(const string &key, const toml::node &value)
{
    if (!value.is_array()) {
        wrong_type(key, value,
                   R"(an array, such as ["/dev/a", { host = "/dev/b", container = "/dev/c" }])");
        return;
    }
    if (!check_length(key, value, value.as_array()->size()))
        return;
    for (const toml::node &item : *value.as_array())
        read_path(item);
}

void reader::set_mounts(const string &key, const toml::node &value)
{
    const string expected = R"({ host = "/opt/a", container = "/opt/b" })";

    if (!value.is_array()) {
        wrong_type(key, value, "an array, such as [" + expected + "]");
        return;
    }
    if (!check_length(key, value, value.as_array()->size()))
        return;
    for (const toml::node &item : *value.as_array()) {
        if (!item.is_table()) {
            wrong_type("an element of mounts", item, expected);
            continue;
        }
        current_binding = binding();
        read_binding(mount_keys, *item.as_table());
        add_binding(item.source(), &current.mounts);
    }
}

void reader::set_host(const string &key, const toml::node &value)
{
    string text;

    if (!get_string(key, value, "an absolute path in quotes", &text))
        return;
    if (!is_absolute(text) || text.size() >= PATH_MAX)
        return fail(value.source(), key + " is " + quote(text), "an absolute path");
    current_binding.host = text;
}

void reader::set_container(const string &key, const toml::node &value)
{
    string text;

    if (!get_string(key, value, "an absolute path in quotes", &text))
        return;
    if (!is_absolute(text) || text.size() >= PATH_MAX)
        return fail(value.source(), key + " is " + quote(text), "an absolute path");
    current_binding.container = text;
}

void reader::set_read_only(const string &key, const toml::node &value)
{
    get_flag(key, value, &current_binding.read_only);
}

void reader::set_envs(const string &key, const toml::node &value)
{
    const string expected = R"(names and texts, such as { NAME = "value" })";

    if (!value.is_table()) {
        wrong_type(key, value, expected);
        return;
    }
    if (!check_length(key, value, value.as_table()->size()))
        return;
    for (const auto &[name, item] : *value.as_table()) {
        const string text(name.str());
        string content;

        if (text.empty() || text.find('=') != text.npos || text.find('\0') != text.npos)
            fail(name.source(), key + " has the name " + quote(text),
                 "the name of an environment variable, without '='");
        if (!get_string(text, item, "a text in quotes", &content))
            continue;
        if (content.find('\0') != content.npos)
            fail(item.source(), text + " holds a NUL", "a text without it");
        current.envs.push_back({text, content});
    }
}

/* No two sockets may share a path; told at the key that stands last, the one just written. */
void reader::check_sockets()
{
    const auto normal = [](const string &path) {
        return std::filesystem::path(path).lexically_normal();
    };
    const auto last = [this](const char *a, const char *b) {
        return seen[a].before(seen[b]) ? seen[b] : seen[a];
    };

    if (normal(out.listen) == normal(out.runtime_endpoint))
        fail(last("listen", "runtime_endpoint"), "listen and runtime_endpoint are the same socket",
             "listen to be the shim's own and runtime_endpoint the runtime's");
    if (normal(out.listen) == normal(out.plugin_dir + string(plugin_socket)))
        fail(last("listen", "plugin_dir"), "listen is the socket on which plugins register",
             "a path other than plugin_dir's kubelet.sock");
}

/* ---- into C ---- */

char *copy(const string &text)
{
    char *out = strdup(text.c_str());

    if (!out)
        throw std::bad_alloc();
    return out;
}

template <typename T> T *allocate(size_t n)
{
    T *out = static_cast<T *>(calloc(n ? n : 1, sizeof(T)));

    if (!out)
        throw std::bad_alloc();
    return out;
}

char *copy_or_null(const string &text)
{
    return text.empty() ? nullptr : copy(text);
}

void fill_elements(const device &from, struct config_device *to)
{
    to->paths = allocate<struct config_node>(from.paths.size());
    for (const binding &b : from.paths) {
        struct config_node *slot = &to->paths[to->paths_len++];

        slot->host = copy(b.host);
        slot->container = copy(b.container);
    }
    to->mounts = allocate<struct config_mount>(from.mounts.size());
    for (const binding &b : from.mounts) {
        struct config_mount *slot = &to->mounts[to->mounts_len++];

        slot->host = copy(b.host);
        slot->container = copy(b.container);
        slot->read_only = b.read_only;
    }
    to->envs = allocate<struct config_env>(from.envs.size());
    for (const auto &[name, value] : from.envs) {
        struct config_env *slot = &to->envs[to->envs_len++];

        slot->name = copy(name);
        slot->value = copy(value);
    }
}

void fill_lists(const settings &from, struct config *to)
{
    to->annotation_namespaces = allocate<char *>(from.namespaces.size());
    for (const string &name : from.namespaces)
        to->annotation_namespaces[to->annotation_namespaces_len++] = copy(name);
    to->devices = allocate<struct config_device>(from.devices.size());
    for (const device &d : from.devices) {
        struct config_device *slot = &to->devices[to->devices_len++];

        slot->resource = copy(d.resource);
        slot->path = copy_or_null(d.path);
        slot->container_path = d.has_container_path ? copy(d.container_path) : nullptr;
        slot->permissions = copy(d.permissions);
        slot->count = d.count;
        fill_elements(d, slot);
    }
}

void fill_resources(const settings &from, struct config *to)
{
    to->resources = allocate<struct config_resource>(from.resources.size());
    for (const resource &r : from.resources) {
        struct config_resource *slot = &to->resources[to->resources_len++];

        slot->name = copy(r.name);
        slot->grace_ms = r.own.grace_ms.value_or(to->grace_ms);
        slot->hold_ms = r.own.hold_ms.value_or(to->hold_ms);
        slot->allocate_timeout_ms = r.own.allocate_timeout_ms.value_or(to->allocate_timeout_ms);
        slot->refresh_options = r.own.refresh.value_or(to->refresh_options);
        slot->exclusive = r.exclusive;
    }
}

void fill(const settings &from, struct config *to)
{
    to->listen = copy(from.listen);
    to->runtime_endpoint = copy(from.runtime_endpoint);
    to->state_dir = copy(from.state_dir);
    to->plugin_dir = copy(from.plugin_dir);
    to->log_level = from.log_level;
    to->drain_ms = from.drain_ms;
    to->grace_ms = *from.general.grace_ms;
    to->hold_ms = *from.general.hold_ms;
    to->allocate_timeout_ms = *from.general.allocate_timeout_ms;
    to->prestart_timeout_ms = from.prestart_timeout_ms;
    to->refresh_options = *from.general.refresh;
    to->annotations_enabled = from.annotations_enabled;
    fill_lists(from, to);
    fill_resources(from, to);
}

void put_error(struct config_error *err, const string &text)
{
    const size_t n = std::min(text.size(), sizeof err->text - 1);

    memcpy(err->text, text.data(), n);
    err->text[n] = '\0';
}

bool read_file(const char *path, string *out, string *why)
{
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        *why = strerror(EISDIR);
        return false;
    }
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::vector<char> bytes(file_bytes_max + 1);
    file.read(bytes.data(), (std::streamsize)bytes.size());
    if (file.bad() || !(file.eof() || file.good())) {
        *why = strerror(errno ? errno : EIO);
        return false;
    }
    if ((size_t)file.gcount() > file_bytes_max) {
        *why = "it is larger than 1 MiB";
        return false;
    }
    out->assign(bytes.data(), (size_t)file.gcount());
    return true;
}

string at(const char *path, const place &where)
{
    std::ostringstream out;

    out << path << ':' << where.line << ':' << where.column << ": ";
    return out.str();
}

/* The first control character that TOML allows nowhere; the parser does not see each of them. */
bool find_control(string_view text, place *where)
{
    where->line = where->column = 1;
    for (unsigned char c : text) {
        if ((c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
            return true;
        if (c == '\n') {
            where->line++;
            where->column = 1;
        } else if ((c & 0xc0) != 0x80) { /* not within a UTF-8 character */
            where->column++;
        }
    }
    return false;
}

bool load(const char *path, settings *out, struct config_error *err)
{
    string text, why;
    place where;
    reader r;

    if (!read_file(path, &text, &why)) {
        put_error(err, string(path) + ": cannot be read: " + why + "; expected a TOML file");
        return false;
    }
    if (find_control(text, &where)) {
        put_error(err, at(path, where) + "a control character; expected valid TOML 1.0");
        return false;
    }
    try {
        r.read(toml::parse(string_view(text), string_view(path)));
    } catch (const toml::parse_error &e) {
        put_error(err,
                  at(path, e.source()) + string(e.description()) + "; expected valid TOML 1.0");
        return false;
    } catch (const parser_gave_up &) { /* it does not say where */
        where.line = where.column = 1;
        put_error(err,
                  at(path, where) + "the file cannot be read to its end; expected valid TOML 1.0");
        return false;
    }
    if (r.failed()) {
        put_error(err, at(path, r.fault_place()) + r.fault_text());
        return false;
    }
    *out = r.out;
    return true;
}

} // namespace

int config_load(const char *path, struct config *out, struct config_error *err)
{
    struct config filled = {};

    try {
        settings s;

        if (path && !load(path, &s, err))
            return -1;
        fill(s, &filled);
    } catch (const std::bad_alloc &) {
        config_fini(&filled);
        put_error(err, "out of memory");
        return -1;
    }
    *out = filled;
    return 0;
}

static void device_fini(struct config_device *device)
{
    for (size_t i = 0; i < device->paths_len; i++) {
        free(device->paths[i].host);
        free(device->paths[i].container);
    }
    for (size_t i = 0; i < device->mounts_len; i++) {
        free(device->mounts[i].host);
        free(device->mounts[i].container);
    }
    for (size_t i = 0; i < device->envs_len; i++) {
        free(device->envs[i].name);
        free(device->envs[i].value);
    }
    free(device->paths);
    free(device->mounts);
    free(device->envs);
    free(device->resource);
    free(device->path);
    free(device->container_path);
    free(device->permissions);
}

void config_fini(struct config *config)
{
    for (size_t i = 0; i < config->annotation_namespaces_len; i++)
        free(config->annotation_namespaces[i]);
    for (size_t i = 0; i < config->devices_len; i++)
        device_fini(&config->devices[i]);
    for (size_t i = 0; i < config->resources_len; i++)
        free(config->resources[i].name);
    free(config->resources);
    free(config->annotation_namespaces);
    free(config->devices);
    free(config->listen);
    free(config->runtime_endpoint);
    free(config->state_dir);
    free(config->plugin_dir);
    memset(config, 0, sizeof *config);
}

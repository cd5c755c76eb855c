#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>
#include <sstream>
#include <utility>
#include <vector>

#include "config/reading.hpp"

/* No key is as long as this by far: nothing is near it. */
#define NEAR_BYTES_MAX 64

static void put_defaults(reading &r, enum schema_section section, void *base);
static void read_keys(reading &r, enum schema_section section, const toml::table &table,
                      void *base);

/* One value of the file, and the key that it is for. */
struct value {
    reading &r;
    const struct schema_key &key;
    std::string name; /* what it is called in a message */
    const toml::node &node;
    void *slot;

    void refuse(const std::string &wrong, const std::string &expected) const
    {
        r.refuse(node, name + wrong, expected);
    }
};

/* ---- types ---- */

/* The node as one of this type. NULL, and noted: "NAME is an integer; expected ..." */
template <typename T>
static auto as(reading &r, const std::string &name, const toml::node &node,
               const std::string &expected)
{
    static const char *const NAMES[] = {
        "nothing", "a table",   "an array",       "a string",       "an integer",
        "a float", "a boolean", "a date or time", "a date or time", "a date or time"};
    auto typed = node.as<T>();

    if (!typed)
        r.refuse(node, name + " is " + NAMES[(size_t)node.type()], expected);
    return typed;
}

/* "a", "b" or "c" */
static std::string list_choices(const struct schema_choice *choice)
{
    std::string out;

    for (; choice->name; choice++) {
        if (!out.empty())
            out += choice[1].name ? ", " : " or ";
        out += quote(choice->name);
    }
    return out;
}

/* In place of a value of another type. */
static std::string expected_type(const struct schema_key &key, const toml::node &node)
{
    switch (key.type) {
    case VALUE_TEXT:
    case VALUE_SCALAR:
        return key.text->type;
    case VALUE_SOCKET:
        return "an absolute path in quotes, with or without unix:// in front";
    case VALUE_DIRECTORY:
        return "an absolute path in quotes";
    case VALUE_DURATION:
        if (const auto *number = node.as_integer())
            return "a duration with its unit, in quotes, such as \"" +
                   std::to_string(number->get()) + "s\"";
        return "a duration in quotes, such as \"500ms\", \"5s\", \"5m\" or \"1h30m\"";
    case VALUE_CHOICE:
        return list_choices(key.choices);
    case VALUE_FLAG:
        return "true or false, without quotes";
    case VALUE_COUNT:
    case VALUE_INTEGER:
        return std::string("a whole number from ") + key.min + " to " + key.max +
               ", without quotes";
    case VALUE_TABLE:
        return std::string("a table, ") + schema_tables[key.inner].name;
    default:
        return key.expected
                   ? key.expected
                   : schema_tables[key.inner].name + std::string(" tables, with two brackets");
    }
}

static std::string bounds(const std::string &min, const std::string &max)
{
    return min.empty() ? "at most " + max : "from " + min + " to " + max;
}

/* ---- one reader for each type ---- */

/* Those of texts: false is none of what is expected; all else that is wrong they note
 * themselves. */

static bool has_nul(const std::string &text)
{
    return text.find('\0') != text.npos;
}

/* A socket's path may have "unix://" in front, a directory's '/' at its end. */
static bool read_path(const value &v, const std::string &text)
{
    bool socket = v.key.type == VALUE_SOCKET;
    std::string path = text.substr(socket && text.rfind("unix://", 0) == 0 ? 7 : 0);

    if (!text_is_absolute(path.c_str()) && !(v.key.may_be_empty && text.empty()))
        return false;
    while (!socket && path.size() > 1 && path.back() == '/')
        path.pop_back();
    if (socket && !path.empty() && path.back() == '/')
        v.refuse(" is " + quote(text), "the path of a socket, not a directory");
    else if (path.size() > v.key.limit)
        v.refuse(" is " + std::to_string(path.size()) + " bytes long: " + quote(path),
                 "at most " + std::to_string(v.key.limit) + " bytes" +
                     (v.key.reason ? v.key.reason : ", the limit of a unix socket"));
    else
        put_text(path, (char **)v.slot);
    return true;
}

static bool read_duration(const value &v, const std::string &text)
{
    uint64_t ms, min = 0, max = 0;

    if (!value_duration(text.c_str(), &ms) || !value_duration(v.key.max, &max) ||
        (v.key.min && !value_duration(v.key.min, &min)))
        return false;
    if (ms >= min && ms <= max)
        *(uint64_t *)v.slot = ms;
    else
        v.refuse(" is " + quote(text), bounds(v.key.min ? quote(v.key.min) : "", quote(v.key.max)));
    return true;
}

static bool read_choice(const value &v, const std::string &text)
{
    const struct schema_choice *choice = v.key.choices;

    while (choice->name && text != choice->name)
        choice++;
    if (choice->name)
        *(int *)v.slot = choice->value;
    return choice->name;
}

static bool read_text(const value &v, const std::string &text)
{
    if (v.key.type == VALUE_SOCKET || v.key.type == VALUE_DIRECTORY)
        return read_path(v, text);
    if (v.key.type == VALUE_DURATION)
        return read_duration(v, text);
    if (v.key.type == VALUE_CHOICE)
        return read_choice(v, text);
    if (!v.key.text->valid(text.c_str()))
        return false;
    put_text(text, (char **)v.slot);
    return true;
}

/* As the file has it, a text in quotes. */
static void read_scalar(const value &v, const std::string &expected)
{
    if (const auto *flag = v.node.as_boolean())
        put_text(flag->get() ? "true" : "false", (char **)v.slot);
    else if (const auto *number = v.node.as_integer())
        put_text(std::to_string(number->get()), (char **)v.slot);
    else if (const auto *text = as<std::string>(v.r, v.name, v.node, expected)) {
        if (!has_nul(text->get()) && v.key.text->valid(text->get().c_str()))
            put_text('"' + text->get() + '"', (char **)v.slot);
        else
            v.refuse(" is " + quote(text->get()), v.key.text->value);
    }
}

/* Puts a list of as many zeroed elements there, from `min` to the key's limit, whatever was there.
 * NULL: noted. */
template <typename T> static T *make_list(const value &v, size_t n, size_t min, size_t bytes)
{
    void *list;

    if (v.key.limit > 0 && (n < min || n > v.key.limit)) {
        v.refuse(" has " + std::to_string(n) + " elements",
                 bounds(min > 0 ? std::to_string(min) : "", std::to_string(v.key.limit)));
        return NULL;
    }
    list = calloc(n > 0 ? n : 1, bytes);
    if (!list)
        throw std::bad_alloc();
    value_fini(&v.key, v.slot);
    *(void **)v.slot = list;
    *value_len(&v.key, v.slot) = n;
    return (T *)list;
}

static void read_names(const value &v, const toml::array &array)
{
    char **names = make_list<char *>(v, array.size(), 0, sizeof *names);

    for (size_t i = 0; names && i < array.size(); i++) {
        const auto *item = as<std::string>(v.r, v.name + "'s element", array[i], v.key.text->type);

        if (item && !has_nul(item->get()) && v.key.text->valid(item->get().c_str()))
            put_text(item->get(), &names[i]);
        else if (item)
            v.r.refuse(*item, v.name + " holds " + quote(item->get()), v.key.text->value);
        if (!names[i])
            v.r.wrong.insert(&array);
    }
}

static void read_environment(const value &v, const toml::table &table)
{
    auto *env = make_list<struct config_env>(v, table.size(), 1, sizeof(struct config_env));

    for (auto it = table.begin(); env && it != table.end(); it++, env++) {
        const std::string name(it->first.str());

        if (name.empty() || has_nul(name) || name.find('=') != name.npos) {
            v.r.fault(it->first.source().begin, v.name + " has the name " + quote(name),
                      "the name of an environment variable, without '='");
        } else if (const auto *text = as<std::string>(v.r, name, it->second, "a text in quotes")) {
            if (has_nul(text->get())) {
                v.r.refuse(*text, name + " holds a NUL", "a text without it");
                continue;
            }
            put_text(name, &env->name);
            put_text(text->get(), &env->value);
        }
    }
}

static void read_value(const value &v);

/* A string is a table that has the first key only, to go by another name. */
static void read_tables(const value &v, const toml::array &array)
{
    enum schema_section section = v.key.inner;
    const struct schema_table &type = schema_tables[section];
    const struct schema_key &first = *schema_next(section, NULL);
    std::string name = "an element of " + v.name;
    std::string element = type.element ? type.element : "a " + std::string(type.name) + " table";
    char *base = make_list<char>(v, array.size(), 1, type.bytes);

    for (size_t i = 0; base && i < array.size(); i++, base += type.bytes) {
        put_defaults(v.r, section, base);
        if (type.or_text && array[i].is_string())
            read_value({v.r, first, name, array[i], schema_slot(&first, section, base)});
        else if (const auto *table = as<toml::table>(v.r, name, array[i], element))
            read_keys(v.r, section, *table, base);
    }
}

/* ---- any value ---- */

/* Reads one value into its slot, whatever was there, or notes what is wrong. */
static void read_value(const value &v)
{
    std::string expected = expected_type(v.key, v.node);

    if (v.key.type == VALUE_FLAG) {
        if (const auto *flag = as<bool>(v.r, v.name, v.node, expected))
            *(bool *)v.slot = flag->get();
    } else if (v.key.type == VALUE_COUNT || v.key.type == VALUE_INTEGER) {
        const auto *number = as<int64_t>(v.r, v.name, v.node, expected);

        if (number && (number->get() < atoll(v.key.min) || number->get() > atoll(v.key.max)))
            v.refuse(" is " + std::to_string(number->get()), expected);
        else if (number && v.key.type == VALUE_COUNT)
            *(unsigned *)v.slot = (unsigned)number->get();
        else if (number)
            *(int32_t *)v.slot = (int32_t)number->get();
    } else if (v.key.type == VALUE_SCALAR) {
        read_scalar(v, expected);
    } else if (v.key.type == VALUE_NAMES || v.key.type == VALUE_TABLES) {
        if (const auto *array = as<toml::array>(v.r, v.name, v.node, expected))
            v.key.type == VALUE_NAMES ? read_names(v, *array) : read_tables(v, *array);
    } else if (v.key.type == VALUE_ENVIRONMENT || v.key.type == VALUE_TABLE) {
        if (const auto *table = as<toml::table>(v.r, v.name, v.node, expected))
            v.key.type == VALUE_TABLE ? read_keys(v.r, v.key.inner, *table, v.slot)
                                      : read_environment(v, *table);
    } else if (const auto *text = as<std::string>(v.r, v.name, v.node, expected)) {
        if (!has_nul(text->get()) && read_text(v, text->get()))
            return;
        if (v.key.type == VALUE_TEXT && v.key.text->value)
            expected = v.key.text->value;
        else if (v.key.type == VALUE_DIRECTORY)
            expected = "an absolute path";
        v.refuse(" is " + quote(text->get()), expected);
    }
}

/* As if the file had it. */
static void put_default(reading &r, const struct schema_key &key, const char *initial, void *slot)
{
    std::istringstream text(initial);
    toml::array it;

    if (key.type == VALUE_FLAG) {
        it.push_back(text.str() == "true");
    } else if (key.type == VALUE_COUNT) {
        it.push_back(atoll(initial));
    } else if (key.type == VALUE_NAMES) {
        it.push_back(toml::array());
        for (std::string name; std::getline(text, name, ',');)
            it[0].as_array()->push_back(name);
    } else {
        it.push_back(text.str());
    }
    read_value({r, key, key.name, it[0], slot});
}

static void put_defaults(reading &r, enum schema_section section, void *base)
{
    const struct schema_key *key = NULL;

    while ((key = schema_next(section, key))) {
        void *slot = schema_slot(key, section, base);
        char general[64];

        if (key->type == VALUE_TABLE) {
            put_defaults(r, key->inner, base);
        } else if (key->section != section) {
            value_print(key, schema_slot(key, key->section, &r.config), general, sizeof general);
            put_default(r, *key, general, slot);
        } else if (key->initial) {
            put_default(r, *key, key->initial, slot);
        }
    }
}

/* ---- keys that are none ---- */

/* How many characters to add, leave out or replace. */
static size_t edit_distance(std::string_view a, std::string_view b)
{
    std::vector<size_t> row(b.size() + 1);

    std::iota(row.begin(), row.end(), 0);
    for (size_t i = 1; i <= a.size(); i++) {
        size_t diagonal = std::exchange(row[0], i);

        for (size_t j = 1; j <= b.size(); j++) {
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);

            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
        }
    }
    return row.back();
}

/* NULL: none is near. */
static const struct schema_key *nearest(enum schema_section section, std::string_view name)
{
    const struct schema_key *found = NULL, *key = NULL;
    size_t least = SIZE_MAX;

    while (name.size() <= NEAR_BYTES_MAX && (key = schema_next(section, key))) {
        size_t distance = edit_distance(name, key->name);

        if (distance < least) {
            found = key;
            least = distance;
        }
    }
    return found && (least <= 1 || least <= strlen(found->name) / 3) ? found : NULL;
}

/* The section that has this very key, the nearest name here, or all names. */
static std::string advise(enum schema_section section, std::string_view name)
{
    const struct schema_key *key = nearest(section, name);
    std::string out;

    for (int other = 0; other < SECTION_PATH; other++) {
        if (other != section && schema_find((enum schema_section)other, name.data(), name.size()))
            return std::string("it in ") + schema_tables[other].name;
    }
    if (key)
        return quote(key->name) + ", the nearest name known";
    while ((key = schema_next(section, key)))
        out += (out.empty() ? "one of " : ", ") + std::string(key->name);
    return out;
}

/* ---- tables ---- */

/* One table, or an array of nothing else. */
static bool is_table(const toml::node &node)
{
    return node.is_table() || node.is_array_of_tables();
}

/* What `table` has goes into the section's struct, which has the defaults. */
static void read_keys(reading &r, enum schema_section section, const toml::table &table, void *base)
{
    const std::string title = schema_tables[section].name;
    const struct schema_key *key = NULL;

    while ((key = schema_next(section, key))) {
        void *slot = key->type == VALUE_TABLE ? base : schema_slot(key, section, base);

        if (const toml::node *node = table.get(key->name))
            read_value({r, *key, key->name, *node, slot});
        else if (key->required)
            r.fault(table, (title[0] == '[' ? "this " : "") + title + " has no " + key->name,
                    key->required);
    }
    for (const auto &[name, node] : table) {
        if (!schema_find(section, name.str().data(), name.str().size()))
            r.fault(name.source().begin,
                    (is_table(node) ? "unknown table " : "unknown key ") + quote(name.str()) +
                        " in " + title,
                    advise(section, name.str()));
    }
}

void read_settings(reading &r)
{
    put_defaults(r, SECTION_TOP, &r.config);
    read_keys(r, SECTION_TOP, r.root, &r.config);
}

#include "config/reading.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

/* The parser makes a table of each part of a dotted key, and frees them one within the other: some
 * 100,000 end a stack of 8 MiB. Counted are all dots of a file, wherever they stand. */
#define DOTS_MAX 10000
#define FAULTS_MAX 20
/* Longest value repeated in a message, so that the advice behind it is never cut off; and the most
 * of what the parser says, which may repeat a key. */
#define QUOTED_BYTES_MAX 60
#define SYNTAX_BYTES_MAX 319

/* ---- mistakes ---- */

static bool is_control(unsigned char c)
{
    return c < ' ' || c == 0x7f;
}

void reading::fault(place at, const std::string &what, const std::string &expected)
{
    std::string text = what + "; expected " + expected;

    /* A line each: nothing of the file breaks it. */
    std::replace_if(text.begin(), text.end(), is_control, '?');
    faults.emplace(at, text);
    faults_total++;
    if (faults.size() > FAULTS_MAX)
        faults.erase(std::prev(faults.end()));
}

void reading::fault(const toml::node &node, const std::string &what, const std::string &expected)
{
    fault(node.source().begin, what, expected);
}

void reading::refuse(const toml::node &node, const std::string &what, const std::string &expected)
{
    wrong.insert(&node);
    fault(node, what, expected);
}

std::string reading::tell(const char *file, size_t size) const
{
    static const char REST[] = "\nand 18446744073709551615 more";
    std::string out;
    size_t told = 0;

    for (const auto &[at, text] : faults) {
        std::string line = (told > 0 ? "\n" : "") + std::string(file) + ":" +
                           std::to_string(at.line) + ":" + std::to_string(at.column) + ": " + text;

        if (told > 0 && out.size() + line.size() + sizeof REST > size)
            break; /* the first may be cut, the others may not */
        out += line;
        told++;
    }
    if (told < faults_total)
        out += "\nand " + std::to_string(faults_total - told) + " more";
    return out;
}

std::string quote(std::string_view text)
{
    size_t n = QUOTED_BYTES_MAX;

    if (text.size() <= n)
        return '"' + std::string(text) + '"';
    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--; /* not within a UTF-8 character */
    return '"' + std::string(text.substr(0, n)) + "...\"";
}

void put_text(const std::string &text, char **slot)
{
    char *copy = strdup(text.c_str());

    if (!copy)
        throw std::bad_alloc();
    free(*slot);
    *slot = copy;
}

/* ---- syntax ---- */

/* Notes the first character that a file may not have there: controls that TOML allows nowhere (the
 * parser does not see each of them), and a dot too many. */
static bool find_refused(reading &r, std::string_view text)
{
    size_t dots = 0;
    place at = {1, 1};

    for (unsigned char c : text) {
        if (is_control(c) && c != '\t' && c != '\n' && c != '\r')
            r.fault(at, "a control character", "valid TOML 1.0");
        else if (c == '.' && ++dots > DOTS_MAX)
            r.fault(at, "a dot more than " + std::to_string(DOTS_MAX),
                    "fewer in a file: the parser cannot hold keys of so many parts");
        if (r.faults_total > 0)
            return true;
        if (c == '\n')
            at = {at.line + 1, 1};
        else if ((c & 0xc0) != 0x80) /* not within a UTF-8 character */
            at.column++;
    }
    return false;
}

/* False: it is no TOML, which is noted. */
static bool parse(reading &r, std::string_view text)
{
    if (find_refused(r, text))
        return false;
    try {
        r.root = toml::parse(text);
        return true;
    } catch (const toml::parse_error &e) {
        r.fault(e.source().begin, std::string(e.description().substr(0, SYNTAX_BYTES_MAX)),
                "valid TOML 1.0");
    } catch (const parser_gave_up &) { /* it does not say where */
        r.fault({1, 1}, "the file cannot be read to its end", "valid TOML 1.0");
    }
    return false;
}

/* ---- the way in ---- */

int config_parse(const char *text, size_t len, const char *path, struct config *out,
                 struct config_error *err)
{
    err->no_memory = err->no_files = false;
    try {
        reading r;

        if (!path || parse(r, {text, len})) {
            read_settings(r);
            check_settings(r);
        }
        if (r.faults_total == 0) {
            *out = std::exchange(r.config, {});
            return 0;
        }
        snprintf(err->text, sizeof err->text, "%s", r.tell(path, sizeof err->text).c_str());
    } catch (const std::bad_alloc &) {
        err->no_memory = true;
        snprintf(err->text, sizeof err->text, "out of memory");
    }
    return -1;
}

/* Opens it without waiting: a fifo would have the program wait for who writes into it. */
static int open_file(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* All of it into `bytes`, which has one more than a file may. NULL, or why not. */
static const char *read_file(int fd, char *bytes, size_t *len)
{
    struct stat status;
    ssize_t n;

    *len = 0;
    if (fstat(fd, &status) < 0)
        return strerror(errno);
    if (!S_ISREG(status.st_mode))
        return "it is no regular file";
    do {
        n = read(fd, bytes + *len, CONFIG_FILE_BYTES_MAX + 1 - *len);
        if (n > 0)
            *len += (size_t)n;
    } while ((n > 0 && *len <= CONFIG_FILE_BYTES_MAX) || (n < 0 && errno == EINTR));
    if (n < 0)
        return strerror(errno);
    return *len > CONFIG_FILE_BYTES_MAX ? "it is larger than 1 MiB" : NULL;
}

int config_read(const char *path, char **text, size_t *len, struct config_error *err)
{
    const char *why;
    int fd = open_file(path), err_of_file = fd < 0 ? errno : 0;
    char *bytes = (char *)malloc(CONFIG_FILE_BYTES_MAX + 2);

    if (!bytes)
        why = "out of memory";
    else if (fd < 0)
        why = err_of_file == ENXIO ? "it is no regular file" : strerror(err_of_file); /* a socket */
    else
        why = read_file(fd, bytes, len);
    if (fd >= 0)
        close(fd);
    if (!why) {
        bytes[*len] = '\0';
        *text = bytes;
        return 0;
    }
    free(bytes);
    err->no_memory = !bytes || err_of_file == ENOMEM;
    err->no_files = err_of_file == EMFILE || err_of_file == ENFILE;
    snprintf(err->text, sizeof err->text, "%s: cannot be read: %s; expected a TOML file", path,
             why);
    return -1;
}

int config_load(const char *path, struct config *out, struct config_error *err)
{
    char *text = NULL;
    size_t len = 0;
    int result;

    if (path && config_read(path, &text, &len, err) < 0)
        return -1;
    result = config_parse(text, len, path, out, err);
    free(text);
    return result;
}

/*
 * One file's reading: from its TOML to struct config, as schema.h's table says. read.cpp has a
 * reader for each type of value and for the tables, check.cpp what no single value shows. This
 * room's own.
 */
#ifndef CONFIG_READING_HPP
#define CONFIG_READING_HPP

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "config/schema.h"
#include "config/toml.hpp"

/* Line and column, both from 1; columns are characters, not bytes. */
using place = toml::source_position;

struct reading {
    toml::table root; /* empty without a file */
    struct config config = {};
    /* The first mistakes in the order of their places; and how many there are in all. */
    std::multimap<place, std::string> faults;
    size_t faults_total = 0;
    /* Values that are told already; an array with a wrong element, too. */
    std::set<const toml::node *> wrong;

    reading() = default;
    reading(const reading &) = delete;
    reading &operator=(const reading &) = delete;
    ~reading()
    {
        config_fini(&config);
    }

    /* Notes "WHAT; expected EXPECTED", behind what has the same place. */
    void fault(place at, const std::string &what, const std::string &expected);
    void fault(const toml::node &value, const std::string &what, const std::string &expected);

    /* Likewise of a value that is wrong from then on. */
    void refuse(const toml::node &value, const std::string &what, const std::string &expected);

    /* One line each, "FILE:LINE:COLUMN: TEXT", without a newline behind the last. What does not fit
     * `size` as a whole is left out, and said to be; the caller cuts a first one that is longer. */
    std::string tell(const char *file, size_t size) const;
};

/* Puts a copy there, in place of what was. */
void put_text(const std::string &text, char **slot);

/* A text of the file, in quotes, its end cut off where it is long. */
std::string quote(std::string_view text);

/* Fills r.config with the defaults, and then with what r.root has. Notes mistakes; what is wrong
 * keeps its default. */
void read_settings(reading &r);

/* Completes r.config, and notes what does not fit together. A value that is wrong by itself is not
 * looked at again. */
void check_settings(reading &r);

#endif

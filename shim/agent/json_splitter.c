#include "shim/agent/json_splitter.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(JSON_DEPTH_MAX <= 64, "a bit of `arrays` for each level");

/* The levels of a list: its own object, and the array of its items. */
#define LIST_DEPTH 1
#define ITEMS_DEPTH 2
/* What is kept of a buffer from one object to the next. */
#define KEPT_BYTES 4096

void json_splitter_init(struct json_splitter *splitter, enum json_split split,
                        bool (*value)(void *user, const char *text, size_t len, bool head),
                        void *user)
{
    *splitter = (struct json_splitter){.split = split, .value = value, .user = user, .words = ""};
}

void json_splitter_fini(struct json_splitter *splitter)
{
    free(splitter->text);
    free(splitter->head);
    splitter->text = splitter->head = NULL;
}

static bool fail(struct json_splitter *splitter, const char *words)
{
    splitter->failed = true;
    splitter->words = words;
    return false;
}

/* ---- what is gathered ---- */

static bool put(struct json_splitter *splitter, char **text, size_t *len, size_t *size, char byte)
{
    if (*len == *size) {
        size_t more = *size ? *size * 2 : 1024;
        char *grown = realloc(*text, more);

        if (!grown)
            return fail(splitter, "no memory for an object");
        *text = grown;
        *size = more;
    }
    (*text)[(*len)++] = byte;
    return true;
}

static void forget_text(struct json_splitter *splitter)
{
    free(splitter->text);
    splitter->text = NULL;
    splitter->len = splitter->size = 0;
}

/* The object that is being gathered is not kept any more. */
static void skip(struct json_splitter *splitter)
{
    splitter->skipped = splitter->len + 1;
    forget_text(splitter);
}

/* Of a list, what is outside of its items is the head's. */
static bool gather(struct json_splitter *splitter, char byte)
{
    if (splitter->split == JSON_SPLIT_LIST && !splitter->in_items)
        return splitter->head_len < LIST_HEAD_BYTES_MAX
                   ? put(splitter, &splitter->head, &splitter->head_len, &splitter->head_size, byte)
                   : fail(splitter, "what stands around a list is too large");
    if (!splitter->skipped && splitter->len == OBJECT_BYTES_MAX)
        skip(splitter);
    if (splitter->skipped)
        return splitter->skipped++ < OBJECT_SKIPPED_BYTES_MAX ||
               fail(splitter, "an object is too large");
    return put(splitter, &splitter->text, &splitter->len, &splitter->size, byte);
}

static bool give(struct json_splitter *splitter, char *text, size_t len, bool head)
{
    return splitter->value(splitter->user, text, len, head) || fail(splitter, "");
}

static bool give_object(struct json_splitter *splitter)
{
    bool taken = splitter->skipped || give(splitter, splitter->text, splitter->len, false);

    splitter->left_out += splitter->skipped > 0;
    splitter->skipped = 0;
    splitter->len = 0;
    splitter->values = 0;
    if (splitter->size > KEPT_BYTES) /* most are small, and it may be long until the next */
        forget_text(splitter);
    return taken;
}

/* ---- levels ---- */

_Static_assert(LIST_HEAD_BYTES_MAX <= JSON_VALUES_MAX, "a head is too large before it has so many");

/* Each takes memory once it is read, however short it is. */
static void count_value(struct json_splitter *splitter)
{
    if (++splitter->values > JSON_VALUES_MAX && !splitter->skipped)
        skip(splitter);
}

static bool is_array(const struct json_splitter *splitter, unsigned depth)
{
    return depth > 0 && splitter->arrays >> (depth - 1) & 1;
}

/* The depth at which objects that are given stand. */
static unsigned base(const struct json_splitter *splitter)
{
    return splitter->in_items ? ITEMS_DEPTH : 0;
}

static bool open_level(struct json_splitter *splitter, char byte)
{
    bool array = byte == '[';
    bool items = array && splitter->split == JSON_SPLIT_LIST && splitter->depth == LIST_DEPTH &&
                 splitter->key_len == 5 && memcmp(splitter->key, "items", 5) == 0;

    if (splitter->depth == JSON_DEPTH_MAX)
        return fail(splitter, "it is nested too deep");
    if (array && splitter->depth == base(splitter))
        return fail(splitter, "an array where an object should be");
    count_value(splitter);
    if (!gather(splitter, byte))
        return false;
    splitter->depth++;
    splitter->arrays &= ~((uint64_t)1 << (splitter->depth - 1));
    splitter->arrays |= (uint64_t)array << (splitter->depth - 1);
    splitter->in_items |= items;
    return true;
}

static bool close_level(struct json_splitter *splitter, char byte)
{
    if (splitter->depth == 0 || is_array(splitter, splitter->depth) != (byte == ']'))
        return fail(splitter, "a bracket that does not match");
    if (splitter->in_items && splitter->depth == ITEMS_DEPTH)
        splitter->in_items = false; /* the array's own end */
    splitter->depth--;
    if (!gather(splitter, byte))
        return false;
    if (splitter->split == JSON_SPLIT_LIST && splitter->depth == 0) {
        splitter->over = true;
        return give(splitter, splitter->head, splitter->head_len, true);
    }
    return splitter->depth != base(splitter) || give_object(splitter);
}

/* ---- bytes ---- */

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static bool feed_string(struct json_splitter *splitter, char byte)
{
    bool ends = byte == '"' && !splitter->escaped;

    splitter->escaped = byte == '\\' && !splitter->escaped;
    splitter->in_string = !ends;
    if (!ends && splitter->depth == LIST_DEPTH) {
        if (splitter->key_len < sizeof splitter->key)
            splitter->key[splitter->key_len] = byte;
        splitter->key_len++;
    }
    return gather(splitter, byte);
}

static bool feed_between(struct json_splitter *splitter, char byte)
{
    if (is_space(byte) || (byte == ',' && splitter->in_items))
        return true;
    return byte == '{' ? open_level(splitter, byte)
           : byte == ']' || byte == '}'
               ? close_level(splitter, byte)
               : fail(splitter, "something else where an object should be");
}

static bool feed_byte(struct json_splitter *splitter, char byte)
{
    if (splitter->over)
        return is_space(byte) || fail(splitter, "something behind the end");
    if (splitter->in_string)
        return feed_string(splitter, byte);
    if (splitter->depth == base(splitter))
        return feed_between(splitter, byte);
    switch (byte) {
    case '"':
        splitter->in_string = true;
        if (splitter->depth == LIST_DEPTH)
            splitter->key_len = 0;
        return gather(splitter, byte);
    case '{':
    case '[':
        return open_level(splitter, byte);
    case '}':
    case ']':
        return close_level(splitter, byte);
    case ',':
        count_value(splitter);
        return gather(splitter, byte);
    default:
        return gather(splitter, byte);
    }
}

bool json_splitter_feed(struct json_splitter *splitter, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len && !splitter->failed; i++)
        feed_byte(splitter, bytes[i]);
    return !splitter->failed;
}

bool json_splitter_whole(const struct json_splitter *splitter)
{
    return !splitter->failed && splitter->depth == 0 &&
           (splitter->split != JSON_SPLIT_LIST || splitter->over);
}

size_t json_splitter_left_out(const struct json_splitter *splitter)
{
    return splitter->left_out;
}

const char *json_splitter_trouble(const struct json_splitter *splitter)
{
    return splitter->words;
}

/* shim/offline/document.c: what "checkpoint export" writes is read back, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "cri-proto/checkpoint_v1.pb-c.h"
#include "shim/checkpoint_json.h"
#include "shim/offline/document.h"

/* A row of each kind, with all that it can have, and one with nothing that it need not. */
static const char TEXT[] =
    "{\"format\": \"cri-device-shim/checkpoint/v1\", \"schemaVersion\": 1, \"sound\": true,"
    " \"resources\": [{\"name\": \"v.com/gpu\", \"socket\": \"gpu.sock\","
    "  \"socketUid\": 4294967295, \"preStart\": true, \"preferred\": true,"
    "  \"devices\": [{\"id\": \"g0\", \"healthy\": true, \"numaNodes\": [0, 1],"
    "   \"unhealthySinceMs\": 0},"
    "   {\"id\": \"g\\u00e4\", \"healthy\": false, \"numaNodes\": [],"
    "    \"unhealthySinceMs\": 9}], \"away\": true,"
    "  \"awayFor\": \"it ended\", \"awaySinceMs\": 12345, \"awayBoot\": \"a-boot\","
    "  \"noExecute\": [\"g1\"], \"noExecuteBoot\": \"a-boot\", \"healthClosed\": true},"
    "  {\"name\": \"v.com/nic\", \"socket\": null, \"socketUid\": 0, \"preStart\": false,"
    "   \"preferred\": false, \"devices\": [], \"away\": false, \"awayFor\": null, "
    "\"awaySinceMs\": null,"
    "   \"awayBoot\": null, \"noExecute\": [], \"noExecuteBoot\": null,"
    "   \"healthClosed\": false}],"
    " \"allocations\": [{\"podUid\": \"p\", \"container\": \"main\", \"resource\": \"v.com/gpu\","
    "  \"ids\": [\"g0\", \"g1\"], \"chosenBy\": \"shim\", \"optionsCached\": false,"
    "  \"optionsBoot\": null},"
    "  {\"podUid\": \"q\", \"container\": \"main\", \"resource\": \"v.com/gpu\","
    "  \"ids\": [\"g2\", \"g3\"], \"asked\": [\"g2\", \"g9\"], \"chosenBy\": \"kubelet\","
    "  \"optionsCached\": false, \"optionsBoot\": null},"
    "  {\"podUid\": \"r\", \"container\": \"main\", \"resource\": \"v.com/gpu\","
    "  \"ids\": [\"g4\"], \"chosenBy\": \"claim\", \"byClaims\": [{\"id\": \"g4\","
    "  \"claimUid\": \"c\", \"adminAccess\": false}, {\"id\": \"g4\", \"claimUid\": \"d\","
    "  \"adminAccess\": true}], \"optionsCached\": false, \"optionsBoot\": null}],"
    " \"pods\": [{\"uid\": \"p\", \"namespace\": \"ns\", \"name\": \"web\", \"sandbox\": \"s\","
    "  \"attempt\": 4294967295, \"stopped\": true, \"died\": true, \"remade\": true,"
    "  \"boot\": \"a-boot\", \"tokens\": [\"main\"]},"
    "  {\"uid\": \"q\", \"namespace\": null, \"name\": null, \"sandbox\": null, \"attempt\": 0,"
    "   \"stopped\": false, \"died\": false, \"remade\": false, \"boot\": null, \"tokens\": []}],"
    " \"orders\": [{\"kind\": \"cordon\", \"resource\": \"v.com/gpu\", \"id\": \"g0\","
    "  \"reason\": \"dust\", \"atSeconds\": 1700000000, \"moreSeconds\": 0, \"over\": false},"
    "  {\"kind\": \"grace\", \"resource\": \"v.com/gpu\", \"id\": null, \"reason\": null,"
    "   \"atSeconds\": 1, \"moreSeconds\": 90, \"over\": true},"
    "  {\"kind\": \"taint\", \"resource\": \"v.com/gpu\", \"id\": \"k:NoExecute g0\","
    "   \"reason\": \"dust\", \"atSeconds\": 1, \"moreSeconds\": 0, \"over\": false,"
    "   \"value\": \"deep\", \"forSeconds\": 600}],"
    " \"drivers\": [{\"name\": \"d.com\", \"services\": [\"v1.DRAPlugin\"],"
    "  \"wiped\": true, \"moved\": true, \"wasElsewhere\": true}],"
    " \"claims\": [{\"uid\": \"c\", \"driver\": \"d.com\", \"namespace\": \"ns\","
    "  \"name\": \"claim\", \"state\": \"prepared\", \"answer\": \"Zm9vYmE=\","
    "  \"sent\": true, \"unanswered\": true, \"moved\": true, \"local\": true, \"alone\": true,"
    "  \"users\": [{\"sandbox\": \"s\", \"container\": \"main\","
    "   \"pod\": \"ns/web\", \"podUid\": \"p\", \"former\": true}], \"former\": [{\"pool\": \"p0\","
    "   \"device\": \"d0\", \"shareId\": \"s\", \"cdi\": [\"v.com/d=d0\", \"v.com/d=all\"],"
    "   \"requests\": []}, "
    "{\"pool\": \"p0\", \"device\": \"d1\","
    "   \"shareId\": null, \"cdi\": [], \"requests\": []}], \"lapsed\": [{\"pool\": \"p0\","
    "   \"device\": \"d2\", \"shareId\": null, \"cdi\": [\"v.com/d=d2\"],"
    "   \"requests\": [\"r\", \"q\"]}], \"preparedMs\": 77, \"preparedBoot\": \"a-boot\"},"
    "  {\"uid\": \"d\", \"driver\": \"d.com\", \"namespace\": null, \"name\": null,"
    "   \"state\": \"sent\", \"answer\": null, \"sent\": false, \"unanswered\": false,"
    "   \"moved\": false, \"local\": false, \"alone\": false,"
    "   \"users\": [], \"former\": [], \"lapsed\": [], \"preparedMs\": null, \"preparedBoot\": "
    "null}],"
    " \"endings\": [{\"uid\": \"p\", \"namespace\": \"ns\", \"name\": \"web\","
    "  \"state\": \"stopping\", \"asks\": [{\"asker\": \"operator\", \"token\": 0,"
    "   \"askedMs\": 0, \"graceMs\": null, \"orLess\": false, \"here\": true,"
    "   \"why\": \"tired\", \"atSeconds\": 1700000000, \"told\": true},"
    "   {\"asker\": \"eviction\", \"token\": 7, \"askedMs\": 6, \"graceMs\": 3000,"
    "   \"orLess\": true, \"here\": false, \"why\": null, \"atSeconds\": 0, \"told\": false}],"
    "  \"boot\": \"a-boot\", \"askedMs\": 5, \"dueMs\": 0, \"static\": true,"
    "  \"earlierBoot\": true, \"orderGraceMs\": 0, \"unaskedMs\": 8,"
    "  \"unaskedSinceMs\": 9, \"sidecars\": [\"proxy\"]},"
    "  {\"uid\": \"q\", \"namespace\": null, \"name\": null, \"state\": \"evicted\","
    "   \"asks\": [{\"asker\": \"shutdown\", \"token\": 0, \"askedMs\": 0, \"graceMs\": 9,"
    "    \"orLess\": false, \"here\": false, \"why\": null, \"atSeconds\": 0, \"told\": false}],"
    "   \"boot\": null, \"askedMs\": 0, \"dueMs\": 0, \"static\": false,"
    "   \"earlierBoot\": false, \"orderGraceMs\": null, \"unaskedMs\": 0,"
    "   \"unaskedSinceMs\": 0, \"sidecars\": []}]}";
#define ROWS 15

struct fixture {
    json_t *root;
    char error[DOCUMENT_ERROR_BYTES_MAX];
    unsigned taken, refused;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->root = json_loads(TEXT, 0, NULL);
    assert_non_null(f->root);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    json_decref(f->root);
    free(f);
    return 0;
}

static int parse(struct fixture *f, const char *text, struct document *document)
{
    f->error[0] = '\0';
    return document_parse(text, strlen(text), document, f->error, sizeof f->error);
}

/* What it would be exported as. */
static json_t *back(const struct document *document)
{
    static const char *const KINDS[] = {"resource", "allocation", "pod",   "order",
                                        "driver",   "claim",      "ending"};
    json_t *root = checkpoint_json_new();

    checkpoint_json_set_head(root, (uint64_t)document->version, document->sound);
    for (size_t i = 0; i < document->rows.len; i++) {
        const struct devicemgr_record *row = &document->rows.v[i];

        checkpoint_json_add(root, KINDS[row->kind], row->value, row->value_bytes);
    }
    return root;
}

/* What earlier releases did not write, of that which has `beside`; and what it is without it. */
static const struct later {
    const char *beside, *key, *value;
} LATER[] = {{"users", "unanswered", "false"},
             {"users", "moved", "false"},
             {"users", "alone", "false"},
             {"users", "former", "[]"},
             {"preStart", "socketUid", "0"},
             {"preStart", "noExecute", "[]"},
             {"preStart", "noExecuteBoot", "null"},
             {"preStart", "healthClosed", "false"},
             {"numaNodes", "unhealthySinceMs", "0"},
             {"asks", "earlierBoot", "false"},
             {"asker", "askedMs", "0"},
             {"asker", "orLess", "false"},
             {"asker", "told", "false"},
             {"asks", "orderGraceMs", "0"},
             {"asks", "unaskedMs", "0"},
             {"asks", "unaskedSinceMs", "0"},
             {"asks", "sidecars", "[]"},
             {"pod", "podUid", "null"},
             {"pod", "former", "false"},
             {"users", "lapsed", "[]"},
             {"cdi", "requests", "[]"}};
#define LATER_LEN (sizeof LATER / sizeof LATER[0])

static void add_later(json_t *value)
{
    const char *key;
    json_t *one;
    size_t at;

    for (size_t i = 0; i < LATER_LEN; i++) {
        if (json_object_get(value, LATER[i].beside) && !json_object_get(value, LATER[i].key))
            json_object_set_new(value, LATER[i].key,
                                json_loads(LATER[i].value, JSON_DECODE_ANY, NULL));
    }
    json_object_foreach(value, key, one)
        add_later(one);
    json_array_foreach(value, at, one)
        add_later(one);
}

/* What plugins gave is not in it. */
static json_t *exported_again(const json_t *root)
{
    json_t *copy = json_deep_copy(root), *one;
    size_t i;

    json_array_foreach(json_object_get(copy, "allocations"), i, one) {
        json_object_set_new(one, "optionsCached", json_false());
        json_object_set_new(one, "optionsBoot", json_null());
    }
    add_later(copy);
    return copy;
}

/* It is refused, with words; or it is taken, as it says: nothing of it is changed, or left out. */
static void judge(struct fixture *f)
{
    char *text = json_dumps(f->root, JSON_ENCODE_ANY);
    struct document document;

    if (parse(f, text, &document) < 0) {
        assert_int_not_equal(f->error[0], '\0');
        f->refused++;
    } else {
        json_t *again = back(&document), *meant = exported_again(f->root);

        if (!json_equal(meant, again))
            fail_msg("taken, and is another: %s", text);
        json_decref(meant);
        json_decref(again);
        document_fini(&document);
        f->taken++;
    }
    free(text);
}

static void what_is_written_is_read(void **state)
{
    struct fixture *f = *state;
    struct document document;

    judge(f);
    assert_int_equal(f->taken, 1);
    assert_int_equal(parse(f, TEXT, &document), 0);
    assert_int_equal(document.rows.len, ROWS);
    assert_int_equal(document.version, 1);
    assert_true(document.sound);
    assert_string_equal(document.rows.v[2].key[0], "p");
    assert_string_equal(document.rows.v[2].key[1], "main");
    assert_string_equal(document.rows.v[2].key[2], "v.com/gpu");
    assert_string_equal(document.rows.v[7].key[2], "g0");
    document_fini(&document);
}

/* Else it would look at refusals alone. */
static void the_fuzzer_begins_with_the_same(void **state)
{
    struct fixture *f = *state;
    json_error_t error;
    json_t *seed = json_load_file(FUZZ_CORPUS "/each-kind", 0, &error);
    json_t *none = json_load_file(FUZZ_CORPUS "/no-rows", 0, &error);
    struct document document;
    char *text;

    assert_true(json_equal(seed, f->root));
    text = json_dumps(none, 0);
    assert_int_equal(parse(f, text, &document), 0);
    assert_int_equal(document.rows.len, 0);
    free(text);
    document_fini(&document);
    json_decref(seed);
    json_decref(none);
}

/* ---- all that a row has ---- */

/* What no document has: what plugins gave, and the moments of taints, which begin anew. */
static const char *const LEFT_OUT[] = {
    "checkpoint.v1.Allocation.options", "checkpoint.v1.Allocation.has_options",
    "checkpoint.v1.Allocation.boot_id", "checkpoint.v1.Order.set_ms", "checkpoint.v1.Order.boot_id",
    /* or other fields would say nothing */
    "checkpoint.v1.Allocation.own_choice", "checkpoint.v1.EndingAsk.own_grace",
    "checkpoint.v1.Ending.order_own_grace"};

static bool is_left_out(const ProtobufCMessageDescriptor *of, const char *field)
{
    char name[128];
    size_t i = 0;

    snprintf(name, sizeof name, "%s.%s", of->name, field);
    while (i < sizeof LEFT_OUT / sizeof LEFT_OUT[0] && strcmp(name, LEFT_OUT[i]) != 0)
        i++;
    return i < sizeof LEFT_OUT / sizeof LEFT_OUT[0];
}

static ProtobufCMessage *with_all(const ProtobufCMessageDescriptor *of);

static void fill(const ProtobufCFieldDescriptor *field, void *at)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        *(char **)at = strdup(strcmp(field->name, "kind") == 0 ? "taint" : field->name);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        *(ProtobufCBinaryData *)at = (ProtobufCBinaryData){3, (uint8_t *)strdup("abc")};
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)at = true;
        break;
    case PROTOBUF_C_TYPE_UINT32:
        *(uint32_t *)at = 7;
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        *(uint64_t *)at = 7000; /* whole seconds */
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)at = with_all(field->descriptor);
        break;
    default:
        fail_msg("%s is of a type that no row has", field->name);
    }
}

/* Each field has a value, a repeated one a single one. */
static ProtobufCMessage *with_all(const ProtobufCMessageDescriptor *of)
{
    ProtobufCMessage *message = calloc(1, of->sizeof_message);

    of->message_init(message);
    for (unsigned i = 0; i < of->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &of->fields[i];
        char *at = (char *)message + field->offset;

        if (is_left_out(of, field->name))
            continue;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            *(size_t *)((char *)message + field->quantifier_offset) = 1;
            *(void **)at = calloc(1, sizeof(uint64_t));
            at = *(void **)at;
        }
        fill(field, at);
    }
    return message;
}

/* A field that is new and not in the document is lost by an import. */
static void each_row_comes_back_with_all_that_it_has(void **state)
{
    static const struct {
        const char *kind;
        const ProtobufCMessageDescriptor *row;
    } kinds[] = {{"resource", &checkpoint__v1__resource__descriptor},
                 {"allocation", &checkpoint__v1__allocation__descriptor},
                 {"pod", &checkpoint__v1__pod__descriptor},
                 {"order", &checkpoint__v1__order__descriptor},
                 {"driver", &checkpoint__v1__driver__descriptor},
                 {"claim", &checkpoint__v1__claim__descriptor},
                 {"ending", &checkpoint__v1__ending__descriptor}};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        ProtobufCMessage *row = with_all(kinds[i].row);
        size_t len = protobuf_c_message_get_packed_size(row);
        uint8_t *bytes = malloc(len);
        json_t *root = checkpoint_json_new();
        struct document document;
        char *text;

        protobuf_c_message_pack(row, bytes);
        checkpoint_json_set_head(root, 1, true);
        checkpoint_json_add(root, kinds[i].kind, bytes, len);
        text = json_dumps(root, 0);
        if (parse(f, text, &document) < 0)
            fail_msg("%s: %s", kinds[i].kind, f->error);
        assert_int_equal(document.rows.len, 1);
        if (document.rows.v[0].value_bytes != len ||
            memcmp(document.rows.v[0].value, bytes, len) != 0)
            fail_msg("a row of %s has lost something: %s", kinds[i].kind, text);
        free(text);
        document_fini(&document);
        json_decref(root);
        free(bytes);
        protobuf_c_message_free_unpacked(row, NULL);
    }
}

/* ---- other values, in each place there is ---- */

/* What may stand in the place of another value; each is new. */
static json_t *other_value(size_t i)
{
    switch (i) {
    case 0:
        return json_null();
    case 1:
        return json_true();
    case 2:
        return json_false();
    case 3:
        return json_integer(-1);
    case 4:
        return json_integer(INT64_MAX);
    case 5:
        return json_real(1.5);
    case 6:
        return json_string("other");
    case 7:
        return json_array();
    case 8:
        return json_object();
    case 9:
        return json_pack("[i]", 1);
    default:
        return NULL;
    }
}

static void spoil(struct fixture *f, json_t *value);

/* Which most have not, or none of an older release has. */
static bool may_lack(const json_t *object, const char *key)
{
    bool later = false;

    for (size_t i = 0; i < LATER_LEN; i++)
        later =
            later || (strcmp(key, LATER[i].key) == 0 && json_object_get(object, LATER[i].beside));
    return later || strcmp(key, "asked") == 0 || strcmp(key, "byClaims") == 0;
}

static void spoil_member(struct fixture *f, json_t *object, const char *key)
{
    json_t *value = json_incref(json_object_get(object, key)), *other;
    unsigned taken;

    spoil(f, value);
    for (size_t i = 0; (other = other_value(i)) != NULL; i++) {
        json_object_set_new(object, key, other);
        judge(f);
    }
    taken = f->taken;
    json_object_del(object, key);
    judge(f);
    taken += may_lack(object, key);
    json_object_set(object, key, value);
    json_object_set_new(object, "unknown", json_null());
    judge(f);
    json_object_del(object, "unknown");
    assert_int_equal(f->taken, taken); /* neither without a key, nor with another */
    json_decref(value);
}

static void spoil(struct fixture *f, json_t *value)
{
    const char *keys[16];
    const char *key;
    json_t *one, *other;
    size_t len = 0, at;

    json_object_foreach(value, key, one)
        keys[len++] = key;
    for (size_t i = 0; i < len; i++) {
        char name[32];

        strcpy(name, keys[i]);
        spoil_member(f, value, name);
    }
    for (at = 0; at < json_array_size(value); at++) {
        one = json_incref(json_array_get(value, at));
        spoil(f, one);
        for (size_t i = 0; (other = other_value(i)) != NULL; i++) {
            json_array_set_new(value, at, other);
            judge(f);
        }
        json_array_set_new(value, at, one);
    }
}

static void whatever_is_otherwise_is_refused_or_taken_as_it_is(void **state)
{
    struct fixture *f = *state;

    spoil(f, f->root);
    assert_true(f->refused > 500 && f->taken > 50);
}

/* RFC 4648 §10 has these. */
static void answers_of_any_length_come_back(void **state)
{
    static const char *const ANSWERS[] = {"",         "Zg==",     "Zm8=",    "Zm9v",
                                          "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
    struct fixture *f = *state;
    json_t *claim = json_array_get(json_object_get(f->root, "claims"), 0);

    for (size_t i = 0; i < sizeof ANSWERS / sizeof ANSWERS[0]; i++) {
        json_object_set_new(claim, "answer", json_string(ANSWERS[i]));
        judge(f);
    }
    assert_int_equal(f->taken, sizeof ANSWERS / sizeof ANSWERS[0]);
}

/* ---- the text ---- */

static void cut_anywhere_it_is_refused(void **state)
{
    struct fixture *f = *state;
    struct document document;

    for (size_t len = 0; len < sizeof TEXT - 1; len++) {
        char *text = strndup(TEXT, len);

        assert_int_equal(parse(f, text, &document), -1);
        assert_non_null(strstr(f->error, "it is neither a checkpoint nor JSON: line 1, column"));
        free(text);
    }
}

/* No checksum is in it, for people may write it; but each byte's change is seen, or one of a
 * value. */
static void with_any_byte_changed_it_is_refused_or_taken_as_it_is(void **state)
{
    static const char BITS[] = {1, 2, 16, 32, 64, (char)0x80};
    struct fixture *f = *state;

    for (size_t at = 0; at < sizeof TEXT - 1; at++) {
        for (size_t i = 0; i < sizeof BITS; i++) {
            char *text = strdup(TEXT);
            struct document document;

            text[at] ^= BITS[i];
            json_decref(f->root);
            f->root = json_loads(text, 0, NULL);
            if (f->root)
                judge(f);
            else
                assert_int_equal(parse(f, text, &document), -1);
            free(text);
        }
    }
    assert_true(f->taken > 100);
}

static void what_is_none_says_so(void **state)
{
    static const char *const NONE[][2] = {
        {"", "neither a checkpoint nor JSON"},
        {"{}", "its format is not cri-device-shim/checkpoint/v1"},
        {"[]", "its format is not"},
        {"{\"format\": \"cri-device-shim/checkpoint/v2\"}", "its format is not"},
        {"{\"Data\": {\"PodDeviceEntries\": null}, \"Checksum\": 1}", "its format is not"},
        {"{\"format\": \"cri-device-shim/checkpoint/v1\", \"schemaVersion\": 2}",
         "this program knows, which are up to 1"},
        {"{\"format\": \"cri-device-shim/checkpoint/v1\", \"schemaVersion\": 0}", "up to 1"},
        {"{\"format\": \"cri-device-shim/checkpoint/v1\"}", "up to 1"},
        {"{\"format\": \"a\", \"format\": \"b\"}", "duplicate object key"},
    };
    struct fixture *f = *state;
    struct document document;

    for (size_t i = 0; i < sizeof NONE / sizeof NONE[0]; i++) {
        assert_int_equal(parse(f, NONE[i][0], &document), -1);
        if (!strstr(f->error, NONE[i][1]))
            fail_msg("%s: %s", NONE[i][0], f->error);
    }
}

static void what_is_wrong_is_told_with_its_place(void **state)
{
    struct fixture *f = *state;
    json_t *pod = json_array_get(json_object_get(f->root, "pods"), 1);
    struct document document;
    char *text;

    json_object_set_new(pod, "attempt", json_integer(4294967296));
    text = json_dumps(f->root, 0);
    assert_int_equal(parse(f, text, &document), -1);
    assert_string_equal(f->error, "pods[1]: attempt is out of range");
    free(text);
    json_object_del(pod, "attempt");
    text = json_dumps(f->root, 0);
    assert_int_equal(parse(f, text, &document), -1);
    assert_string_equal(f->error, "pods[1]: Object item not found: attempt");
    free(text);
}

#define DOCUMENT_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DOCUMENT_TEST(what_is_written_is_read),
        DOCUMENT_TEST(the_fuzzer_begins_with_the_same),
        DOCUMENT_TEST(each_row_comes_back_with_all_that_it_has),
        DOCUMENT_TEST(whatever_is_otherwise_is_refused_or_taken_as_it_is),
        DOCUMENT_TEST(answers_of_any_length_come_back),
        DOCUMENT_TEST(cut_anywhere_it_is_refused),
        DOCUMENT_TEST(with_any_byte_changed_it_is_refused_or_taken_as_it_is),
        DOCUMENT_TEST(what_is_none_says_so),
        DOCUMENT_TEST(what_is_wrong_is_told_with_its_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "shim/rpc/status.h"

#include <stdio.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

/* gRPC over HTTP/2: TimeoutValue is a positive integer of at most eight digits. */
#define TIMEOUT_DIGITS_MAX 8
#define TIMEOUT_VALUE_MAX 99999999u

const char *rpc_code_name(int code)
{
    static const char *const names[] = {
        [RPC_OK] = "OK",
        [RPC_CANCELLED] = "CANCELLED",
        [RPC_UNKNOWN] = "UNKNOWN",
        [RPC_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
        [RPC_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
        [RPC_NOT_FOUND] = "NOT_FOUND",
        [RPC_ALREADY_EXISTS] = "ALREADY_EXISTS",
        [RPC_PERMISSION_DENIED] = "PERMISSION_DENIED",
        [RPC_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
        [RPC_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
        [RPC_ABORTED] = "ABORTED",
        [RPC_OUT_OF_RANGE] = "OUT_OF_RANGE",
        [RPC_UNIMPLEMENTED] = "UNIMPLEMENTED",
        [RPC_INTERNAL] = "INTERNAL",
        [RPC_UNAVAILABLE] = "UNAVAILABLE",
        [RPC_DATA_LOSS] = "DATA_LOSS",
        [RPC_UNAUTHENTICATED] = "UNAUTHENTICATED",
    };

    if (code < 0 || (size_t)code >= sizeof names / sizeof *names)
        return names[RPC_UNKNOWN];
    return names[code];
}

/* How much of `text` is kept: all, or as many whole UTF-8 characters as fit. */
static size_t kept_length(const char *text)
{
    size_t len = strnlen(text, STATUS_TEXT_BYTES_MAX);
    size_t back = 0;

    if (len <= RPC_STATUS_TEXT_BYTES_MAX)
        return len;
    len = RPC_STATUS_TEXT_BYTES_MAX;
    /* A character has three continuation bytes at most; more is no UTF-8 and is cut anywhere. */
    while (back < 3 && ((unsigned char)text[len - back] & 0xc0) == 0x80)
        back++;
    return ((unsigned char)text[len - back] & 0xc0) == 0x80 ? len : len - back;
}

void status_copy(const char *text, char out[static STATUS_TEXT_BYTES_MAX])
{
    size_t len = kept_length(text);

    memcpy(out, text, len);
    out[len] = '\0';
}

size_t status_encode(const char *text, char out[static STATUS_ENCODED_BYTES_MAX])
{
    static const char hex[] = "0123456789ABCDEF";
    size_t len = kept_length(text), n = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)text[i];

        if (byte >= ' ' && byte <= '~' && byte != '%') {
            out[n++] = (char)byte;
            continue;
        }
        out[n++] = '%';
        out[n++] = hex[byte >> 4];
        out[n++] = hex[byte & 15];
    }
    out[n] = '\0';
    return n;
}

static int hex_value(uint8_t digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

/* The byte at *i, decoded; moves *i behind it. */
static char decode_byte(const uint8_t *value, size_t len, size_t *i)
{
    uint8_t byte = value[*i];

    if (byte == '%' && len - *i > 2) {
        int high = hex_value(value[*i + 1]), low = hex_value(value[*i + 2]);

        if (high >= 0 && low >= 0) {
            byte = (uint8_t)(high << 4 | low);
            *i += 2;
        }
    }
    *i += 1;
    if (byte == 0)
        return '?';
    return (char)byte;
}

void status_decode(const uint8_t *value, size_t len, char out[static STATUS_TEXT_BYTES_MAX])
{
    /* One byte more than is kept, so that kept_length() sees where the next character starts. */
    char text[STATUS_TEXT_BYTES_MAX + 1];
    size_t n = 0;

    for (size_t i = 0; i < len && n < STATUS_TEXT_BYTES_MAX;)
        text[n++] = decode_byte(value, len, &i);
    text[n] = '\0';
    status_copy(text, out);
}

int status_code_parse(const uint8_t *value, size_t len)
{
    int code = 0;

    if (len == 0 || len > 2)
        return RPC_UNKNOWN;
    for (size_t i = 0; i < len; i++) {
        if (value[i] < '0' || value[i] > '9')
            return RPC_UNKNOWN;
        code = code * 10 + (value[i] - '0');
    }
    return code > RPC_UNAUTHENTICATED ? RPC_UNKNOWN : code;
}

int status_http_parse(const uint8_t *value, size_t len)
{
    int status = 0;

    for (size_t i = 0; i < len && i < 3; i++)
        status = status * 10 + (value[i] - '0');
    return status;
}

void status_timeout_format(uint64_t timeout_ms, char out[static STATUS_TIMEOUT_BYTES_MAX])
{
    static const struct {
        char unit;
        uint64_t ms;
    } units[] = {{'m', 1}, {'S', 1000}, {'M', 60 * 1000}, {'H', 3600 * 1000}};
    uint64_t value = 0;
    size_t i;

    for (i = 0; i < sizeof units / sizeof *units; i++) {
        value = timeout_ms / units[i].ms + (timeout_ms % units[i].ms != 0);
        if (value <= TIMEOUT_VALUE_MAX)
            break;
    }
    if (i == sizeof units / sizeof *units) {
        value = TIMEOUT_VALUE_MAX;
        i--;
    }
    snprintf(out, STATUS_TIMEOUT_BYTES_MAX, "%u%c", (unsigned)value, units[i].unit);
}

static bool timeout_scale(uint8_t unit, uint64_t value, uint64_t *timeout_ms)
{
    switch (unit) {
    case 'n':
        *timeout_ms = (value + 999999) / 1000000;
        return true;
    case 'u':
        *timeout_ms = (value + 999) / 1000;
        return true;
    case 'm':
        *timeout_ms = value;
        return true;
    case 'S':
        *timeout_ms = value * 1000;
        return true;
    case 'M':
        *timeout_ms = value * 60 * 1000;
        return true;
    case 'H':
        *timeout_ms = value * 3600 * 1000;
        return true;
    default:
        return false;
    }
}

bool status_timeout_parse(const uint8_t *value, size_t len, uint64_t *timeout_ms)
{
    uint64_t number = 0, scaled;

    if (len < 2 || len > TIMEOUT_DIGITS_MAX + 1)
        return false;
    for (size_t i = 0; i < len - 1; i++) {
        if (value[i] < '0' || value[i] > '9')
            return false;
        number = number * 10 + (value[i] - '0');
    }
    if (!timeout_scale(value[len - 1], number, &scaled))
        return false;
    *timeout_ms = scaled < STATUS_TIMEOUT_MS_MAX ? scaled : STATUS_TIMEOUT_MS_MAX;
    return true;
}

int status_from_http(int http_status)
{
    switch (http_status) {
    case 400:
        return RPC_INTERNAL;
    case 401:
        return RPC_UNAUTHENTICATED;
    case 403:
        return RPC_PERMISSION_DENIED;
    case 404:
        return RPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return RPC_UNAVAILABLE;
    default:
        return RPC_UNKNOWN;
    }
}

int status_from_h2(uint32_t error_code)
{
    switch (error_code) {
    case NGHTTP2_REFUSED_STREAM:
        return RPC_UNAVAILABLE;
    case NGHTTP2_CANCEL:
        return RPC_CANCELLED;
    case NGHTTP2_ENHANCE_YOUR_CALM:
        return RPC_RESOURCE_EXHAUSTED;
    case NGHTTP2_INADEQUATE_SECURITY:
        return RPC_PERMISSION_DENIED;
    case NGHTTP2_STREAM_CLOSED:
    case NGHTTP2_HTTP_1_1_REQUIRED:
        return RPC_UNKNOWN;
    default:
        return error_code <= NGHTTP2_HTTP_1_1_REQUIRED ? RPC_INTERNAL : RPC_UNKNOWN;
    }
}

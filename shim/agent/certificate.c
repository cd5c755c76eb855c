#include "shim/agent/certificate.h"

#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#define NODE_PREFIX "system:node:"
#define NODE_GROUP "system:nodes"

/* NULL: there is none. */
static X509 *read_certificate(const char *text, size_t len)
{
    BIO *bio = BIO_new_mem_buf(text, (int)len);
    X509 *certificate = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;

    BIO_free(bio);
    ERR_clear_error();
    return certificate;
}

/* A key that is locked is none: nobody is here to be asked for its password. */
static int no_password(char *out, int size, int writing, void *user)
{
    (void)out;
    (void)size;
    (void)writing;
    (void)user;
    return -1;
}

static EVP_PKEY *read_key(const char *text, size_t len)
{
    BIO *bio = BIO_new_mem_buf(text, (int)len);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;

    BIO_free(bio);
    ERR_clear_error();
    return key;
}

bool certificate_fits(const char *certificate, size_t certificate_len, const char *key,
                      size_t key_len)
{
    X509 *public = read_certificate(certificate, certificate_len);
    EVP_PKEY *private = read_key(key, key_len);
    bool fits = public && private && X509_check_private_key(public, private) == 1;

    X509_free(public);
    EVP_PKEY_free(private);
    ERR_clear_error();
    return fits;
}

/* Whether an entry of the subject is that text. */
static bool entry_is(const X509_NAME_ENTRY *entry, const char *text)
{
    const ASN1_STRING *data = X509_NAME_ENTRY_get_data(entry);

    return ASN1_STRING_length(data) == (int)strlen(text) &&
           memcmp(ASN1_STRING_get0_data(data), text, strlen(text)) == 0;
}

static bool in_group(const X509_NAME *subject, const char *group)
{
    for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, NID_organizationName, at)) >= 0;) {
        if (entry_is(X509_NAME_get_entry(subject, at), group))
            return true;
    }
    return false;
}

bool certificate_node(const char *certificate, size_t len, char name[NODE_NAME_BYTES_MAX])
{
    X509 *read = read_certificate(certificate, len);
    char user[sizeof NODE_PREFIX + NODE_NAME_BYTES_MAX];
    const size_t prefix = strlen(NODE_PREFIX);
    const X509_NAME *subject;
    bool is_node = false;
    int bytes;

    if (!read)
        return false;
    subject = X509_get_subject_name(read);
    bytes = X509_NAME_get_text_by_NID((X509_NAME *)subject, NID_commonName, user, sizeof user);
    if (bytes > (int)prefix && (size_t)bytes < prefix + NODE_NAME_BYTES_MAX &&
        strlen(user) == (size_t)bytes && strncmp(user, NODE_PREFIX, prefix) == 0 &&
        in_group(subject, NODE_GROUP)) {
        strcpy(name, user + prefix);
        is_node = true;
    }
    X509_free(read);
    return is_node;
}

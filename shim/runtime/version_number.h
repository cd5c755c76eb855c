/*
 * Versions of runtimes, to be compared.
 */
#ifndef SHIM_RUNTIME_VERSION_NUMBER_H
#define SHIM_RUNTIME_VERSION_NUMBER_H

#define VERSION_NUMBER(major, minor, patch) (((major)*1000 + (minor)) * 1000 + (patch))

/* "v1.7.24~ds1" is 1'007'024; 0: it is no version. */
unsigned version_number(const char *version);

#endif

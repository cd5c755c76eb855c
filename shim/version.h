/*
 * What is built: the version, and the commit where it is known, e.g. "0.2.0-dev (1a34b10f2c3d)".
 *
 * SHIM_VERSION is the version alone, for what peers are told.
 */
#ifndef SHIM_VERSION_H
#define SHIM_VERSION_H

extern const char version_text[];

#endif

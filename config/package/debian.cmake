# What cpack has laid out, before it is packed: the package's own changelog, and texts as Debian has them.
set(share ${CPACK_TEMPORARY_DIRECTORY}/usr/share)
set(doc ${share}/doc/cri-device-shim)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # of $SOURCE_DATE_EPOCH
file(CONFIGURE OUTPUT ${doc}/changelog.Debian @ONLY CONTENT [[
cri-device-shim (@CPACK_PACKAGE_VERSION@) unstable; urgency=medium

  * What has changed: see changelog.gz.

 -- @CPACK_DEBIAN_PACKAGE_MAINTAINER@  @date@
]])
file(GLOB texts ${share}/man/man*/* ${doc}/changelog*)
execute_process(COMMAND gzip -9nf ${texts} COMMAND_ERROR_IS_FATAL ANY)

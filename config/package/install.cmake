# What `cmake --install` puts where, and what cpack makes a Debian package of (config/package.sh).
#
# It is for a package or an image, whose prefix is /usr: units lie where systemd finds them by
# themselves. On a node config/install.sh does what is needed besides.
set(config ${CMAKE_SOURCE_DIR}/config)
set(doc share/doc/cri-device-shim)

install(TARGETS cri-device-shim cri-device-shim-bridge cri-device-shimctl cri-device-shim-agent
        RUNTIME DESTINATION bin)

# Of `cri-device-shimctl node`.
file(GLOB parts CONFIGURE_DEPENDS ${config}/node/*.sh)
list(REMOVE_ITEM parts ${config}/node/node.sh)
install(PROGRAMS ${config}/node/node.sh DESTINATION lib/cri-device-shim)
install(FILES ${parts} DESTINATION lib/cri-device-shim)

set(units cri-device-shim.socket cri-device-shim.service cri-device-shim-bridge.service cri-device-shim-agent.service)
list(TRANSFORM units PREPEND ${config}/)
install(FILES ${units} DESTINATION lib/systemd/system)
# The prefix is known only now.
install(CODE [[
    foreach(name .service -bridge.service -agent.service)
        set(unit $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/systemd/system/cri-device-shim${name})
        file(READ ${unit} text)
        string(REPLACE "=/usr/local/bin/" "=${CMAKE_INSTALL_PREFIX}/bin/" text "${text}")
        file(WRITE ${unit} "${text}")
    endforeach()
]])

install(FILES ${config}/cri-device-shimctl.1 DESTINATION share/man/man1)
install(FILES ${CMAKE_BINARY_DIR}/config/cri-device-shim.toml.5 DESTINATION share/man/man5)
install(FILES ${config}/cri-device-shim.8 ${config}/cri-device-shim-bridge.8 ${config}/cri-device-shim-agent.8
        DESTINATION share/man/man8)
install(FILES ${config}/completion.bash DESTINATION share/bash-completion/completions RENAME cri-device-shimctl)
install(FILES ${config}/completion.zsh DESTINATION share/zsh/vendor-completions RENAME _cri-device-shimctl)
install(FILES ${config}/prometheus/alerts.yaml ${config}/grafana/dashboard.json ${config}/agent-rbac.yaml
        DESTINATION share/cri-device-shim)
install(FILES ${config}/example.toml ${CMAKE_CURRENT_LIST_DIR}/copyright DESTINATION ${doc})
install(FILES CHANGELOG.md DESTINATION ${doc} RENAME changelog)

# ---- the package; of it config/package.sh says its version, its maintainer and what it needs besides ----

set(CPACK_GENERATOR DEB)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PACKAGE_NAME cri-device-shim)
set(CPACK_PACKAGE_VERSION ${SHIM_VERSION})
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 1) # so that the same is packed as the same
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "devices and device waiting between kubelet and container runtime
Stands between the kubelet and the container runtime on a node of a Kubernetes
cluster. A container that asks for a device gets it, or waits for it; it is not
started without it. Device plugins and DRA drivers may come late, hang or be
upgraded, and no pod fails for it.

Nothing on the node changes by this package alone: cri-device-shimctl node
enable has the node's kubelet use it, and node disable has it as before.")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/postinst ${CMAKE_CURRENT_LIST_DIR}/prerm
    ${CMAKE_CURRENT_LIST_DIR}/postrm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)

add_executable(cri-device-shim ${CMAKE_CURRENT_LIST_DIR}/main.c)
target_link_libraries(cri-device-shim PRIVATE
    shim_relay shim_plugins shim_runtime shim_rpc shim_log devicemgr devicemgr_store config
    PkgConfig::SYSTEMD shim_warnings)
target_link_options(cri-device-shim PRIVATE -Wl,--gc-sections)

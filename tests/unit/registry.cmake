unit_test(test_registry_sockets test_registry_sockets.c shim_registry rpc_fixture)
unit_test(test_registry_info test_registry_info.c shim_registry)
unit_test(test_kubelet_link test_kubelet_link.c shim_registry rpc_fixture)

add_library(registering STATIC registering.c)
target_link_libraries(registering PUBLIC rpc_fixture cri_proto PRIVATE shim_warnings)

unit_test(test_handshake test_handshake.c shim_registry registering)
unit_test(test_registry test_registry.c shim_registry registering)
unit_test(test_elsewhere test_elsewhere.c shim_registry registering)

add_library(runtime_fixture STATIC runtime_fixture.c)
target_link_libraries(runtime_fixture PUBLIC rpc_fixture cri_proto PRIVATE shim_warnings)

unit_test(test_listed test_listed.c shim_runtime cri_proto alloc_fail)
unit_test(test_lister test_lister.c shim_runtime runtime_fixture alloc_fail)
unit_test(test_stopper test_stopper.c shim_runtime rpc_fixture cri_proto)
unit_test(test_cdi_support test_cdi_support.c shim_runtime cri_proto)
unit_test(test_event_sharing test_event_sharing.c shim_runtime)

unit_test(test_advertised test_advertised.c shim_kubelet devicemgr)
unit_test(test_taken test_taken.c shim_kubelet devicemgr)
unit_test(test_displaced test_displaced.c shim_kubelet)
unit_test(test_file test_file.c shim_log)
unit_test(test_process test_process.c shim_log)
unit_test(test_program test_program.c shim_log)
unit_test(test_checkpoint_file test_checkpoint_file.c shim_kubelet_file devicemgr)
unit_test(test_checkpoint_watch test_checkpoint_watch.c shim_kubelet devicemgr rpc_fixture)

# feed.c and its parts.
add_library(feed_fixture STATIC feed_fixture.c)
target_link_libraries(feed_fixture PUBLIC shim_kubelet shim_core devicemgr plugin_fixture
                      PRIVATE shim_warnings)
foreach(part feed held questions watchers)
    unit_test(test_${part} test_${part}.c feed_fixture)
endforeach()

# gate.c and its parts.
add_library(gate_fixture STATIC gate_fixture.c)
target_link_libraries(gate_fixture PUBLIC shim_kubelet rpc_fixture PRIVATE shim_warnings)
foreach(part armed_file gate kubelets)
    unit_test(test_${part} test_${part}.c gate_fixture)
endforeach()

unit_test(test_dra_services test_dra_services.c shim_dra)
unit_test(test_dra_answer test_dra_answer.c shim_dra)
unit_test(test_kubelet_claims test_kubelet_claims.c shim_dra rpc_fixture)

add_library(driver_fixture STATIC driver_fixture.c)
target_link_libraries(driver_fixture PUBLIC rpc_fixture cri_proto PRIVATE shim_warnings)

unit_test(test_driver_client test_driver_client.c shim_dra driver_fixture)

set(KUBELET_CHECKPOINT
    KUBELET_CHECKPOINT="${CMAKE_SOURCE_DIR}/tests/integration/captures/kubelet_internal_checkpoint")

unit_test(test_kubelet_checkpoint test_kubelet_checkpoint.c devicemgr)
target_compile_definitions(test_kubelet_checkpoint PRIVATE ${KUBELET_CHECKPOINT})
unit_test(test_devicemgr_base64 test_devicemgr_base64.c devicemgr)
unit_test(test_kubelet_rows test_kubelet_rows.c devicemgr)
unit_test(test_boot test_boot.c shim_log)
unit_test(test_import test_import.c shim_commands shim_log devicemgr devicemgr_store)
target_compile_definitions(test_import PRIVATE ${KUBELET_CHECKPOINT})

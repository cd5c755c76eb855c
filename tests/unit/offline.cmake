unit_test(test_offline_document test_offline_document.c shim_offline shim_checkpoint)
target_compile_definitions(test_offline_document PRIVATE
    FUZZ_CORPUS="${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/fuzz_document")
unit_test(test_offline_replace test_offline_replace.c shim_offline store_fixture killed_calls)

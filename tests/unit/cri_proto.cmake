unit_test(test_methods test_methods.c cri_proto)

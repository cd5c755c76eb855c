unit_test(test_kube_name test_kube_name.c cri_names)
unit_test(test_methods test_methods.c cri_proto)
unit_test(test_resource_name test_resource_name.c cri_names)
unit_test(test_utf8 test_utf8.c cri_names)

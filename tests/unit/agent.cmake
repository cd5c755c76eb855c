unit_test(test_facts test_facts.c shim_facts)
unit_test(test_json_splitter test_json_splitter.c shim_agent)
unit_test(test_kubeconfig test_kubeconfig.c shim_agent)
unit_test(test_cluster_orders test_cluster_orders.c shim_cluster shim_log test_rpc_fixture)

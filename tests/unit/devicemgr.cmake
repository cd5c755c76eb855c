add_library(devicemgr_world STATIC devicemgr_world.c claims_world.c shown_world.c)
target_link_libraries(devicemgr_world PUBLIC devicemgr PkgConfig::CMOCKA PRIVATE shim_warnings)

foreach(name action adopt advertise allocation builtin by_claims capacity cdi checkpoint choose claimed claim_lists cluster_taints consumers counts create create_admit create_call selection devices end end_sidecars ending endpoint enroll evict
        granted happened ids kubelet lifted lifted_create listed listing lists mem options order outbox owners plugin pod prefer reason rebuild record record_ending record_shutdown registration release renamed renames replaceable replaced replacing request resource runtime shutdown sidecars steer taint tainted task task_moved task_owed task_users toleration shown shown_held shown_taken text
        wake why why_claims)
    unit_test(test_devicemgr_${name} test_devicemgr_${name}.c devicemgr_world)
endforeach()
# Counts what is called by name.
target_link_options(test_devicemgr_lifted_create PRIVATE -Wl,--wrap=lifted_name_device)
# Or what is looked for.
target_link_options(test_devicemgr_task_owed PRIVATE -Wl,--wrap=task_find)
unit_test(test_devicemgr test_devicemgr.c devicemgr_world)

unit_test(test_settings test_settings.c shim_settings config)
unit_test(test_config test_config.c config alloc_fail)
target_sources(test_config PRIVATE alloc_fail_new.cpp)
unit_test(test_config_compare test_config_compare.c config)
unit_test(test_config_schema test_config_schema.cpp config)
foreach(name test_config test_config_schema)
    target_compile_definitions(${name} PRIVATE
        EXAMPLE_TOML="${CMAKE_SOURCE_DIR}/config/example.toml")
endforeach()

unit_test(test_config test_config.c config)
target_compile_definitions(test_config PRIVATE
    EXAMPLE_TOML="${CMAKE_SOURCE_DIR}/config/example.toml")

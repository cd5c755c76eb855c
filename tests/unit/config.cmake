unit_test(test_config test_config.c config)
target_sources(test_config PRIVATE alloc_fail.c)
target_link_options(test_config PRIVATE
    -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup)
unit_test(test_config_schema test_config_schema.c config)
foreach(name test_config test_config_schema)
    target_compile_definitions(${name} PRIVATE
        EXAMPLE_TOML="${CMAKE_SOURCE_DIR}/config/example.toml")
endforeach()

# cmake --build --preset dev --target lint
add_custom_target(lint
    COMMAND ${PROJECT_SOURCE_DIR}/tests/lint ${PROJECT_BINARY_DIR}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} USES_TERMINAL)

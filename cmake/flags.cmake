# project_flags: what every target of ours is compiled with.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

set(TIDECAST_SANITIZE "" CACHE STRING "Value for -fsanitize=, empty for none")
option(TIDECAST_FUZZ "Build the fuzzers (clang only)" OFF)

add_library(project_flags INTERFACE)
target_include_directories(project_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_definitions(project_flags INTERFACE _GNU_SOURCE TIDECAST_VERSION="${PROJECT_VERSION}")
# Asserts stay on in release: "impossible" must stop the process, not corrupt it.
string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_RELWITHDEBINFO "${CMAKE_C_FLAGS_RELWITHDEBINFO}")
target_compile_options(project_flags INTERFACE
    -Wall -Wextra -Werror -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes
    -Wmissing-prototypes -Wformat=2 -Wundef -Wvla -Wswitch-enum)
if(TIDECAST_SANITIZE)
    target_compile_options(project_flags INTERFACE
        -fsanitize=${TIDECAST_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(project_flags INTERFACE -fsanitize=${TIDECAST_SANITIZE})
else()
    target_compile_options(project_flags INTERFACE
        $<$<CONFIG:RelWithDebInfo>:-D_FORTIFY_SOURCE=2> -fstack-protector-strong -fPIE)
    target_link_options(project_flags INTERFACE -pie -Wl,-z,relro,-z,now)
endif()

# Debian 12's packages; deploy/install-deps installs them.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(H2O REQUIRED IMPORTED_TARGET libh2o-evloop)
pkg_check_modules(HIREDIS REQUIRED IMPORTED_TARGET hiredis)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto libssl)
find_library(UNISTRING_LIBRARY unistring REQUIRED)
find_library(EV_LIBRARY ev REQUIRED)
find_library(WSLAY_LIBRARY wslay REQUIRED)
find_library(CMOCKA_LIBRARY cmocka REQUIRED)

# The .pc file names neither: without the define the headers choose libuv's structs.
add_library(h2o INTERFACE)
target_compile_definitions(h2o INTERFACE H2O_USE_LIBUV=0)
target_link_libraries(h2o INTERFACE PkgConfig::H2O ${WSLAY_LIBRARY} PkgConfig::CRYPTO)

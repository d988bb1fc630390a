# SPDX-License-Identifier: Apache-2.0
# arm64.cmake: toolchain file of a build for 64-bit ARM Linux with Debian's
# cross compiler (scripts/deps arm64). ARM64_ROOT: the folder that
# scripts/fetch-arm64 filled. Programs of the build, such as tests, run under
# qemu with the libraries of ARM64_ROOT.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(ARM64_ROOT "${CMAKE_CURRENT_LIST_DIR}/../build/arm64-root"
    CACHE PATH "Folder that scripts/fetch-arm64 filled")
get_filename_component(ARM64_ROOT "${ARM64_ROOT}" ABSOLUTE)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ARM64_ROOT)

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT "${ARM64_ROOT}")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;${ARM64_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR}
    "${ARM64_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${ARM64_ROOT}/usr/share/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${ARM64_ROOT}")

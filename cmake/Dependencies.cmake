# What Samepage is built with. Every package is Debian's; `./run` installs what is missing.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

pkg_check_modules(NUMA REQUIRED IMPORTED_TARGET numa)
pkg_check_modules(DRM REQUIRED IMPORTED_TARGET libdrm)
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

find_path(OPENCL_INCLUDE_DIR CL/cl_icd.h REQUIRED)
find_library(OPENCL_LOADER OpenCL REQUIRED)

# For the lines in the checking mode's reports; without it they name offsets.
find_path(SP_LIBDW_INCLUDE_DIR elfutils/libdwfl.h)

# The compiler process only: the library itself links none of it.
find_program(SP_LLVM_CONFIG llvm-config-19 REQUIRED)
find_program(SP_CLANG clang-19 REQUIRED)
find_program(SP_LLD ld.lld-19 REQUIRED)
execute_process(COMMAND ${SP_LLVM_CONFIG} --includedir OUTPUT_VARIABLE SP_LLVM_INCLUDE_DIR
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${SP_LLVM_CONFIG} --libdir OUTPUT_VARIABLE SP_LLVM_LIB_DIR
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_library(SP_LLVM_LIBRARY LLVM-19 PATHS ${SP_LLVM_LIB_DIR} NO_DEFAULT_PATH REQUIRED)
execute_process(COMMAND ${SP_CLANG} -print-resource-dir OUTPUT_VARIABLE SP_CLANG_RESOURCES
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

# Not every distribution has Clang and lld as static libraries; without them samepage-cc runs the programs.
find_library(SP_CLANG_CODEGEN libclangCodeGen.a PATHS ${SP_LLVM_LIB_DIR} NO_DEFAULT_PATH)
find_library(SP_LLD_ELF liblldELF.a PATHS ${SP_LLVM_LIB_DIR} NO_DEFAULT_PATH)
find_path(SP_CLANG_HEADERS clang/CodeGen/CodeGenAction.h PATHS ${SP_LLVM_INCLUDE_DIR} NO_DEFAULT_PATH)
find_path(SP_LLD_HEADERS lld/Common/Driver.h PATHS ${SP_LLVM_INCLUDE_DIR} NO_DEFAULT_PATH)
find_package(ZLIB QUIET)
pkg_check_modules(ZSTD IMPORTED_TARGET libzstd)
include(CheckLanguage)
check_language(CXX)
set(has_static_compiler OFF)
if(SP_CLANG_CODEGEN AND SP_LLD_ELF AND SP_CLANG_HEADERS AND SP_LLD_HEADERS AND ZLIB_FOUND AND ZSTD_FOUND AND CMAKE_CXX_COMPILER)
  set(has_static_compiler ON)
endif()
option(SAMEPAGE_STATIC_COMPILER "Link Clang and lld into samepage-cc" ${has_static_compiler})
if(SAMEPAGE_STATIC_COMPILER AND NOT has_static_compiler)
  message(FATAL_ERROR "SAMEPAGE_STATIC_COMPILER wants the static libraries and headers of Clang 19 and lld 19, a C++ compiler, zlib and zstd "
    "(Debian: libclang-19-dev liblld-19-dev g++ zlib1g-dev libzstd-dev). Without it samepage-cc runs the programs.")
endif()
if(SAMEPAGE_STATIC_COMPILER)
  enable_language(CXX)
endif()

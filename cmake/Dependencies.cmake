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

# Not every distribution has Clang as static libraries; without them samepage-cc runs the programs.
find_library(SP_CLANG_CODEGEN libclangCodeGen.a PATHS ${SP_LLVM_LIB_DIR} NO_DEFAULT_PATH)
find_library(SP_LLD_ELF liblldELF.a PATHS ${SP_LLVM_LIB_DIR} NO_DEFAULT_PATH)
if(SP_CLANG_CODEGEN AND SP_LLD_ELF)
  option(SAMEPAGE_STATIC_COMPILER "Link Clang and lld into samepage-cc" ON)
else()
  option(SAMEPAGE_STATIC_COMPILER "Link Clang and lld into samepage-cc" OFF)
endif()
if(SAMEPAGE_STATIC_COMPILER)
  enable_language(CXX)
  find_package(ZLIB REQUIRED)
  pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
endif()

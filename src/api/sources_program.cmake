# The entry points for programs and kernels; paths relative to src/.
set(SP_PROGRAM_SOURCES
  api/build_options.c
  api/enqueue_kernel.c
  api/kernel.c
  api/kernel_args.c
  api/kernel_info.c
  api/program.c
  api/program_binary.c
  api/program_build.c
  api/program_info.c
  api/program_job.c
)

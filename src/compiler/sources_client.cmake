# The library's side of the compiler; paths relative to src/.
set(SP_CLIENT_SOURCES
  compiler/cache.c
  compiler/client.c
  compiler/executable.c
  compiler/globals.c
  compiler/steps.c
)

# The checking mode: programs that run themselves under SAMEPAGE_CHECK, and what is right under it as it is.
set(SP_API_TESTS_CHECK
  check_abort
  check_at_once
  check_forgive
  check_freed
  check_privileges
  check_undeclared
  check_unmapped
)
set(SP_API_TESTS_CHECKED
  devices_share
  map_flags
  svm_buffer
  svm_map
  thread_safety
)

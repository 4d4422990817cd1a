# Several devices with memory of their own: virtual ones, which the tests ask for themselves.
set(SP_API_TESTS_DEVICES
  device_death
  device_death_idle
  device_paths
  device_prints
  device_streams
  devices_random
  devices_share
  map_parts
  map_populate
  pooled_death
  pooled_memory
  pooled_no_memory
  pooled_random
  trace
  user_problems
)

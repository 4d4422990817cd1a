# Tests of platforms, devices, contexts, queues, events, buffers and SVM: tests/api/<name>.c each.
set(SP_API_TESTS_OBJECTS
  context_errors
  device_info
  event_callbacks
  platform_info
  queue_order
  queue_properties
  sub_devices
  user_event_chain
)

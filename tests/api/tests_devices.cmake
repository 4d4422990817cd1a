# Several devices with memory of their own: virtual ones, which the tests ask for themselves.
set(SP_API_TESTS_DEVICES
  device_death
  devices_share
)

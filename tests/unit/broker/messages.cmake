# The way of a message through one peer: send, pull, send back, delay, query.
triad_test(unit_broker_messages
  SOURCES
    message_dedup_test.cc
    message_delay_test.cc
    message_dlq_test.cc
    message_harness.cc
    message_parts_test.cc
    message_plain_sends_test.cc
    message_pull_test.cc
    message_query_test.cc
    message_refusals_test.cc
    message_runtime_info_test.cc
    message_send_back_test.cc
    message_send_test.cc
  DEPS triad_broker_processor LABELS unit)

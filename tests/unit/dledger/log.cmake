triad_test(unit_log
  SOURCES log_damage_test.cc log_entry_codec_test.cc
          log_fault_test.cc log_prepare_test.cc log_property_test.cc log_race_test.cc log_raw_test.cc log_reader_test.cc
          log_recovery_test.cc log_retention_test.cc log_sim_file_system_test.cc log_store_guard_test.cc log_store_test.cc
          log_threads_test.cc
  DEPS triad_dledger_log triad_sim_file_system)

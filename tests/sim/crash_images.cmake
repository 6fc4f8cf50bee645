# The simulated file system, and the crash images of the log store on it.
triad_library(triad_sim_file_system SOURCES file_disk.cc sim_file_system.cc DEPS triad_common)
triad_test(crash_images SOURCES crash_images_test.cc log_workload.cc store_workload.cc
           DEPS triad_dledger_log triad_broker_store triad_sim_file_system LABELS sim TIMEOUT 300)

# The simulated file system, and the crash images of the log store on it.
triad_library(triad_sim_file_system
  SOURCES file_disk.cc file_disk_faults.cc sim_file_faults.cc sim_file_system.cc
  DEPS triad_common)
triad_test(crash_images SOURCES crash_images_test.cc log_workload.cc store_workload.cc
           DEPS triad_dledger_log triad_broker_store triad_sim_file_system LABELS sim TIMEOUT 300)

# The same with a planted bug that only a crash at one moment shows: it must fail.
triad_program(crash_images_mutants
  SOURCES crash_images_test.cc log_workload.cc store_workload.cc
          ${PROJECT_SOURCE_DIR}/dledger/log/log_store.cc
  DEPS triad_dledger_log triad_broker_store triad_sim_file_system GTest::gtest_main)
target_compile_definitions(crash_images_mutants PRIVATE TRIAD_MUTANTS)
target_link_options(crash_images_mutants PRIVATE -Wl,--allow-multiple-definition)
set_target_properties(crash_images_mutants PROPERTIES
  UNITY_BUILD OFF RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
add_test(NAME sim.crash_images_mutant COMMAND crash_images_mutants)
set_tests_properties(sim.crash_images_mutant PROPERTIES
  ENVIRONMENT TRIAD_MUTANT=31 PASS_REGULAR_EXPRESSION "FAILED TEST" LABELS sim TIMEOUT 300)

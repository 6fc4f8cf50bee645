# The simulated file system, and the crash images of the log store on it.
triad_library(triad_sim_file_system
  SOURCES file_disk.cc file_disk_faults.cc sim_file_faults.cc sim_file_system.cc
  DEPS triad_common)
triad_library(triad_sim_level_env
  SOURCES level_env.cc DEPS triad_broker_state PRIVATE_DEPS leveldb::leveldb)
set(crash_sources
  crash_images_test.cc key_workload.cc log_workload.cc one_peer.cc peer_workload.cc store_workload.cc)
set(crash_deps triad_sim_group triad_sim_level_env leveldb::leveldb)
triad_test(crash_images SOURCES ${crash_sources} DEPS ${crash_deps} LABELS sim TIMEOUT 300)

# The same with planted bugs that only a crash at one moment shows: it must fail.
set(crash_mutated
  broker/state/leveldb_state_store.cc broker/store/key_index.cc dledger/disk_writer.cc dledger/log/log_store.cc
  dledger/snapshot/snapshot_file.cc)
list(TRANSFORM crash_mutated PREPEND ${PROJECT_SOURCE_DIR}/)
triad_program(crash_images_mutants
  SOURCES ${crash_sources} ${crash_mutated} DEPS ${crash_deps} GTest::gtest_main)
target_compile_definitions(crash_images_mutants PRIVATE TRIAD_MUTANTS)
target_link_options(crash_images_mutants PRIVATE -Wl,--allow-multiple-definition)
set_target_properties(crash_images_mutants PROPERTIES
  UNITY_BUILD OFF RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
function(triad_crash_mutant number workload)
  add_test(NAME sim.crash_images_mutant_${number} COMMAND crash_images_mutants)
  set_tests_properties(sim.crash_images_mutant_${number} PROPERTIES
    ENVIRONMENT "TRIAD_MUTANT=${number};TRIAD_CRASH_ONLY=${workload}"
    PASS_REGULAR_EXPRESSION "FAILED TEST" LABELS sim TIMEOUT 300)
endfunction()
triad_crash_mutant(31 cut)
triad_crash_mutant(34 LevelDB)
triad_crash_mutant(35 "key index")
triad_crash_mutant(36 "state installed")
triad_crash_mutant(37 broker)

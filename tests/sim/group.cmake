# sim_broker: whole broker groups in one thread from one seed.
triad_library(triad_sim_group
  SOURCES git_commit.cc group/group_clients.cc group/group_counts.cc group/group_damage.cc group/group_keepers.cc group/group_members.cc
          group/group_minimize.cc group/group_nemesis.cc group/group_net.cc group/group_options.cc
          group/group_oracle.cc group/group_oracle_clients.cc group/group_world.cc group/journal.cc
          group/life_file_system.cc group/loop_node.cc group/sim_peer.cc seed_runs.cc shrink.cc
  DEPS triad_broker triad_sim_file_system)

set_source_files_properties(git_commit.cc PROPERTIES
  COMPILE_DEFINITIONS "TRIAD_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"")

triad_program(sim_broker SOURCES sim_broker.cc DEPS triad_sim_group)

triad_test(unit_sim_oracle SOURCES group/group_oracle_test.cc DEPS triad_sim_group LABELS unit)

# The same with planted bugs: these files with TRIAD_MUTANTS, the rest as it is.
set(mutated
  dledger/disk_writer.cc dledger/log_driver.cc dledger/log/entry_codec.cc dledger/log/log_scan.cc
  dledger/log/log_store.cc dledger/log/segment_preparer.cc broker/service/leader_reads.cc
  broker/service/lock_service.cc broker/state/memory_state_store.cc broker/store/appender.cc broker/store/appender_build.cc
  broker/store/message_store_reads.cc)
list(TRANSFORM mutated PREPEND ${PROJECT_SOURCE_DIR}/)
triad_program(sim_broker_mutants SOURCES sim_broker.cc hunt.cc ${mutated}
  DEPS triad_dledger_core_mutants triad_sim_group)
# The libraries hold these files too: what comes first counts.
target_link_options(sim_broker_mutants PRIVATE -Wl,--allow-multiple-definition)
set_target_properties(sim_broker_mutants PROPERTIES UNITY_BUILD OFF)
set_target_properties(sim_broker sim_broker_mutants PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)

set(broker_schedules 2000)  # a floor: it may only rise
set(beyond_schedules 200)
if(TRIAD_SANITIZER)
  set(broker_schedules 60)
  set(beyond_schedules 20)
endif()
add_test(NAME sim.broker_beyond
  COMMAND sim_broker --beyond --schedules ${beyond_schedules} --jobs 2)
add_test(NAME sim.broker COMMAND sim_broker --schedules ${broker_schedules} --jobs 2)
add_test(NAME sim.broker_buggified COMMAND sim_broker_mutants --schedules 300 --jobs 2)
add_test(NAME sim.broker_determinism COMMAND sim_broker --determinism --schedules 200)
add_test(NAME sim.broker_regression_seeds
  COMMAND sim_broker --seeds-file ${CMAKE_CURRENT_SOURCE_DIR}/broker_regression_seeds.txt)
add_test(NAME sim.broker_mutants COMMAND sim_broker_mutants --all-mutants --schedules 6000)
set_tests_properties(sim.broker sim.broker_beyond sim.broker_buggified sim.broker_determinism sim.broker_regression_seeds
  sim.broker_mutants PROPERTIES LABELS sim TIMEOUT 900)

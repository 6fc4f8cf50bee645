# The node: pieces, a group of one, three peers in one process.
triad_library(triad_node_harness SOURCES node_harness.cc DEPS triad_dledger PRIVATE_DEPS GTest::gtest)
triad_test(unit_node
  SOURCES apply_thread_test.cc node_alone_test.cc node_group_test.cc node_members_test.cc node_pieces_test.cc node_snapshot_test.cc node_start_test.cc
          peer_codec_test.cc retention_test.cc snapshot_desk_test.cc snapshot_test.cc
  DEPS triad_node_harness triad_sim_file_system)

# The pure Raft core (helper classes alone, then the core by hand-made messages).
triad_test(unit_raft
  SOURCES raft_election_test.cc raft_follower_test.cc raft_input_test.cc raft_leader_test.cc
          raft_log_view_test.cc raft_membership_test.cc raft_parts_test.cc raft_recovery_test.cc
          raft_snapshot_test.cc raft_transfer_test.cc
  DEPS triad_dledger_core LABELS unit)

# The simulated file system, and the crash images of the log store on it.
triad_library(triad_sim_file_system SOURCES file_disk.cc sim_file_system.cc DEPS triad_common)

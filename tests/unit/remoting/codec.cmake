# Codec tests: pure, no socket.
triad_test(unit_remoting
  SOURCES
    bodies_test.cc
    codec_property_test.cc
    frame_test.cc
    golden_capture_test.cc
    golden_frames_test.cc
    headers_test.cc
    http_request_test.cc
    json_test.cc
    plain_send_test.cc
  DEPS triad_remoting_codec ZLIB::ZLIB)
set_source_files_properties(golden_capture_test.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # its Fields

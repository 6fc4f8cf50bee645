# Targets of this project are made by these functions only, so that warnings and include paths are the same everywhere.

add_library(triad_warnings INTERFACE)
target_compile_options(triad_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)

# Asio, for shell .cc files only (never in a header of another folder).
add_library(triad_asio INTERFACE)
target_include_directories(triad_asio SYSTEM INTERFACE ${ASIO_INCLUDE})
# Asio finds aligned_alloc only when a header of libstdc++ came before it: set, or its allocator
# differs from file to file (malloc here, operator delete there).
target_compile_definitions(triad_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED
  ASIO_HAS_STD_ALIGNED_ALLOC=1)
target_link_libraries(triad_asio INTERFACE Threads::Threads)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")  # libstdc++'s coroutines under clang 14
  target_compile_options(triad_asio INTERFACE -D__cpp_impl_coroutine=201902L -Wno-builtin-macro-redefined)
  target_compile_definitions(triad_asio INTERFACE ASIO_HAS_CO_AWAIT=1 ASIO_HAS_STD_COROUTINE=1)
endif()

# triad_library(name SOURCES a.cc ... [DEPS ...] [PRIVATE_DEPS ...])
function(triad_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(${name} PUBLIC ${arg_DEPS} PRIVATE triad_warnings ${arg_PRIVATE_DEPS})
endfunction()

# triad_program(name SOURCES ... DEPS ...): an executable in <build>/bin
function(triad_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE triad_warnings ${arg_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endfunction()

# triad_proto(name file.proto): generated code in a target of its own, without our warnings.
# Include it as "folder/file.pb.h".
function(triad_proto name file)
  get_filename_component(stem ${file} NAME_WE)
  file(RELATIVE_PATH rel ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  get_filename_component(dir ${rel} DIRECTORY)
  set(out ${PROJECT_BINARY_DIR}/${dir}/${stem})
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/${dir})
  add_custom_command(OUTPUT ${out}.pb.cc ${out}.pb.h
    COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR} --cpp_out=${PROJECT_BINARY_DIR} ${rel}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file} VERBATIM)
  add_library(${name} STATIC ${out}.pb.cc ${out}.pb.h)
  target_include_directories(${name} SYSTEM PUBLIC ${PROJECT_BINARY_DIR})
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf)
endfunction()

# triad_test(name SOURCES a_test.cc ... DEPS ... [LABELS ...] [TIMEOUT s]): every TEST becomes a ctest "name.Suite.Case".
# Tests named unit_* carry the label "unit" and are what the target unit_tests builds (.ci/run).
include(GoogleTest)
add_custom_target(unit_tests)
function(triad_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(name MATCHES "^unit_")
    list(APPEND arg_LABELS unit)
    list(REMOVE_DUPLICATES arg_LABELS)
    add_dependencies(unit_tests ${name})
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE triad_warnings ${arg_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  if(name MATCHES "^(unit|e2e)_")  # compiled fast; what is under test keeps the preset's options
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_compile_definitions(${name} PRIVATE TRIAD_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  gtest_discover_tests(${name} TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()

// The driver of a fuzz target where libFuzzer is not: replays files, then tries random changes of
// them.
//
//   fuzz_x [--runs N] [--seconds T] [--seed S] FILE_OR_FOLDER...
//
// At least N changes, and on until T seconds are over. Nobody watches which code they reach, as
// libFuzzer does; they are many and cheap instead.
// A failed CHECK ends the process; the input that caused it is written to crash-<target>.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/input.h"
#include "tests/sim/random.h"

#pragma weak LLVMFuzzerCustomMutator

namespace triad::fuzz {
namespace {

constexpr std::size_t kInputMax = 1u << 16;

sim::Random g_dice(1);
std::string g_name;
std::vector<std::uint8_t> g_running;

__attribute__((noreturn)) void OnCheckFailed() {
  const std::string path = "crash-" + g_name;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(g_running.data()),
             static_cast<std::streamsize>(g_running.size()));
  std::cerr << "the input is in " << path << "\n";
  std::abort();
}

void RunOne(std::vector<std::uint8_t> input) {
  g_running = std::move(input);
  LLVMFuzzerTestOneInput(g_running.data(), g_running.size());
}

std::vector<std::uint8_t> Changed(std::vector<std::uint8_t> input) {
  const std::size_t size = input.size();
  input.resize(std::max(kInputMax, size));
  const auto seed = static_cast<unsigned int>(g_dice.Next());
  const std::size_t changed = LLVMFuzzerCustomMutator != nullptr
                                  ? LLVMFuzzerCustomMutator(input.data(), size, input.size(), seed)
                                  : LLVMFuzzerMutate(input.data(), size, input.size());
  input.resize(changed);
  return input;
}

std::vector<std::filesystem::path> FilesOf(const std::vector<std::string>& arguments) {
  std::vector<std::filesystem::path> files;
  for (const std::string& argument : arguments) {
    if (!std::filesystem::is_directory(argument)) {
      files.emplace_back(argument);
      continue;
    }
    for (const auto& file : std::filesystem::directory_iterator(argument)) {
      files.push_back(file.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

int Main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_FATAL;
  google::InitGoogleLogging(argv[0]);
  google::InstallFailureFunction(&OnCheckFailed);
  g_name = std::filesystem::path(argv[0]).filename();
  const auto begun_at = std::chrono::steady_clock::now();
  std::uint64_t runs = 0;
  std::uint64_t seconds = 0;
  auto seed = static_cast<std::uint64_t>(begun_at.time_since_epoch().count());
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--runs" && i + 1 < argc) {
      runs = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument == "--seconds" && i + 1 < argc) {
      seconds = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument == "--seed" && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      arguments.push_back(argument);
    }
  }
  std::vector<std::vector<std::uint8_t>> corpus = {{}};
  for (const auto& path : FilesOf(arguments)) {
    std::ifstream in(path, std::ios::binary);
    CHECK(in.good()) << "cannot read " << path;
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    RunOne(corpus.back());
  }
  std::cout << g_name << ": " << corpus.size() - 1 << " inputs, --seed " << seed << "\n"
            << std::flush;
  g_dice = sim::Random(seed);
  const auto end = begun_at + std::chrono::seconds(seconds);
  std::uint64_t done = 0;
  for (; done < runs || std::chrono::steady_clock::now() < end; ++done) {
    RunOne(Changed(corpus[g_dice.Below(corpus.size())]));
  }
  std::cout << done << " changes of them in "
            << std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_at).count()
            << " s, nothing found\n";
  return corpus.size() > 1 ? 0 : 1;
}

}  // namespace

// A few of the usual changes: bits, bytes, cuts, copies, numbers at the edges.
std::size_t MutateOnce(std::uint8_t* data, std::size_t size, std::size_t max_size) {
  if (size == 0) {
    data[0] = static_cast<std::uint8_t>(g_dice.Next());
    return 1;
  }
  const std::size_t at = g_dice.Below(size);
  const std::size_t span = std::min<std::size_t>(size - at, 1 + g_dice.Below(32));
  switch (g_dice.Below(6)) {
    case 0: data[at] = static_cast<std::uint8_t>(data[at] ^ (1u << g_dice.Below(8))); return size;
    case 1: data[at] = static_cast<std::uint8_t>(g_dice.Next()); return size;
    case 2:  // cut a piece out
      std::copy(data + at + span, data + size, data + at);
      return size - span;
    case 3:  // say a piece twice
      if (size + span > max_size) return size;
      std::copy_backward(data + at, data + size, data + size + span);
      return size + span;
    case 4: {
      constexpr std::uint8_t kEdges[] = {0, 1, 0x7f, 0x80, 0xff};
      std::fill_n(data + at, std::min<std::size_t>(span, 4), kEdges[g_dice.Below(5)]);
      return size;
    }
    default: {  // put a piece elsewhere
      const std::size_t to = g_dice.Below(size - span + 1);
      const std::vector<std::uint8_t> piece(data + at, data + at + span);
      std::copy(piece.begin(), piece.end(), data + to);
      return size;
    }
  }
}

}  // namespace triad::fuzz

std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size) {
  for (std::uint64_t i = 1 + triad::fuzz::g_dice.Below(4); i > 0; --i) {
    size = triad::fuzz::MutateOnce(data, size, max_size);
  }
  return size;
}

int main(int argc, char** argv) {
  return triad::fuzz::Main(argc, argv);
}

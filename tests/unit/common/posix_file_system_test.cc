#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/file_system.h"
#include "common/zeroed_file.h"

namespace triad {
namespace {

class PosixFileSystemTest : public testing::Test {
 protected:
  PosixFileSystemTest() {
    std::string name = testing::TempDir() + "/triad_fs_XXXXXX";
    dir_ = mkdtemp(name.data());
  }
  ~PosixFileSystemTest() override { std::filesystem::remove_all(dir_); }

  std::string Path(const std::string& name) const { return dir_ + "/" + name; }
  std::unique_ptr<File> Create(const std::string& name) {
    return fs_.Open(Path(name), OpenFlags{.create = true}).value();
  }

  FileSystem& fs_ = PosixFileSystem();
  std::string dir_;
};

TEST_F(PosixFileSystemTest, WritesAllPartsBackToBackAlsoBeyondOneVectorWrite) {
  const std::unique_ptr<File> file = Create("a");
  std::vector<std::string> texts;
  std::string whole = "head";
  for (int i = 0; i < 1000; ++i) {
    texts.push_back(i % 7 == 0 ? std::string() : std::to_string(i) + ",");
    whole += texts.back();
  }
  const std::vector<std::string_view> parts(texts.begin(), texts.end());
  ASSERT_TRUE(file->Write(0, "head").ok());
  ASSERT_TRUE(file->Write(4, parts).ok());
  EXPECT_EQ(ReadFile(fs_, Path("a")).value(), whole);
}

TEST_F(PosixFileSystemTest, WritingNothingIsNoError) {
  const std::unique_ptr<File> file = Create("a");
  EXPECT_TRUE(file->Write(0, std::string_view()).ok());
  EXPECT_TRUE(file->Write(0, std::span<const std::string_view>()).ok());
  EXPECT_EQ(file->Size().value(), 0u);
}

// Past the page cache, where what was written through it may still stand alone.
TEST_F(PosixFileSystemTest, UncachedZerosReplaceTheirRangeOnly) {
  const std::unique_ptr<File> file = Create("f");
  const std::string old(6 * kZeroAlign, 'x');
  ASSERT_TRUE(file->Write(0, old).ok());
  auto* const zeroed = dynamic_cast<ZeroedFile*>(file.get());
  ASSERT_NE(zeroed, nullptr);
  const Status written = zeroed->WriteZerosUncached(2 * kZeroAlign, 3 * kZeroAlign);
  std::string want = old;
  if (written.ok()) want.replace(2 * kZeroAlign, 3 * kZeroAlign, 3 * kZeroAlign, '\0');
  EXPECT_TRUE(written.ok() || written.code() == StatusCode::kUnsupported) << written;
  EXPECT_TRUE(ReadFile(fs_, Path("f")).value() == want);
}

TEST_F(PosixFileSystemTest, UncachedZerosMakeTheFileLonger) {
  const std::unique_ptr<File> file = Create("f");
  const std::uint64_t large = 3u << 20;
  const Status written = dynamic_cast<ZeroedFile&>(*file).WriteZerosUncached(kZeroAlign, large);
  if (written.code() == StatusCode::kUnsupported) return;  // not on this file system
  ASSERT_TRUE(written.ok()) << written;
  EXPECT_TRUE(ReadFile(fs_, Path("f")).value() == std::string(kZeroAlign + large, '\0'));
}

// A disk with larger blocks refuses what is not whole ones in the same way.
TEST_F(PosixFileSystemTest, WhatCannotPassByTheCacheIsLeftToWrite) {
  const std::unique_ptr<File> file = Create("f");
  auto& zeroed = dynamic_cast<ZeroedFile&>(*file);
  EXPECT_EQ(zeroed.WriteZerosUncached(1, kZeroAlign).code(), StatusCode::kUnsupported);
  EXPECT_EQ(zeroed.WriteZerosUncached(0, kZeroAlign).code(), StatusCode::kUnsupported)
      << "and it is not tried again";
  EXPECT_TRUE(file->Write(0, "still written").ok());
}

TEST_F(PosixFileSystemTest, ReadStopsAtTheEndOfTheFile) {
  const std::unique_ptr<File> file = Create("a");
  ASSERT_TRUE(file->Write(0, "0123456789").ok());
  std::string buffer(8, '.');
  EXPECT_EQ(file->Read(6, buffer).value(), 4u);
  EXPECT_EQ(buffer, "6789....");
  EXPECT_EQ(file->Read(10, buffer).value(), 0u);
}

TEST_F(PosixFileSystemTest, TruncateSetsTheSize) {
  const std::unique_ptr<File> file = Create("a");
  ASSERT_TRUE(file->Write(0, "0123456789").ok());
  ASSERT_TRUE(file->Truncate(3).ok());
  EXPECT_EQ(file->Size().value(), 3u);
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(file->SyncAll().ok());
}

TEST_F(PosixFileSystemTest, OpeningAMissingFileIsNotFoundAndNamesIt) {
  const auto result = fs_.Open(Path("missing"), OpenFlags{});
  ASSERT_EQ(result.status().code(), StatusCode::kNotFound);
  EXPECT_NE(result.status().message().find(Path("missing")), std::string::npos);
}

TEST_F(PosixFileSystemTest, ExclusiveCreationRefusesAnExistingFile) {
  Create("a");
  const auto result = fs_.Open(Path("a"), OpenFlags{.create = true, .exclusive = true});
  EXPECT_EQ(result.status().code(), StatusCode::kAlreadyExists);
}

TEST_F(PosixFileSystemTest, AReadOnlyFileCannotBeWritten) {
  Create("a");
  const auto file = fs_.Open(Path("a"), OpenFlags{.read_only = true});
  EXPECT_EQ(file.value()->Write(0, "x").code(), StatusCode::kIoError);
}

TEST_F(PosixFileSystemTest, AFullDeviceIsNoSpace) {
  const auto file = fs_.Open("/dev/full", OpenFlags{});
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->Write(0, "x").code(), StatusCode::kNoSpace);
}

TEST_F(PosixFileSystemTest, ALockIsExclusiveAndDiesWithItsHandle) {
  std::unique_ptr<File> first = Create("lock");
  const std::unique_ptr<File> second = Create("lock");
  ASSERT_TRUE(first->Lock().ok());
  EXPECT_EQ(second->Lock().code(), StatusCode::kPermissionDenied);
  first.reset();
  EXPECT_TRUE(second->Lock().ok());
}

TEST_F(PosixFileSystemTest, ListsSortedWithSizesAndKinds) {
  ASSERT_TRUE(fs_.CreateDirs(Path("d/deep/er")).ok());
  ASSERT_TRUE(Create("d/b")->Write(0, "xyz").ok());
  Create("d/a");
  const auto entries = fs_.List(Path("d")).value();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[1].name, "b");
  EXPECT_EQ(entries[1].size_bytes, 3u);
  EXPECT_FALSE(entries[1].is_directory);
  EXPECT_EQ(entries[2].name, "deep");
  EXPECT_TRUE(entries[2].is_directory);
  EXPECT_EQ(fs_.List(Path("none")).status().code(), StatusCode::kNotFound);
}

TEST_F(PosixFileSystemTest, RenamesAndRemoves) {
  Create("a");
  ASSERT_TRUE(fs_.Rename(Path("a"), Path("b")).ok());
  EXPECT_FALSE(fs_.Exists(Path("a")));
  EXPECT_TRUE(fs_.Exists(Path("b")));
  ASSERT_TRUE(fs_.SyncDir(dir_).ok());
  ASSERT_TRUE(fs_.Remove(Path("b")).ok());
  EXPECT_EQ(fs_.Remove(Path("b")).code(), StatusCode::kNotFound);
}

TEST_F(PosixFileSystemTest, SpaceIsKnownAndAvailableIsAPartOfTotal) {
  const Space space = fs_.GetSpace(dir_).value();
  EXPECT_GT(space.available_bytes, 0u);
  EXPECT_GE(space.total_bytes, space.available_bytes);
}

TEST_F(PosixFileSystemTest, AtomicWriteReplacesAndLeavesNoTemporaryFile) {
  ASSERT_TRUE(WriteFileAtomically(fs_, Path("kv"), "a long first content").ok());
  ASSERT_TRUE(WriteFileAtomically(fs_, Path("kv"), "second").ok());
  EXPECT_EQ(ReadFile(fs_, Path("kv")).value(), "second");
  EXPECT_EQ(fs_.List(dir_).value().size(), 1u);
}

TEST_F(PosixFileSystemTest, AFailedAtomicWriteKeepsTheOldContent) {
  ASSERT_TRUE(WriteFileAtomically(fs_, Path("kv"), "old").ok());
  // The temporary name is taken by a directory, so the new content cannot be written.
  ASSERT_TRUE(fs_.CreateDirs(Path("kv.tmp")).ok());
  EXPECT_FALSE(WriteFileAtomically(fs_, Path("kv"), "new").ok());
  EXPECT_EQ(ReadFile(fs_, Path("kv")).value(), "old");
}

TEST_F(PosixFileSystemTest, ReadsAFileWhoseSizeIsReportedAsZero) {
  EXPECT_NE(ReadFile(fs_, "/proc/self/status").value().find("VmSize"), std::string::npos);
}

}  // namespace
}  // namespace triad

#include "common/file_system.h"

namespace triad {
namespace {

std::string DirectoryOf(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<std::string> ReadFile(FileSystem& fs, const std::string& path) {
  Result<std::unique_ptr<File>> file = fs.Open(path, OpenFlags{.read_only = true});
  if (!file.ok()) return file.status();
  const Result<std::uint64_t> size = (*file)->Size();
  if (!size.ok()) return size.status();
  // One byte more than the size shows a file that grows (or a pseudo file of size 0).
  std::string content(static_cast<std::size_t>(*size) + 1, '\0');
  std::size_t used = 0;
  while (true) {
    const Result<std::size_t> n =
        (*file)->Read(used, std::span<char>(content.data() + used, content.size() - used));
    if (!n.ok()) return n.status();
    used += *n;
    if (used < content.size()) break;
    content.resize(content.size() * 2);
  }
  content.resize(used);
  return content;
}

Status WriteFileAtomically(FileSystem& fs, const std::string& path, std::string_view content) {
  const std::string temporary = path + ".tmp";
  {
    Result<std::unique_ptr<File>> file =
        fs.Open(temporary, OpenFlags{.create = true, .truncate = true});
    if (!file.ok()) return file.status();
    TRIAD_RETURN_IF_ERROR((*file)->Write(0, content));
    TRIAD_RETURN_IF_ERROR((*file)->SyncAll());
  }
  TRIAD_RETURN_IF_ERROR(fs.Rename(temporary, path));
  return fs.SyncDir(DirectoryOf(path));
}

}  // namespace triad

#include "segment/segment_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/owned_fd.h"
#include "base/text.h"
#include "segment/guarded_copy.h"
#include "trusted_file.h"

namespace persia::agent {
namespace {

namespace segment = persia::metrics::segment;
using segment::Header;

// The part that is written once, before the file has a name.
constexpr size_t kFixedBytes = offsetof(Header, descriptors_used);
static_assert(kFixedBytes % sizeof(uint64_t) == 0);

// As of errno.
SegmentProblem AccessProblem(const char* what) {
  const bool lacks_descriptors = errno == EMFILE || errno == ENFILE;
  const bool is_shortage = lacks_descriptors || errno == ENOMEM;
  std::string text = SystemError(what).message + (lacks_descriptors ? "; raise the limit on open files" : "");
  return {.reason = "access", .text = std::move(text), .is_shortage = is_shortage};
}

// A region of the file. Regions must lie within the limit and must not overlap.
struct Region {
  const char* name;
  uint64_t offset;
  uint64_t bytes;
};

// Whether `count` items of `each` bytes from `offset` on end within `limit`.
bool Within(uint64_t offset, uint64_t count, uint64_t each, uint64_t limit) {
  return offset <= limit && count <= (limit - offset) / each;
}

std::optional<SegmentProblem> CheckRegions(const Header& header) {
  const uint64_t limit = header.max_bytes;
  const std::array<std::pair<Region, uint64_t>, 4> given = {{
      {{"descriptors", header.descriptors_offset, header.descriptors_capacity}, 1},
      {{"directory", header.directory_offset, header.directory_capacity}, sizeof(segment::ChunkEntry)},
      {{"event ring", header.ring_offset, header.ring_slots}, segment::kEventSlotBytes},
      {{"chunks", header.chunks_offset, 0}, segment::kChunkBytes},
  }};
  std::vector<Region> regions = {{"header", 0, header.header_bytes}};
  for (const auto& [region, each] : given) {
    if (region.offset % sizeof(uint64_t) != 0 || !Within(region.offset, region.bytes, each, limit)) {
      return SegmentProblem{"corrupt", std::string("the header places the ") + region.name + " at byte " +
                                           std::to_string(region.offset) + " with a size of " + std::to_string(region.bytes) +
                                           " times " + std::to_string(each) + ", which does not fit into its limit of " +
                                           std::to_string(limit) + " bytes"};
    }
    regions.push_back({region.name, region.offset, region.bytes * each});
  }
  regions.back().bytes = limit - regions.back().offset;  // chunks take what is left
  std::sort(regions.begin(), regions.end(), [](const Region& a, const Region& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);  // an empty one before one with the same offset
  });
  for (size_t i = 1; i < regions.size(); ++i) {
    if (regions[i].offset - regions[i - 1].offset < regions[i - 1].bytes) {
      return SegmentProblem{"corrupt", std::string("the header places ") + regions[i].name + " inside " + regions[i - 1].name +
                                           ", at byte " + std::to_string(regions[i].offset)};
    }
  }
  return std::nullopt;
}

std::optional<SegmentProblem> CheckHeader(const Header& header, uint64_t file_bytes, const SegmentAccess& access) {
  if (std::memcmp(header.magic, segment::kMagic, sizeof header.magic) != 0)
    return SegmentProblem{"magic", "it is not a segment: it starts with " + Quoted({header.magic, sizeof header.magic})};
  if (header.major != segment::kMajor) {
    return SegmentProblem{"version", "it has version " + std::to_string(header.major) + "." + std::to_string(header.minor) +
                                         ", this agent reads version " + std::to_string(segment::kMajor) +
                                         "; use an agent that is at least as new as the library"};
  }
  if (header.header_bytes < sizeof(Header) || header.header_bytes > segment::kPageBytes) {
    return SegmentProblem{"corrupt", "its header gives its own size as " + std::to_string(header.header_bytes) +
                                         " bytes, not " + std::to_string(sizeof(Header)) + " to " +
                                         std::to_string(segment::kPageBytes)};
  }
  if (header.max_bytes > access.max_bytes) {
    return SegmentProblem{"size", "its header allows up to " + std::to_string(header.max_bytes) + " bytes, the limit is " +
                                      std::to_string(access.max_bytes) + "; raise max_segment_bytes"};
  }
  if (header.max_bytes < segment::kPageBytes || file_bytes > header.max_bytes) {
    return SegmentProblem{"corrupt", "its header allows " + std::to_string(header.max_bytes) + " bytes, the file has " +
                                         std::to_string(file_bytes)};
  }
  return CheckRegions(header);
}

}  // namespace

bool LeavesDescriptors(int fd) {
  constexpr rlim_t kOwn = 64;
  struct rlimit limit {};
  return getrlimit(RLIMIT_NOFILE, &limit) != 0 || static_cast<rlim_t>(fd) < limit.rlim_cur - std::min(kOwn, limit.rlim_cur / 4);
}

std::unique_ptr<SegmentFile> SegmentFile::Open(int directory_fd, const char* name, const SegmentAccess& access,
                                               SegmentProblem& problem) {
  OwnedFd fd(openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.valid() && LeavesDescriptors(fd.get())) return FromDescriptor(fd.Release(), access, problem);
  if (fd.valid()) errno = EMFILE;
  problem =
      errno == ELOOP ? SegmentProblem{"type", "it is a symbolic link, which is not followed"} : AccessProblem("cannot open it");
  return nullptr;
}

std::unique_ptr<SegmentFile> SegmentFile::FromDescriptor(int fd, const SegmentAccess& access, SegmentProblem& problem) {
  const auto refuse = [&](SegmentProblem why) {
    close(fd);
    problem = std::move(why);
    return nullptr;
  };
  struct stat info {};
  if (fstat(fd, &info) != 0) return refuse(AccessProblem("cannot stat it"));
  const std::string distrust =
      metrics::DistrustOf(info, {.owner = access.owner, .group = access.group, .may_have_names = true});
  if (!distrust.empty() && !S_ISREG(info.st_mode)) return refuse({"type", "it " + distrust});
  if (!distrust.empty()) {
    return refuse({"owner", "it " + distrust + ", this agent runs as user " + std::to_string(access.owner) +
                                "; run both as one user, or share the directory by a group (metrics_dir_group)"});
  }
  HeaderCopy header;
  const ssize_t got = pread(fd, header.bytes().data(), sizeof(Header), 0);
  if (got < 0) return refuse(AccessProblem("cannot read it"));
  if (static_cast<size_t>(got) < sizeof(Header))
    return refuse({"corrupt", "it ends after " + std::to_string(got) + " bytes, within its header"});
  if (auto found = CheckHeader(*header, static_cast<uint64_t>(info.st_size), access)) {
    if (found->reason != "magic") found->segment_id = header.Id();
    return refuse(*std::move(found));
  }
  std::unique_ptr<SegmentFile> file(new SegmentFile(fd, header));
  if (info.st_uid != access.owner) file->foreign_owner_ = info.st_uid;
  struct statfs filesystem {};
  file->in_memory_ = fstatfs(fd, &filesystem) == 0 && filesystem.f_type == TMPFS_MAGIC;
  if (!file->Map()) {
    problem = AccessProblem("cannot map it");
    problem.segment_id = header.Id();
    return nullptr;
  }
  return file;
}

std::string HeaderCopy::Id() const {
  return HexEncode({reinterpret_cast<const char*>((*this)->segment_id), sizeof(*this)->segment_id});
}

void HeaderCopy::ForgetProcess() { reinterpret_cast<Header*>(bytes_.data())->pid_namespace = 0; }

std::unique_ptr<SegmentFile> SegmentFile::FromMemory(std::shared_ptr<const std::string> bytes,
                                                     std::function<bool()> writer_lives, const SegmentAccess& access,
                                                     SegmentProblem& problem) {
  HeaderCopy header;
  std::memcpy(header.bytes().data(), bytes->data(), std::min(bytes->size(), sizeof(Header)));
  if (auto found = CheckHeader(*header, bytes->size(), access)) {
    problem = *std::move(found);
    problem.segment_id = header.Id();
    return nullptr;
  }
  std::unique_ptr<SegmentFile> file(new SegmentFile(-1, header));
  file->base_ = reinterpret_cast<const std::byte*>(bytes->data());
  file->mapped_bytes_ = bytes->size() / sizeof(uint64_t) * sizeof(uint64_t);
  file->memory_ = std::move(bytes);
  file->writer_lives_ = std::move(writer_lives);
  return file;
}

SegmentFile::SegmentFile(int fd, const HeaderCopy& header) : fd_(fd), header_(header) {}

bool SegmentFile::Map() {
  // The map covers max_bytes, beyond the file's end, so that the file can grow without a new map.
  void* base = mmap(nullptr, header_->max_bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd_, 0);
  if (base == MAP_FAILED) return false;
  base_ = static_cast<const std::byte*>(base);
  mapped_bytes_ = header_->max_bytes / sizeof(uint64_t) * sizeof(uint64_t);
  return true;
}

SegmentFile::~SegmentFile() {
  if (fd_ < 0) return;
  if (base_ != nullptr) munmap(const_cast<std::byte*>(base_), header_->max_bytes);
  close(fd_);
}

bool SegmentFile::WriterLives() const {
  if (fd_ < 0) return writer_lives_();
  // The writer holds a write lock on the whole file by its open file description, which its map keeps until the process ends.
  struct flock lock {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  return fcntl(fd_, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool SegmentFile::Copy(uint64_t offset, std::span<uint64_t> to) const {
  return Within(offset, to.size(), sizeof(uint64_t), mapped_bytes_) && GuardedCopy(base_ + offset, to);
}

bool SegmentFile::CopyInOrder(uint64_t offset, std::span<uint64_t> to) const {
  return Within(offset, to.size(), sizeof(uint64_t), mapped_bytes_) && GuardedCopyInOrder(base_ + offset, to);
}

bool SegmentFile::HoldsPages(uint64_t bytes) const {
  constexpr uint64_t kStatBlock = 512;
  struct stat info {};
  return !in_memory_ || (fstat(fd_, &info) == 0 && static_cast<uint64_t>(info.st_blocks) * kStatBlock >= bytes);
}

bool SegmentFile::HeaderUnchanged() const {
  std::array<uint64_t, kFixedBytes / sizeof(uint64_t)> now;
  return Copy(0, now) && std::memcmp(now.data(), &*header_, kFixedBytes) == 0;
}

}  // namespace persia::agent

#include "file_worker.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <stdexcept>

#include "files/durable_file.h"
#include "segment/segment_builder.h"

namespace persia::agent::model {
namespace {

constexpr char kAnyRun[] = "0123456789abcdef";  // in the images; as long as the id of each run

struct FileImage {
  std::string bytes;
  size_t run_at = 0;
  uint64_t count_at = 0;
};

FileImage MakeImage(int32_t replica) {
  const testing::SegmentPlaces places{.descriptors_offset = 1024,
                                      .descriptors_capacity = 1024,
                                      .directory_offset = 2048,
                                      .directory_capacity = 16,
                                      .chunks_offset = 4096};
  testing::SegmentBuilder segment(places);
  segment.Identity({.run_id = kAnyRun, .role = "worker", .replica = replica});
  const uint32_t slot = segment.Counter("my_app", "batches", {}, 0);
  return {.bytes = segment.image(),
          .run_at = segment.image().find(kAnyRun),
          // The chunks of the common lane follow each other, from range 1 on.
          .count_at = places.chunks_offset + (slot - testing::segment::kCellsPerChunk) * sizeof(uint64_t)};
}

const FileImage& ImageOf(uint32_t replica) {
  static const std::array<FileImage, 2> images = {MakeImage(0), MakeImage(1)};
  return images.at(replica);
}

}  // namespace

FileWorker::FileWorker(const std::string& directory, uint64_t number, const std::string& run_id, uint32_t replica)
    : number_(number), count_at_(ImageOf(replica).count_at) {
  std::string bytes = ImageOf(replica).bytes;
  bytes.replace(ImageOf(replica).run_at, run_id.size(), run_id);
  auto& header = *reinterpret_cast<testing::segment::Header*>(bytes.data());
  const uint64_t id = number + 1;
  std::memcpy(header.segment_id, &id, sizeof id);
  header.pid = static_cast<uint32_t>(id);
  header.birth_unix_ns = id;
  const std::string path = directory + "/" + std::to_string(number) + ".seg";
  segment_ = OwnedFd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(segment_.get(), F_OFD_SETLK, &lock) != 0 || !WriteAll(segment_.get(), bytes)) {
    throw std::runtime_error("cannot write " + path);
  }
}

void FileWorker::SetCount(uint64_t count) const {
  if (pwrite(segment_.get(), &count, sizeof count, static_cast<off_t>(count_at_)) != sizeof count) {
    throw std::runtime_error("a worker cannot count");
  }
}

}  // namespace persia::agent::model

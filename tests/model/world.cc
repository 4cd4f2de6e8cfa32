#include "world.h"

#include <cstring>

#include "base/encoding.h"

namespace persia::agent::model {
namespace {

using testing::MemoryJournalFile;
using testing::SegmentBuilder;

// The offset of the counter's cell in a segment.
constexpr uint64_t kCell = testing::SegmentPlaces{}.chunks_offset;

std::string NewSegment(bool large, const std::string& run_id) {
  SegmentBuilder segment({.max_bytes = large ? kLargeSegment : kSmallSegment});
  segment.Identity({.run_id = run_id, .role = "worker"});
  segment.Counter("my_app", "batches", {}, 0);
  return segment.image();
}

}  // namespace

void Process::Count(uint64_t by) {
  counted += by;
  std::memcpy(bytes->data() + kCell, &counted, sizeof counted);
}

Process& World::Start(bool large, const std::string& run_id) {
  const auto [kind, added] = kinds_.try_emplace({large, run_id});
  if (added) kind->second = NewSegment(large, run_id);
  Process process;
  const uint64_t number = processes.size() + 1;
  process.bytes = std::make_shared<std::string>(kind->second);
  auto& header = *reinterpret_cast<testing::segment::Header*>(process.bytes->data());
  std::memcpy(header.segment_id, &number, sizeof number);
  header.pid = static_cast<uint32_t>(number);
  header.birth_unix_ns = number;
  process.name = std::to_string(number) + "-" + HexEncode({reinterpret_cast<const char*>(&number), sizeof number}) + ".seg";
  process.file.inode = number;
  processes.push_back(std::move(process));
  return processes.back();
}

Process* World::Find(const std::string& name) {
  Process& process = processes.at(std::stoul(name) - 1);  // a name begins with the process's number
  return process.name == name && process.in_directory ? &process : nullptr;
}

SegmentDirectory::Listing ModelDirectory::List() {
  world_.Operation();
  Listing listing;
  listing.complete = !world_.no_descriptors;
  if (world_.no_descriptors) {
    listing.error = "no descriptors";
    return listing;
  }
  for (const Process& process : world_.processes) {
    if (process.in_directory) listing.files.push_back({process.name, process.file});
  }
  return listing;
}

std::unique_ptr<SegmentReader> ModelDirectory::Open(const std::string& name, const SegmentAccess& access,
                                                    SegmentProblem& problem) {
  world_.Operation();
  const Process* process = world_.Find(name);
  if (process == nullptr || process->broken || world_.no_descriptors_in_open) {
    problem = {"access", "it cannot be opened"};
    return nullptr;
  }
  const auto writer_lives = [&world = world_, alive = process->alive] {
    world.Operation();
    return *alive;
  };
  return SegmentReader::FromFile(SegmentFile::FromMemory(process->bytes, writer_lives, access, problem));
}

SegmentDirectory::Removal ModelDirectory::Remove(const std::string& name, const FileId& file) {
  world_.Operation();
  Process* process = world_.Find(name);
  if (process != nullptr && process->file.SameInode(file)) {
    process->in_directory = false;
    process->removed = true;
    return Removal::kRemoved;
  }
  return Removal::kGone;
}

std::shared_ptr<JournalFile> StateOf(World& world) {
  return std::make_shared<MemoryJournalFile>(world.disk, [&world](MemoryJournalFile::Operation operation, size_t bytes) {
    world.Operation();
    const bool writes =
        operation == MemoryJournalFile::Operation::kAppend || operation == MemoryJournalFile::Operation::kReplace;
    return writes && world.disk_full                                                    ? bytes / 2
           : operation == MemoryJournalFile::Operation::kRead && world.state_unreadable ? 0
                                                                                        : bytes;
  });
}

}  // namespace persia::agent::model

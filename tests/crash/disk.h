// A disk whose power may be cut after any operation: the states in which it may leave the files.
//
//   Disk disk;
//   for (size_t i = 0; i < operations.size(); ++i) {
//     disk.Apply(i, operations[i]);
//     disk.ForEachState(limit, random, [&](const Image& image) { ... });
//   }
//
// What a cut leaves, by POSIX:
//
// - What was done to a file or directory before its last fsync or fdatasync is on disk.
// - Of a directory's later changes, any are on disk. Each rename is atomic. A new file's name is on disk only by fsync of its
//   directory; the file's content only by fsync of the file.
// - Of a file's later content, any pages are on disk. The size may be: then missing pages are zero, or have their old content.
//   A page may be torn between sectors. If the size is not on disk, what lies behind it is cut off.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "recording.h"

namespace persia::agent::crash {

using Random = std::mt19937_64;

struct Content {
  explicit Content(std::string content) : bytes(std::move(content)), hash(std::hash<std::string>()(bytes)) {}

  const std::string bytes;
  const size_t hash;
};

// The files after a cut, by their paths below directory 0.
struct Image {
  struct File {
    uint32_t number = 0;
    std::shared_ptr<const Content> content;
  };
  std::map<std::string, File> files;
  std::set<std::string> directories;
  std::string choices;  // which state this is, for messages
  bool all = false;     // everything is on disk, as if only the agent had been killed
  [[nodiscard]] size_t Hash() const;
};

class Disk {
 public:
  void Apply(size_t number, const Operation& operation);
  // At most `limit` states: all, if there are no more; else the extreme ones and random others. The first has everything.
  void ForEachState(size_t limit, Random& random, const std::function<void(const Image& image)>& each);
  // The file's content, if nothing was lost.
  [[nodiscard]] const std::string& Written(uint32_t file) const { return objects_.at(file).written; }

 private:
  using Entries = std::map<std::string, uint32_t>;
  struct Pending {
    size_t number;
    const Operation* operation;  // lives longer
  };
  struct Choice {
    std::string what = {};
    Entries entries = {};
    std::shared_ptr<const Content> content = {};
  };
  struct Object {
    bool is_directory = false;
    std::string name = {};   // the last one, for messages
    Entries entries = {};    // on disk
    std::string bytes = {};  // on disk
    std::string written = {};
    std::shared_ptr<const Content> content = {};  // of `bytes`; null: not made yet
    std::vector<Pending> pending = {};
    std::vector<Choice> choices = {};  // for what is pending; empty: not made yet
  };

  static void Change(Entries& entries, const Operation& operation);
  static void Change(std::string& bytes, const Operation& operation);
  static std::vector<Choice> DirectoryChoices(const Object& directory, Random& random);
  static std::vector<Choice> FileChoices(const Object& file, Random& random);
  static void Settle(Object& object, size_t before);
  void Walk(uint32_t directory, const std::string& path, const std::map<uint32_t, const Choice*>& chosen, Image& image);

  uint32_t last_changed_ = 0;
  std::map<uint32_t, Object> objects_ = {{0, Object{.is_directory = true, .name = "the root"}}};
};

}  // namespace persia::agent::crash

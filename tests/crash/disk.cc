#include "disk.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

namespace persia::agent::crash {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kSector = 512;
// Of one object, at each operation.
constexpr size_t kMaxSubsets = 16;

size_t Below(Random& random, size_t limit) { return random() % limit; }

}  // namespace

size_t Image::Hash() const {
  size_t hash = directories.size();
  const auto add = [&hash](size_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15 + (hash >> 29); };
  for (const std::string& path : directories) add(std::hash<std::string>()(path));
  for (const auto& [path, file] : files) {
    add(std::hash<std::string>()(path));
    add(file.content->hash);
  }
  return hash;
}

void Disk::Change(Entries& entries, const Operation& operation) {
  switch (operation.what) {
    case Do::kMkdir:
    case Do::kLink:
      entries[operation.name] = static_cast<uint32_t>(operation.number);
      break;
    case Do::kUnlink:
      entries.erase(operation.name);
      break;
    default: {  // a rename carries the number of the file
      const auto file = static_cast<uint32_t>(operation.number);
      if (const auto from = entries.find(operation.name); from != entries.end() && from->second == file) entries.erase(from);
      entries[operation.data] = file;
    }
  }
}

void Disk::Change(std::string& bytes, const Operation& operation) {
  if (operation.what == Do::kTruncate) {
    bytes.resize(operation.number);
    return;
  }
  const size_t end = operation.number + operation.data.size();
  if (bytes.size() < end) bytes.resize(end);
  bytes.replace(operation.number, operation.data.size(), operation.data);
}

void Disk::Apply(size_t number, const Operation& operation) {
  switch (operation.what) {
    case Do::kMkdir:
      objects_[static_cast<uint32_t>(operation.number)] = {.is_directory = true, .name = operation.name};
      break;
    case Do::kLink:
      objects_[static_cast<uint32_t>(operation.number)] = {.name = operation.name};
      break;
    case Do::kSegment: {
      Object& file = objects_[static_cast<uint32_t>(operation.number)];
      file.name = operation.name;
      file.bytes = file.written = operation.data;
      file.content = std::make_shared<const Content>(operation.data);
      Object& directory = objects_.at(operation.object);
      directory.entries[operation.name] = static_cast<uint32_t>(operation.number);
      directory.choices.clear();
      return;
    }
    case Do::kRename:
      objects_.at(static_cast<uint32_t>(operation.number)).name = operation.data;
      break;
    case Do::kUnlink:
    case Do::kWrite:
    case Do::kTruncate:
      break;
    case Do::kDamaged: {
      Object& file = objects_.at(operation.object);
      file = {.name = file.name, .bytes = operation.data, .written = operation.data};
      return;
    }
    case Do::kSync:
      Settle(objects_.at(operation.object), operation.number);
      return;
    default:
      return;
  }
  Object& object = objects_.at(operation.object);
  object.pending.push_back({number, &operation});
  object.choices.clear();
  last_changed_ = operation.object;
  if (!object.is_directory) Change(object.written, operation);
}

void Disk::Settle(Object& object, size_t before) {
  const auto end = std::ranges::find_if(object.pending, [&](const Pending& pending) { return pending.number >= before; });
  for (auto pending = object.pending.begin(); pending != end; ++pending) {
    object.is_directory ? Change(object.entries, *pending->operation) : Change(object.bytes, *pending->operation);
  }
  object.pending.erase(object.pending.begin(), end);
  object.content.reset();
  object.choices.clear();
}

std::vector<Disk::Choice> Disk::DirectoryChoices(const Object& directory, Random& random) {
  const size_t count = directory.pending.size();
  std::vector<Choice> choices;
  const auto add = [&](const std::vector<bool>& kept) {
    Choice choice{.entries = directory.entries};
    for (size_t i = 0; i < count; ++i) {
      if (kept[i]) {
        Change(choice.entries, *directory.pending[i].operation);
      } else {
        choice.what += " -" + std::to_string(directory.pending[i].number);
      }
    }
    if (!choice.what.empty()) choice.what = directory.name + " without" + choice.what;
    choices.push_back(std::move(choice));
  };
  add(std::vector<bool>(count, true));
  add(std::vector<bool>(count, false));
  if (count <= 4) {  // all subsets
    for (size_t subset = 1; subset + 1 < (size_t{1} << count); ++subset) {
      std::vector<bool> kept(count);
      for (size_t i = 0; i < count; ++i) kept[i] = (subset >> i & 1) != 0;
      add(kept);
    }
    return choices;
  }
  for (size_t i = count - 4; i < count; ++i) {  // each of the last is lost, or the only one
    std::vector<bool> kept(count, true);
    kept[i] = false;
    add(kept);
    kept.flip();
    add(kept);
  }
  while (choices.size() < kMaxSubsets) {
    std::vector<bool> kept(count);
    for (size_t i = 0; i < count; ++i) kept[i] = Below(random, 2) == 0;
    add(kept);
  }
  return choices;
}

std::vector<Disk::Choice> Disk::FileChoices(const Object& file, Random& random) {
  const std::string& before = file.bytes;
  const std::string& after = file.written;
  std::vector<Choice> choices;
  const auto add = [&](std::string bytes, const std::string& what) {
    choices.push_back(
        {.what = what.empty() ? what : file.name + " " + what, .content = std::make_shared<const Content>(std::move(bytes))});
  };
  add(after, "");
  add(before, "as it was");
  // Pages that were written, with the bytes of `to` instead of those of `from`.
  std::set<size_t> dirty;
  for (const Pending& pending : file.pending) {
    const Operation& change = *pending.operation;
    if (change.what != Do::kWrite || change.data.empty()) continue;
    for (size_t page = change.number / kPage; page <= (change.number + change.data.size() - 1) / kPage; ++page)
      dirty.insert(page);
  }
  const auto take = [](std::string& to, const std::string& from, size_t begin, size_t end) {
    for (size_t i = begin; i < std::min(end, to.size()); ++i) to[i] = i < from.size() ? from[i] : '\0';
  };
  const std::vector<size_t> pages(dirty.begin(), dirty.end());
  const auto add_without = [&](const std::vector<bool>& lost, const std::string& what) {
    std::string bytes = after;
    for (size_t i = 0; i < pages.size(); ++i) {
      if (lost[i]) take(bytes, before, pages[i] * kPage, (pages[i] + 1) * kPage);
    }
    add(std::move(bytes), what);
  };
  if (!pages.empty()) add_without(std::vector<bool>(pages.size(), true), "of its new size without pages");
  if (pages.size() > 1 && pages.size() <= 3) {
    for (size_t subset = 1; subset + 1 < (size_t{1} << pages.size()); ++subset) {
      std::vector<bool> lost(pages.size());
      for (size_t i = 0; i < pages.size(); ++i) lost[i] = (subset >> i & 1) != 0;
      add_without(lost, "without pages, subset " + std::to_string(subset));
    }
  } else if (pages.size() > 3) {
    for (const size_t i : {size_t{0}, pages.size() - 1, Below(random, pages.size())}) {
      std::vector<bool> lost(pages.size());
      lost[i] = true;
      add_without(lost, "without page " + std::to_string(pages[i]));
    }
    std::vector<bool> lost(pages.size());
    for (size_t i = 0; i < pages.size(); ++i) lost[i] = Below(random, 2) == 0;
    add_without(lost, "without some pages");
  }
  // An earlier state of it: after some of the operations, the last of them in part.
  const auto add_until = [&](size_t count, std::optional<size_t> bytes_of_last) {
    std::string bytes = before;
    for (size_t i = 0; i < count; ++i) {
      Operation change = *file.pending[i].operation;
      if (bytes_of_last && i + 1 == count) change.data.resize(std::min(*bytes_of_last, change.data.size()));
      Change(bytes, change);
    }
    add(std::move(bytes), "after " + std::to_string(count) + " of " + std::to_string(file.pending.size()) + " operations" +
                              (bytes_of_last ? ", " + std::to_string(*bytes_of_last) + " bytes of the last" : ""));
  };
  const size_t count = file.pending.size();
  if (count > 1) add_until(count - 1, {});
  if (count > 2) add_until(1 + Below(random, count - 2), {});
  const Operation& last = *file.pending.back().operation;
  if (last.what != Do::kWrite) return choices;
  for (const size_t unit : {kPage, kSector}) {
    const size_t first = unit - last.number % unit;
    if (first >= last.data.size()) continue;
    const size_t units = (last.data.size() - first - 1) / unit;
    add_until(count, first + unit * Below(random, units + 1));
    // The rest of the size is there.
    std::string bytes = after;
    take(bytes, before, last.number + first + unit * Below(random, units + 1), last.number + last.data.size());
    add(std::move(bytes), "with a part of its last write");
  }
  return choices;
}

void Disk::Walk(uint32_t directory, const std::string& path, const std::map<uint32_t, const Choice*>& chosen, Image& image) {
  const auto choice = chosen.find(directory);
  for (const auto& [name, number] : choice == chosen.end() ? objects_.at(directory).entries : choice->second->entries) {
    Object& object = objects_.at(number);
    const std::string at = path.empty() ? name : path + "/" + name;
    if (object.is_directory) {
      image.directories.insert(at);
      Walk(number, at, chosen, image);
      continue;
    }
    const auto of_file = chosen.find(number);
    if (of_file == chosen.end() && object.content == nullptr) object.content = std::make_shared<const Content>(object.bytes);
    image.files[at] = {number, of_file == chosen.end() ? object.content : of_file->second->content};
  }
}

void Disk::ForEachState(size_t limit, Random& random, const std::function<void(const Image& image)>& each) {
  struct Open {
    uint32_t number;
    const Object& object;
  };
  std::vector<Open> open;
  size_t all = 1;
  size_t last = 0;
  for (auto& [number, object] : objects_) {
    if (object.pending.empty()) continue;
    if (object.choices.empty())
      object.choices = object.is_directory ? DirectoryChoices(object, random) : FileChoices(object, random);
    if (number == last_changed_) last = open.size();
    open.push_back({number, object});
    all = std::min(limit + 1, all * object.choices.size());
  }
  const auto visit = [&](const std::vector<size_t>& picks) {
    Image image;
    std::map<uint32_t, const Choice*> chosen;
    image.all = true;
    for (size_t i = 0; i < open.size(); ++i) {
      const Choice& choice = open[i].object.choices[picks[i]];
      chosen[open[i].number] = &choice;
      image.all = image.all && picks[i] == 0;
      if (!choice.what.empty()) image.choices += (image.choices.empty() ? "" : "; ") + choice.what;
    }
    if (image.all) image.choices = "everything is on disk";
    Walk(0, "", chosen, image);
    each(image);
  };
  // Choice 0 is "all", choice 1 is "nothing".
  std::vector<size_t> picks(open.size());
  if (all <= limit) {
    for (size_t state = 0; state < all; ++state) {
      size_t rest = state;
      for (size_t i = 0; i < open.size(); ++i) {
        picks[i] = rest % open[i].object.choices.size();
        rest /= open[i].object.choices.size();
      }
      visit(picks);
    }
    return;
  }
  visit(picks);
  visit(std::vector<size_t>(open.size(), 1));
  // Names without content, and the reverse.
  for (const bool directories : {true, false}) {
    for (size_t i = 0; i < open.size(); ++i) picks[i] = open[i].object.is_directory == directories ? 0 : 1;
    visit(picks);
  }
  size_t visited = 4;
  while (visited < limit) {
    // Usually one or two objects differ from an extreme state.
    picks.assign(open.size(), Below(random, 3) == 0 ? 1 : 0);
    const size_t changed = Below(random, 4) == 0 ? open.size() : 1 + Below(random, 2);
    for (size_t n = 0; n < changed; ++n) {
      const size_t i = changed == open.size() ? n : n == 0 && Below(random, 2) == 0 ? last : Below(random, open.size());
      picks[i] = Below(random, open[i].object.choices.size());
    }
    visit(picks);
    ++visited;
  }
}

}  // namespace persia::agent::crash

#include "files/yaml_document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/text.h"

namespace persia::agent {
namespace {

using NodePtr = std::shared_ptr<YamlNode>;

// The parser and the tree's destructors are recursive, also along a chain of aliases that contain each other.
constexpr int kMaxDepth = 64;
// Otherwise a text of one merge key a line would become its square.
constexpr size_t kMaxMerged = 100'000;

struct BadDocument : std::runtime_error {
  BadDocument(const YAML::Mark& where, const std::string& what) : std::runtime_error(what), mark(where) {}
  YAML::Mark mark;
};

// Builds the tree from the parser's events. Unlike yaml-cpp's own tree it has a place for every value, keeps repeated keys, and
// does not copy aliases.
class TreeBuilder : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { Add(Make(YamlNode::Kind::kNull, mark, anchor)); }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw BadDocument(mark, "an alias without its anchor");
    for (const Open& open : open_)
      if (open.node == found->second) throw BadDocument(mark, "an alias that contains itself");
    if (found->second->levels + static_cast<int>(open_.size()) >= kMaxDepth)
      throw BadDocument(mark, "nested deeper than 64 levels");
    Add(found->second);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    const NodePtr node = Make(YamlNode::Kind::kScalar, mark, anchor);
    node->text = value;
    node->quoted = tag == "!";
    Add(node);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    Enter(YamlNode::Kind::kSequence, mark, anchor);
  }
  void OnSequenceEnd() override { Leave(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    Enter(YamlNode::Kind::kMap, mark, anchor);
  }
  void OnMapEnd() override {
    Merge(*open_.back().node);
    Leave();
  }

  [[nodiscard]] NodePtr root() const { return root_ ? root_ : std::make_shared<YamlNode>(); }

 private:
  struct Open {
    NodePtr node;
    NodePtr key;  // of a map, whose value follows
  };

  NodePtr Make(YamlNode::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    auto node = std::make_shared<YamlNode>();
    node->kind = kind;
    node->line = mark.line + 1;
    node->column = mark.column + 1;
    if (anchor != YAML::NullAnchor) anchors_[anchor] = node;
    return node;
  }

  void Add(const NodePtr& node) {
    if (open_.empty()) {
      root_ = node;
      return;
    }
    Open& parent = open_.back();
    parent.node->levels = std::max(parent.node->levels, node->levels + 1);
    if (parent.node->kind == YamlNode::Kind::kSequence) {
      parent.node->items.push_back(node);
    } else if (!parent.key) {
      parent.key = node;
    } else {
      parent.node->entries.push_back({std::move(parent.key), node});
      parent.key = nullptr;
    }
  }

  // Replaces the merge key `<<: *anchor`, or `<<: [*a, *b]`, by the entries whose keys the map has not, as YAML 1.1 does.
  // Earlier maps have precedence.
  void Merge(YamlNode& map) {
    std::vector<NodePtr> sources;
    std::erase_if(map.entries, [&](const YamlNode::Entry& entry) {
      if (entry.key->kind != YamlNode::Kind::kScalar || entry.key->quoted || entry.key->text != "<<") return false;
      const bool is_list = entry.value->kind == YamlNode::Kind::kSequence;
      for (const auto& source : is_list ? entry.value->items : std::vector{entry.value}) {
        if (source->kind != YamlNode::Kind::kMap)
          throw BadDocument(MarkOf(*entry.key), "<<: expected an alias of a map, or a list of them");
        sources.push_back(std::const_pointer_cast<YamlNode>(source));
      }
      return true;
    });
    if (sources.empty()) return;
    std::unordered_set<std::string> keys;
    for (const YamlNode::Entry& entry : map.entries) keys.insert(entry.key->text);
    for (const NodePtr& source : sources) {
      for (const YamlNode::Entry& entry : source->entries) {
        if (++merged_ > kMaxMerged) throw BadDocument(MarkOf(map), "merge keys (<<) repeat more than 100000 entries");
        if (keys.insert(entry.key->text).second) map.entries.push_back(entry);
      }
    }
  }

  static YAML::Mark MarkOf(const YamlNode& node) {
    YAML::Mark mark;
    mark.line = node.line - 1;
    mark.column = node.column - 1;
    return mark;
  }

  void Enter(YamlNode::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (static_cast<int>(open_.size()) >= kMaxDepth) throw BadDocument(mark, "nested deeper than 64 levels");
    const NodePtr node = Make(kind, mark, anchor);
    Add(node);
    open_.push_back({node, nullptr});
  }

  void Leave() {
    const int levels = open_.back().node->levels;
    open_.pop_back();
    if (!open_.empty()) {
      int& above = open_.back().node->levels;
      above = std::max(above, levels + 1);
    }
  }

  std::unordered_map<YAML::anchor_t, NodePtr> anchors_;
  std::vector<Open> open_;
  NodePtr root_;
  size_t merged_ = 0;  // entries
};

Error At(const std::string& name, const YAML::Mark& mark, const std::string& what) {
  if (mark.is_null()) return Error{name + ": " + what};
  return Error{name + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1) + ": " + what};
}

}  // namespace

std::string_view YamlNode::KindName() const {
  switch (kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kScalar:
      return quoted ? "a text" : "a value";
    case Kind::kSequence:
      return "a list";
    case Kind::kMap:
      return "a map";
  }
  return "";
}

Result<std::shared_ptr<const YamlNode>> ParseYaml(const std::string& name, const std::string& text) {
  try {
    // Without trailing line ends: before them yaml-cpp treats an open quote as closed.
    std::istringstream stream(text.substr(0, text.find_last_not_of(" \t\r\n") + 1));
    YAML::Parser parser(stream);
    TreeBuilder first;
    parser.HandleNextDocument(first);
    // Text after a document that ended too early ("- x", then "y: 1") also looks like a second document.
    TreeBuilder second;
    if (parser.HandleNextDocument(second)) {
      return Error{
          name + ":" + std::to_string(second.root()->line) + ":" + std::to_string(second.root()->column) +
          ": a second document begins here, or the line does not belong to the lines above it; one document is expected"};
    }
    return std::shared_ptr<const YamlNode>(first.root());
  } catch (const BadDocument& bad) {
    return At(name, bad.mark, std::string("not valid YAML: ") + bad.what());
  } catch (const YAML::Exception& bad) {
    return At(name, bad.mark, "not valid YAML: " + OneLine(bad.msg));
  } catch (const std::exception& bad) {
    return Error{name + ": not valid YAML: " + bad.what()};
  }
}

}  // namespace persia::agent

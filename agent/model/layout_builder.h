// Makes the layout of a snapshot of the agent's own metrics: counters and gauges, one value a series.
//
//   LayoutBuilder builder;
//   builder.Add(identity, {"persia_hang", MetricType::kGauge, "For how long ..."}, {{"phase", "data"}});
//   std::shared_ptr<const Layout> layout = std::move(builder).Build();
//
// The values of a snapshot are those of the series in the order in which the series were added. Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "model/snapshot.h"

namespace persia::agent {

class LayoutBuilder {
 public:
  struct Family {
    std::string_view name;
    MetricType type;
    std::string_view help;
  };

  // REQUIRES: all families of one name are equal; no other series has this identity, name and labels.
  void Add(const Identity& identity, const Family& family, Labels labels = {});
  [[nodiscard]] std::shared_ptr<const Layout> Build() &&;

 private:
  std::shared_ptr<Layout> layout_ = std::make_shared<Layout>();
  // Indexes into the layout.
  std::map<Identity, uint32_t> identities_;
  std::map<std::string, size_t, std::less<>> families_;
};

}  // namespace persia::agent

// WriteRequest   := ( 0x1a length MetricMetadata )*
// MetricMetadata := 0x08 type:varint 0x12 length name 0x22 length help 0x2a length unit
//
// As in protobuf 3, a field that is 0 or empty is left out.
#include "remote/metadata_request.h"

#include <cstdint>
#include <string_view>

#include "format/protobuf_wire.h"

namespace persia::agent {
namespace {

uint64_t TypeNumber(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return 1;
    case MetricType::kGauge:
      return 2;
    case MetricType::kHistogram:
      return 3;
    case MetricType::kSummary:
      return 5;
    case MetricType::kUntyped:
      break;
  }
  return 0;
}

void AppendText(std::string& to, int field, std::string_view text) {
  if (!text.empty()) AppendBytes(to, BytesKey(field), text);
}

}  // namespace

std::vector<MetadataRequest> EncodeMetadata(const Layout& layout, size_t max_families) {
  std::vector<MetadataRequest> requests;
  std::string message;
  const std::string* last_name = nullptr;
  for (const FamilyLayout& family : layout.families) {
    if (last_name != nullptr && *last_name == family.name) continue;
    last_name = &family.name;
    message.clear();
    if (const uint64_t type = TypeNumber(family.type); type != 0) {
      message += VarintKey(1);
      AppendVarint(message, type);
    }
    AppendText(message, 2, family.name);
    AppendText(message, 4, family.help);
    AppendText(message, 5, family.unit);
    if (requests.empty() || requests.back().families >= max_families) requests.emplace_back();
    AppendBytes(requests.back().body, BytesKey(3), message);
    ++requests.back().families;
  }
  return requests;
}

}  // namespace persia::agent

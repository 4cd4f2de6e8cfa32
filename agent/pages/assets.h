// The files of the agent's own page, as they are embedded into the program.
#pragma once

#include <span>
#include <string_view>

namespace persia::agent {

struct Asset {
  std::string_view name;  // "page.js"
  std::string_view content_type;
  std::string_view content;
};

// Those of assets/, and dygraphs'. The page itself is "index.html".
std::span<const Asset> Assets();

}  // namespace persia::agent

// The files of the agent's page, embedded into the program.
#pragma once

#include <span>
#include <string_view>

namespace persia::agent {

struct Asset {
  std::string_view name;  // "page.js"
  std::string_view content_type;
  std::string_view content;
};

// The files of assets/, and dygraphs. The page is "index.html".
std::span<const Asset> Assets();

}  // namespace persia::agent

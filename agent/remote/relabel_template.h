// The texts `replacement` and `target_label` of a relabelling rule, which refer to groups of its regular expression: $1, ${1},
// $name, ${name}. `$$` is a dollar.
//
// Thread safety: pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace persia::agent {

// Replaces each reference by what `group` returns for its name or number. As in Go's regexp, a reference is as long as letters,
// digits and underscores go, so that a letter after a number needs braces; a dollar without a reference stays.
std::string ExpandTemplate(std::string_view text, const std::function<std::string_view(std::string_view name)>& group);

}  // namespace persia::agent

// Which of the allowed names somebody probably meant. Used by messages about misspelt settings and
// arguments.
#pragma once

#include <span>
#include <string_view>

namespace uzip {

/// The one of `names` that takes the fewest inserted, deleted and replaced characters to get to; the
/// first of several. `names` must not be empty.
const char* nearest_name(std::string_view name, std::span<const char* const> names);

}  // namespace uzip

// Text form of a schedule, one line a step; the golden files in tests/golden are made of it.
#pragma once

#include "algos/schedule.hpp"

#include <string>

namespace uzip {

std::string print_schedule(const Schedule& schedule);

}  // namespace uzip

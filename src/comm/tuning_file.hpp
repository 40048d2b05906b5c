// Where a tuning table lies, how it is read, and how all ranks agree to use the same one. Used when a job is
// created, and by uzip_tune.
#pragma once

#include "base/config.hpp"
#include "comm/bootstrap.hpp"
#include "comm/tuning_table.hpp"

#include <memory>
#include <string>

namespace uzip {

/// "processor, 2 cores": what a table is measured on.
std::string describe_machine();

/// The file that UZIP_TUNING_FILE names; for "auto" the one in the user's cache that belongs to this machine and this
/// version of the library; "" for "none", or if there is no place for a cache.
std::string tuning_path(const Config& config);

/// UZIP_ERR_CONFIG in one sentence if it isn't a readable table. Never waits, whatever `path` is.
Result<TuningTable> read_tuning_file(const std::string& path);

/// Replaces a file at once; makes the folder if it isn't there.
Status write_text_file(const std::string& path, const std::string& text);
Status write_tuning_file(const std::string& path, const TuningTable& table);

/// The table of this rank, or nullptr: there is none, or it can't be used, which is logged in one line.
std::shared_ptr<const TuningTable> load_tuning(const Config& config);

/// Collective. `mine` if all ranks have an equal one. Otherwise nullptr on all, and rank 0 logs one line, because
/// ranks that choose differently could not talk to each other.
Result<std::shared_ptr<const TuningTable>> agree_on_tuning(Bootstrap& bootstrap,
                                                           std::shared_ptr<const TuningTable> mine);

}  // namespace uzip

#include "comm/bootstrap.hpp"

#include "comm/struct_size.hpp"

#include <algorithm>
#include <cstring>

namespace uzip {
namespace {

/// No process has more to tell than this before it can talk over the transport.
constexpr uint64_t kMostBytes = 1 << 20;

class OobBootstrap final : public Bootstrap {
 public:
  explicit OobBootstrap(const uzip_oob_t& oob) : oob_(oob) {}
  int rank() const override { return oob_.rank; }
  int size() const override { return oob_.size; }

  Status all_gather(std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all) override {
    const size_t ranks = static_cast<size_t>(oob_.size);
    const uint64_t length = mine.size();
    std::vector<uint64_t> lengths(ranks);
    UZIP_RETURN_IF_ERROR(call(&length, lengths.data(), sizeof length));
    const uint64_t longest = *std::max_element(lengths.begin(), lengths.end());
    if (longest > kMostBytes)
      return error(UZIP_ERR_INVALID,
                   "the all-gather callback returned a length of %llu bytes, at most %llu are possible; does it "
                   "deliver every rank's bytes in rank order?",
                   static_cast<unsigned long long>(longest), static_cast<unsigned long long>(kMostBytes));
    if (lengths[static_cast<size_t>(oob_.rank)] != length) return wrong_place();
    std::vector<std::byte> padded(std::max<uint64_t>(longest, 1)), gathered(padded.size() * ranks);
    std::copy(mine.begin(), mine.end(), padded.begin());
    UZIP_RETURN_IF_ERROR(call(padded.data(), gathered.data(), padded.size()));
    const auto own = gathered.begin() + static_cast<ptrdiff_t>(padded.size() * static_cast<size_t>(oob_.rank));
    if (!std::equal(padded.begin(), padded.end(), own)) return wrong_place();
    all->clear();
    for (size_t r = 0; r < ranks; ++r) {
      const std::byte* begin = gathered.data() + r * padded.size();
      all->emplace_back(begin, begin + lengths[r]);
    }
    return Status();
  }

 private:
  Status wrong_place() const {
    return error(UZIP_ERR_INVALID,
                 "the all-gather callback did not return rank %d's own bytes in its place; does it deliver every "
                 "rank's bytes in rank order?", oob_.rank);
  }

  Status call(const void* src, void* dst, size_t bytes) {
    const int code = oob_.allgather(src, dst, bytes, oob_.context);
    if (code == 0) return Status();
    return error(UZIP_ERR_PEER, "the all-gather callback failed with %d", code);
  }

  const uzip_oob_t oob_;
};

/// The lines of one process: library version, then its settings.
std::vector<std::string> agreement_lines(const Config& config) {
  std::vector<std::string> lines = matching_settings(config);
  lines.insert(lines.begin(), std::string("library version=") + uzip_version_string());
  return lines;
}

std::vector<std::string> split_lines(const std::vector<std::byte>& bytes) {
  std::vector<std::string> lines(1);
  for (std::byte b : bytes) {
    if (b == std::byte{'\n'}) lines.emplace_back();
    else lines.back() += static_cast<char>(b);
  }
  return lines;
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> make_oob_bootstrap(const uzip_oob_t& user) {
  uzip_oob_t storage = {};
  UZIP_ASSIGN_OR_RETURN(const uzip_oob_t* const read, read_struct(user, "uzip_oob_t", kFirstOobBytes, storage));
  const uzip_oob_t& oob = *read;
  if (oob.size < 1 || oob.rank < 0 || oob.rank >= oob.size)
    return error(UZIP_ERR_INVALID, "rank %d of %d does not exist; ranks are 0 to size - 1", oob.rank, oob.size);
  if (!oob.allgather) return error(UZIP_ERR_INVALID, "uzip_oob_t.allgather is NULL");
  return std::unique_ptr<Bootstrap>(std::make_unique<OobBootstrap>(oob));
}

Status check_agreement(Bootstrap& bootstrap, const Config& config) {
  const std::vector<std::string> mine = agreement_lines(config);
  std::string text;
  for (const std::string& line : mine) text += (text.empty() ? "" : "\n") + line;
  std::vector<std::vector<std::byte>> all;
  UZIP_RETURN_IF_ERROR(bootstrap.all_gather(std::as_bytes(std::span(text)), &all));
  const std::vector<std::string> first = split_lines(all[0]);
  for (size_t r = 1; r < all.size(); ++r) {
    const std::vector<std::string> lines = split_lines(all[r]);
    for (size_t i = 0; i < std::max(first.size(), lines.size()); ++i) {
      const std::string a = i < first.size() ? first[i] : "(nothing)";
      const std::string b = i < lines.size() ? lines[i] : "(nothing)";
      if (a == b) continue;
      return error(UZIP_ERR_MISMATCH, "rank 0 has %.200s, rank %zu has %.200s; it must be the same on all ranks",
                   a.c_str(), r, b.c_str());
    }
  }
  return Status();
}

Result<bool> is_true_somewhere(Bootstrap& bootstrap, bool mine) {
  const std::byte own{mine};
  std::vector<std::vector<std::byte>> all;
  UZIP_RETURN_IF_ERROR(bootstrap.all_gather({&own, 1}, &all));
  for (size_t r = 0; r < all.size(); ++r)
    if (all[r].size() != 1)
      return error(UZIP_ERR_MISMATCH, "rank %zu sent %zu bytes where all ranks send one; is it of another version?", r,
                   all[r].size());
  return std::ranges::any_of(all, [](const auto& bytes) { return bytes[0] != std::byte{0}; });
}

}  // namespace uzip

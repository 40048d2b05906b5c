// Reads and writes machine models. Both walk the same tables of keys.
#include "algos/machine_model.hpp"

#include "base/nearest_name.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <variant>

namespace uzip {
namespace {

constexpr std::string_view kMagic = "uzip-cost-model";
constexpr int kVersion = 1;

/// What a number may be.
enum class Range { kNotNegative, kPositive, kCount, kCountOrNone, kShare };

template <class Section>
struct Key {
  const char* name;
  double Section::*field;
  Range range;
  bool required;
};

constexpr Key<MachineModel> kMachineKeys[] = {
    {"ranks_per_host", &MachineModel::ranks_per_host, Range::kCount, true},
    {"ranks_per_socket", &MachineModel::ranks_per_socket, Range::kCountOrNone, false},
    {"cores_per_host", &MachineModel::cores_per_host, Range::kNotNegative, false},
    {"codec_threads", &MachineModel::codec_threads, Range::kCountOrNone, false},
    {"copy", &MachineModel::copy, Range::kPositive, true},
    {"reduce", &MachineModel::reduce, Range::kPositive, true},
    {"step", &MachineModel::step, Range::kNotNegative, false},
    {"call", &MachineModel::call, Range::kNotNegative, false},
    {"change", &MachineModel::change, Range::kNotNegative, false},
    {"core_cache", &MachineModel::core_cache, Range::kNotNegative, false},
    {"cache", &MachineModel::cache, Range::kNotNegative, false},
    {"far", &MachineModel::far, Range::kNotNegative, false},
    {"memory", &MachineModel::memory, Range::kNotNegative, false},
    {"crowd", &MachineModel::crowd, Range::kPositive, false},
    {"chunk", &MachineModel::chunk, Range::kNotNegative, false},
    {"window", &MachineModel::window, Range::kNotNegative, false},
};
constexpr Key<LinkModel> kLinkKeys[] = {
    {"latency", &LinkModel::latency, Range::kNotNegative, true},
    {"bandwidth", &LinkModel::bandwidth, Range::kPositive, true},
    {"message", &LinkModel::message, Range::kNotNegative, false},
    {"byte", &LinkModel::byte_cpu, Range::kNotNegative, false},
    {"fetch", &LinkModel::fetch, Range::kNotNegative, false},
    {"fresh", &LinkModel::fresh, Range::kNotNegative, false},
    {"memory", &LinkModel::memory, Range::kNotNegative, false},
};
constexpr Key<CodecModel> kCodecKeys[] = {
    {"ratio", &CodecModel::ratio, Range::kPositive, true},
    {"plain", &CodecModel::plain, Range::kShare, true},
    {"encode", &CodecModel::encode, Range::kPositive, true},
    {"decode", &CodecModel::decode, Range::kPositive, true},
};

constexpr std::string_view kPortOwners[] = {"rank", "socket", "host"};  // in the order of PortOwner

const char* range_text(Range range) {
  switch (range) {
    case Range::kNotNegative:
      return "a number, 0 or more";
    case Range::kPositive:
      return "a number above 0";
    case Range::kCount:
      return "a whole number, 1 or more";
    case Range::kCountOrNone:
      return "a whole number, 0 or more";
    case Range::kShare:
      return "a number from 0 to 1";
  }
  return "a number";
}

bool within(Range range, double value) {
  constexpr double kMost = 1e18;
  if (!std::isfinite(value) || value < 0 || value > kMost) return false;
  if (range == Range::kPositive) return value > 0;
  if (range == Range::kShare) return value <= 1;
  if (range != Range::kCount && range != Range::kCountOrNone) return true;
  return value >= (range == Range::kCount ? 1 : 0) && value == std::floor(value) && value <= 1e6;
}

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  for (size_t begin; (begin = line.find_first_not_of(kBlank)) != line.npos;) {
    const size_t end = std::min(line.find_first_of(kBlank, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    line.remove_prefix(end);
  }
  return words;
}

// Text from outside for a message: short and printable.
std::string shown(std::string_view text) {
  std::string result(text.substr(0, 40));
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  return result;
}

class Parser {
 public:
  explicit Parser(const std::string& origin) : origin_(origin) {}
  Result<MachineModel> parse(std::string_view text);

 private:
  Status take_line(const std::vector<std::string_view>& words);
  Status take_magic(const std::vector<std::string_view>& words);
  Status open_link(const std::vector<std::string_view>& words);
  Status open_codec(const std::vector<std::string_view>& words);
  Status take_link_word(const std::vector<std::string_view>& words, LinkModel& link);
  template <class Section, size_t n>
  Status take_number(const std::vector<std::string_view>& words, const char* what,
                     const Key<Section> (&keys)[n], Section& section,
                     std::initializer_list<const char*> others = {});
  template <class Section, size_t n>
  Status check_required(const char* what, const Key<Section> (&keys)[n]);
  Status close_section();
  [[gnu::format(printf, 2, 3)]] Status fault(const char* format, ...) const;

  const std::string& origin_;
  size_t line_ = 0;
  bool has_magic_ = false;
  MachineModel model_;
  // The section that the lines belong to: the machine, one of its links, or its last codec.
  std::variant<MachineModel*, LinkModel*, CodecModel*> section_ = &model_;
  std::vector<std::string> seen_;      // keys of the section so far
  std::vector<std::string> sections_;  // so far
};

Status Parser::fault(const char* format, ...) const {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return error(UZIP_ERR_INVALID, "%s:%zu: %s", origin_.c_str(), line_, text);
}

Status Parser::take_magic(const std::vector<std::string_view>& words) {
  if (words.size() != 2 || words[0] != kMagic)
    return fault("not a cost model: the first line is '%s 1'", std::string(kMagic).c_str());
  if (words[1] != std::to_string(kVersion))
    return fault("version '%s' of the format is not known; this program reads version %d",
                 shown(words[1]).c_str(), kVersion);
  has_magic_ = true;
  return Status();
}

template <class Section, size_t n>
Status Parser::take_number(const std::vector<std::string_view>& words, const char* what,
                           const Key<Section> (&keys)[n], Section& section,
                           std::initializer_list<const char*> others) {
  const auto key = std::find_if(std::begin(keys), std::end(keys),
                                [&](const Key<Section>& k) { return words[0] == k.name; });
  if (key == std::end(keys)) {
    std::vector<const char*> names(others);
    for (const Key<Section>& k : keys) names.push_back(k.name);
    return fault("'%s' is no key of %s; the nearest is %s", shown(words[0]).c_str(), what,
                 nearest_name(words[0], names));
  }
  if (std::find(seen_.begin(), seen_.end(), key->name) != seen_.end())
    return fault("'%s' is given twice", key->name);
  double value = 0;
  const bool one = words.size() == 2;
  const auto parsed =
      one ? std::from_chars(words[1].data(), words[1].data() + words[1].size(), value)
          : std::from_chars_result{};
  if (!one || parsed.ec != std::errc() || parsed.ptr != words[1].data() + words[1].size() ||
      !within(key->range, value)) {
    return fault("'%s' takes %s, not '%s'", key->name, range_text(key->range),
                 one                ? shown(words[1]).c_str()
                 : words.size() < 2 ? ""
                                    : "several words");
  }
  section.*key->field = value;
  seen_.push_back(key->name);
  return Status();
}

template <class Section, size_t n>
Status Parser::check_required(const char* what, const Key<Section> (&keys)[n]) {
  for (const Key<Section>& key : keys) {
    if (key.required && std::find(seen_.begin(), seen_.end(), key.name) == seen_.end())
      return fault("'%s' is missing in %s that ends here", key.name, what);
  }
  seen_.clear();
  return Status();
}

Status Parser::close_section() {
  if (std::holds_alternative<LinkModel*>(section_)) return check_required("the link", kLinkKeys);
  if (std::holds_alternative<CodecModel*>(section_)) return check_required("the codec", kCodecKeys);
  return check_required("the machine", kMachineKeys);
}

Status Parser::open_link(const std::vector<std::string_view>& words) {
  UZIP_RETURN_IF_ERROR(close_section());
  const std::string_view name = words.size() == 2 ? words[1] : std::string_view();
  if (name == "local") section_ = &model_.local;
  else if (name == "socket") section_ = &model_.socket;
  else if (name == "remote") section_ = &model_.remote;
  else
    return fault("a link is 'link local' (between ranks of one socket), 'link socket' (between the sockets of one host) "
                 "or 'link remote'");
  return Status();
}

Status Parser::open_codec(const std::vector<std::string_view>& words) {
  UZIP_RETURN_IF_ERROR(close_section());
  if (words.size() != 3) return fault("a codec is 'codec NAME TYPE', such as 'codec lev bf16'");
  const DataTypeInfo* type = find_datatype(words[2]);
  if (type == nullptr) {
    std::vector<const char*> names;
    for (const DataTypeInfo& known : datatypes()) names.push_back(known.name);
    return fault("there is no type '%s'; the nearest is %s", shown(words[2]).c_str(),
                 nearest_name(words[2], names));
  }
  model_.codecs.push_back({.codec = std::string(words[1]), .type = type->type});
  section_ = &model_.codecs.back();
  return Status();
}

Status Parser::take_link_word(const std::vector<std::string_view>& words, LinkModel& link) {
  const auto owner = std::find(std::begin(kPortOwners), std::end(kPortOwners), words.back());
  if (words.size() == 2 && words[0] == "port" && owner != std::end(kPortOwners)) {
    link.port = static_cast<PortOwner>(owner - std::begin(kPortOwners));
  } else if (words.size() == 2 && words[0] == "carrier" &&
             (words[1] == "wire" || words[1] == "receiver")) {
    link.carrier = words[1] == "wire" ? Carrier::kWire : Carrier::kReceiver;
  } else {
    return fault("'%s' takes %s", shown(words[0]).c_str(),
                 words[0] == "port" ? "'rank', 'socket' or 'host'" : "'wire' or 'receiver'");
  }
  return Status();
}

Status Parser::take_line(const std::vector<std::string_view>& words) {
  if (!has_magic_) return take_magic(words);
  if (words[0] == "link" || words[0] == "codec") {
    std::string section;
    for (std::string_view word : words) section += std::string(word) + " ";
    if (std::find(sections_.begin(), sections_.end(), section) != sections_.end())
      return fault("'%s' is given twice", shown(section).c_str());
    sections_.push_back(section);
    return words[0] == "link" ? open_link(words) : open_codec(words);
  }
  if (auto* link = std::get_if<LinkModel*>(&section_)) {
    if (words[0] == "port" || words[0] == "carrier") return take_link_word(words, **link);
    return take_number(words, "a link", kLinkKeys, **link, {"port", "carrier"});
  }
  if (auto* codec = std::get_if<CodecModel*>(&section_))
    return take_number(words, "a codec", kCodecKeys, **codec);
  if (words[0] == "name") {
    if (words.size() != 2) return fault("'name' takes one word");
    model_.name = words[1];
    return Status();
  }
  return take_number(words, "the machine", kMachineKeys, model_, {"name", "link", "codec"});
}

Result<MachineModel> Parser::parse(std::string_view text) {
  while (!text.empty()) {
    ++line_;
    const size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string_view> words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!words.empty()) UZIP_RETURN_IF_ERROR(take_line(words));
  }
  if (!has_magic_) return take_magic({});
  UZIP_RETURN_IF_ERROR(close_section());
  if (model_.local.bandwidth == 0) return fault("the section 'link local' is missing");
  if (model_.remote.bandwidth == 0) return fault("the section 'link remote' is missing");
  if ((model_.ranks_per_socket > 0) != (model_.socket.bandwidth > 0))
    return fault("'ranks_per_socket' and the section 'link socket' go together; one of them is missing");
  return std::move(model_);
}

template <class Section, size_t n>
void print_numbers(const Key<Section> (&keys)[n], const Section& section, const char* indent,
                   std::string& text) {
  for (const Key<Section>& key : keys) {
    char line[96];
    std::snprintf(line, sizeof line, "%s%-16s %.6g\n", indent, key.name, section.*key.field);
    text += line;
  }
}

void print_link(const char* name, const LinkModel& link, std::string& text) {
  text += std::string("\nlink ") + name + "\n";
  print_numbers(kLinkKeys, link, "  ", text);
  text += "  port             " + std::string(kPortOwners[static_cast<size_t>(link.port)]) + "\n";
  text +=
      std::string("  carrier          ") + (link.carrier == Carrier::kWire ? "wire\n" : "receiver\n");
}

}  // namespace

const CodecModel* MachineModel::find_codec(std::string_view codec, DataType type) const {
  for (const CodecModel& known : codecs) {
    if (known.codec == codec && known.type == type) return &known;
  }
  return nullptr;
}

Result<MachineModel> parse_machine_model(std::string_view text, const std::string& origin) {
  return Parser(origin).parse(text);
}

std::string print_machine_model(const MachineModel& model) {
  std::string text = std::string(kMagic) + " " + std::to_string(kVersion) + "\n";
  if (!model.name.empty()) text += "name             " + model.name + "\n";
  print_numbers(kMachineKeys, model, "", text);
  print_link("local", model.local, text);
  if (model.ranks_per_socket > 0) print_link("socket", model.socket, text);
  print_link("remote", model.remote, text);
  for (const CodecModel& codec : model.codecs) {
    text += "\ncodec " + codec.codec + " " + datatype_info(codec.type).name + "\n";
    print_numbers(kCodecKeys, codec, "  ", text);
  }
  return text;
}

}  // namespace uzip

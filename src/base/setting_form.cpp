// Reads and shows the values of settings. Independent of the locale: a number is the same text
// everywhere.
#include "base/setting_form.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>

namespace uzip {
namespace {

constexpr int kIntMax = std::numeric_limits<int>::max();
constexpr size_t kBytesMax = std::numeric_limits<ptrdiff_t>::max();
constexpr double kSecondsMax = 1e9;
constexpr size_t kTextMax = 4095;

struct Factor {
  char letter;
  int shift;
};
constexpr Factor kFactors[] = {{'G', 30}, {'M', 20}, {'K', 10}};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

// A number that takes all of `text`.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class T>
std::string print_number(T value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::optional<bool> parse_switch(std::string_view text) {
  for (std::string_view word : {"yes", "y", "1", "on", "true"}) {
    if (same_word(text, word)) return true;
  }
  for (std::string_view word : {"no", "n", "0", "off", "false"}) {
    if (same_word(text, word)) return false;
  }
  return std::nullopt;
}

std::optional<size_t> parse_bytes(std::string_view text) {
  if (same_word(text, "auto")) return 0;
  int shift = 0;
  for (const Factor& factor : kFactors) {
    if (!text.empty() && lower(text.back()) == lower(factor.letter)) shift = factor.shift;
  }
  if (shift != 0) text.remove_suffix(1);
  const auto number = parse_number<size_t>(text);
  if (!number || *number > kBytesMax >> shift) return std::nullopt;
  return *number << shift;
}

std::string print_bytes(size_t bytes) {
  if (bytes == 0) return "auto";
  for (const Factor& factor : kFactors) {
    if (bytes % (size_t{1} << factor.shift) == 0) {
      return print_number(bytes >> factor.shift) + factor.letter;
    }
  }
  return print_number(bytes);
}

std::optional<int> find_name(const char* (*name)(int), int count, std::string_view text) {
  for (int i = 0; i < count; ++i) {
    if (same_word(text, name(i))) return i;
  }
  return std::nullopt;
}

std::string list_names(const char* (*name)(int), int count) {
  std::string list = "one of ";
  for (int i = 0; i < count; ++i) list += (i > 0 ? std::string(", ") : std::string()) + name(i);
  return list;
}

bool is_plain_text(std::string_view text) {
  return text.size() <= kTextMax && std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

template <class Field, class Value>
bool assign(Config& config, Field Config::*field, const std::optional<Value>& value) {
  if (!value) return false;
  config.*field = static_cast<Field>(*value);
  return true;
}

struct Parser {
  std::string_view text;
  Config& config;

  bool operator()(const IntegerForm& form) const {
    const auto number = parse_number<int>(text);
    return number && *number >= form.least && assign(config, form.field, number);
  }
  bool operator()(const CountForm& form) const {
    if (same_word(text, "auto")) return assign(config, form.field, std::optional(-1));
    const auto number = parse_number<int>(text);
    return number && *number >= 0 && *number <= form.most && assign(config, form.field, number);
  }
  bool operator()(const BytesForm& form) const {
    return assign(config, form.field, parse_bytes(text));
  }
  bool operator()(const SecondsForm& form) const {
    const auto number = parse_number<double>(text);
    return number && *number >= 0 && *number <= kSecondsMax && assign(config, form.field, number);
  }
  bool operator()(const SwitchForm& form) const {
    return assign(config, form.field, parse_switch(text));
  }
  bool operator()(const AutoSwitchForm& form) const {
    if (same_word(text, "auto")) return assign(config, form.field, std::optional(-1));
    return assign(config, form.field, parse_switch(text));
  }
  bool operator()(const ChoiceForm& form) const {
    return assign(config, form.field, find_name(form.name, form.count, text));
  }
  bool operator()(const NameForm& form) const {
    const auto index = find_name(form.name, form.count, text);
    if (index) config.*form.field = form.name(*index);
    return index.has_value();
  }
  bool operator()(const TextForm& form) const {
    const bool blank = text.find_first_not_of(' ') == std::string_view::npos;
    if (!is_plain_text(text) || (blank && !(text.empty() && form.may_be_empty))) return false;
    config.*form.field = text;
    return true;
  }
};

struct Printer {
  const Config& config;

  std::string operator()(const IntegerForm& form) const {
    return config.*form.field < 0 ? std::string() : print_number(config.*form.field);
  }
  std::string operator()(const CountForm& form) const {
    return config.*form.field < 0 ? "auto" : print_number(config.*form.field);
  }
  std::string operator()(const BytesForm& form) const { return print_bytes(config.*form.field); }
  std::string operator()(const SecondsForm& form) const { return print_number(config.*form.field); }
  std::string operator()(const SwitchForm& form) const { return config.*form.field ? "yes" : "no"; }
  std::string operator()(const AutoSwitchForm& form) const {
    const int value = config.*form.field;
    return value < 0 ? "auto" : value > 0 ? "yes" : "no";
  }
  std::string operator()(const ChoiceForm& form) const { return form.name(config.*form.field); }
  std::string operator()(const NameForm& form) const { return config.*form.field; }
  std::string operator()(const TextForm& form) const { return config.*form.field; }
};

struct Describer {
  std::string operator()(const IntegerForm& form) const {
    return "a whole number from " + print_number(form.least) + " to " + print_number(kIntMax);
  }
  std::string operator()(const CountForm& form) const {
    return "auto or a whole number from 0 to " + print_number(form.most);
  }
  std::string operator()(const BytesForm&) const {
    return "bytes: a whole number, with K, M or G for powers of 1024, or auto";
  }
  std::string operator()(const SecondsForm&) const {
    return "seconds: a number from 0 to " + print_number(kSecondsMax);
  }
  std::string operator()(const SwitchForm&) const { return "yes or no"; }
  std::string operator()(const AutoSwitchForm&) const { return "auto, yes or no"; }
  std::string operator()(const ChoiceForm& form) const { return list_names(form.name, form.count); }
  std::string operator()(const NameForm& form) const { return list_names(form.name, form.count); }
  std::string operator()(const TextForm& form) const { return form.what; }
};

}  // namespace

bool parse_setting(const SettingForm& form, std::string_view text, Config& config) {
  return std::visit(Parser{text, config}, form);
}

std::string print_setting(const SettingForm& form, const Config& config) {
  return std::visit(Printer{config}, form);
}

std::string describe_form(const SettingForm& form) { return std::visit(Describer{}, form); }

}  // namespace uzip

// The forms that a setting's value can have: how each is read, shown and described. Used by the
// table in config.cpp only. Every form writes one field of Config.
#pragma once

#include "base/config.hpp"

#include <string>
#include <string_view>
#include <variant>

namespace uzip {

/// A whole number from `least` on; a negative value of the field means "not set" and is shown as
/// "".
struct IntegerForm {
  int Config::*field;
  int least;
};
/// Bytes with an optional factor K, M or G (powers of 1024); "auto" is 0.
struct BytesForm {
  size_t Config::*field;
};
/// Seconds, a decimal number.
struct SecondsForm {
  double Config::*field;
};
/// yes or no, in the usual spellings.
struct SwitchForm {
  bool Config::*field;
};
/// A whole number from 0 to `most`, or auto (-1).
struct CountForm {
  int Config::*field;
  int most;
};
/// auto (-1), no (0) or yes (1).
struct AutoSwitchForm {
  int Config::*field;
};
/// The index of a name among `count` names.
struct ChoiceForm {
  int Config::*field;
  const char* (*name)(int index);
  int count;
};
/// One of `count` names.
struct NameForm {
  std::string Config::*field;
  const char* (*name)(int index);
  int count;
};
/// Text without control characters; `what` says what it means.
struct TextForm {
  std::string Config::*field;
  const char* what;
  bool may_be_empty;
};

using SettingForm = std::variant<IntegerForm, CountForm, BytesForm, SecondsForm, SwitchForm, AutoSwitchForm,
                                 ChoiceForm, NameForm, TextForm>;

/// Sets the field from `text`; false, with the field unchanged, if the text does not have the form.
bool parse_setting(const SettingForm& form, std::string_view text, Config& config);

/// The field as text that parse_setting() reads back to the same value ("" if not set).
std::string print_setting(const SettingForm& form, const Config& config);

/// What is allowed, to follow "allowed is": "a whole number from 0 to 2147483647".
std::string describe_form(const SettingForm& form);

}  // namespace uzip

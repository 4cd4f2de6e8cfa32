#include "remote/letter_case.h"

#include <wctype.h>

#include <clocale>
#include <cwchar>

namespace persia::agent {
namespace {

// The libc's tables of letters. Without them (a minimal image), only ASCII letters change.
locale_t Utf8() {
  static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return utf8;
}

char ChangedAscii(char c, bool to_lower) {
  if (to_lower) return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - ('a' - 'A')) : c;
}

std::string Changed(std::string_view text, bool to_lower) {
  std::string out;
  const locale_t utf8 = Utf8();
  const locale_t before = utf8 == nullptr ? nullptr : uselocale(utf8);  // of this thread
  while (!text.empty()) {
    wchar_t letter = 0;
    mbstate_t state{};
    const size_t size = utf8 == nullptr ? 1 : std::mbrtowc(&letter, text.data(), text.size(), &state);
    if (size <= 1 || size > text.size()) {  // ASCII, or not UTF-8
      out += ChangedAscii(text.front(), to_lower);
      text.remove_prefix(1);
      continue;
    }
    const auto code = static_cast<wint_t>(letter);
    char bytes[16];
    state = {};
    const size_t written = std::wcrtomb(bytes, static_cast<wchar_t>(to_lower ? towlower(code) : towupper(code)), &state);
    out += written <= sizeof bytes ? std::string_view(bytes, written) : text.substr(0, size);
    text.remove_prefix(size);
  }
  if (before != nullptr) uselocale(before);
  return out;
}

}  // namespace

std::string Lowercase(std::string_view text) { return Changed(text, true); }
std::string Uppercase(std::string_view text) { return Changed(text, false); }

}  // namespace persia::agent

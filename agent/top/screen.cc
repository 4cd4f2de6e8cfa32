#include "top/screen.h"

// The macros of curses.h have names such as `erase`.
#define NCURSES_NOMACROS 1
#include <curses.h>
#include <langinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

// As in term.h, whose macros have names such as `lines` and `columns`.
extern "C" int setupterm(const char* terminal, int descriptor, int* error);

namespace persia::agent {
namespace {

std::atomic<int> ending_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

// An answer that comes between two polls of another agent is shown after this time.
constexpr std::chrono::milliseconds kDrawInterval(250);

void NoteSignal(int number) { ending_signal = number; }

// ncurses while it has the terminal.
class Terminal {
 public:
  Terminal() : screen_(Open()) {
    if (screen_ == nullptr) return;
    before_terminate_ = std::set_terminate([] {
      endwin();
      std::abort();
    });
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    set_escdelay(50);
    curs_set(0);
    if (has_colors() && start_color() == OK) {
      use_default_colors();
      init_pair(1, COLOR_GREEN, -1);
      init_pair(2, COLOR_YELLOW, -1);
      init_pair(3, COLOR_RED, -1);
    }
  }
  ~Terminal() {
    if (screen_ != nullptr) {
      endwin();
      delscreen(screen_);
      std::set_terminate(before_terminate_);
    }
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  [[nodiscard]] bool ok() const { return screen_ != nullptr; }

 private:
  static constexpr std::array<int, 4> kSignals{SIGINT, SIGTERM, SIGHUP, SIGQUIT};

  // ncurses replaces only default handlers, by ones that exit.
  SCREEN* Open() {
    for (size_t i = 0; i < kSignals.size(); ++i) {
      struct sigaction action {};
      action.sa_handler = NoteSignal;
      sigaction(kSignals[i], &action, &before_[i]);
    }
    return newterm(nullptr, stdout, stdin);
  }

  std::array<struct sigaction, 4> before_{};
  SCREEN* const screen_;
  std::terminate_handler before_terminate_ = nullptr;
};

attr_t AttributesOf(LineStyle style) {
  const bool colors = has_colors();
  switch (style) {
    case LineStyle::kTitle:
      return A_BOLD;
    case LineStyle::kGood:
      return A_BOLD | (colors ? COLOR_PAIR(1) : A_NORMAL);
    case LineStyle::kWarning:
      return A_BOLD | (colors ? COLOR_PAIR(2) : A_NORMAL);
    case LineStyle::kBad:
      return A_BOLD | (colors ? COLOR_PAIR(3) : A_NORMAL);
    case LineStyle::kDim:
      return A_DIM;
    case LineStyle::kKeys:
      return A_UNDERLINE;
    default:
      return A_NORMAL;
  }
}

void Draw(const Frame& frame) {
  erase();
  for (size_t i = 0; i < frame.lines.size(); ++i) {
    const FrameLine& line = frame.lines[i];
    const attr_t attributes = AttributesOf(line.style) | (line.selected ? A_REVERSE : A_NORMAL);
    attrset(attributes);
    mvaddstr(static_cast<int>(i), 0, line.text.c_str());
  }
  attrset(A_NORMAL);
  refresh();
}

// The key of a code of ncurses; false: none of ours.
bool KeyOf(int code, Key& key, char& text) {
  constexpr std::pair<int, Key> kCodes[] = {
      {KEY_UP, Key::kUp},     {KEY_DOWN, Key::kDown}, {KEY_PPAGE, Key::kPageUp},        {KEY_NPAGE, Key::kPageDown},
      {KEY_HOME, Key::kHome}, {KEY_END, Key::kEnd},   {KEY_ENTER, Key::kEnter},         {'\r', Key::kEnter},
      {'\n', Key::kEnter},    {27, Key::kEscape},     {KEY_BACKSPACE, Key::kBackspace}, {127, Key::kBackspace},
      {'\b', Key::kBackspace}};
  for (const auto& [known, meaning] : kCodes) {
    if (code != known) continue;
    key = meaning;
    return true;
  }
  if (code < ' ' || code > 0xff) return false;
  key = Key::kText;
  text = static_cast<char>(code);
  return true;
}

size_t RowOf(size_t selected, const std::vector<std::string>& rows) {
  return rows.empty() ? 0 : std::min(selected, rows.size() - 1);
}

// While a filter is typed.
void ApplyToFilter(TopView& view, Key key, char text) {
  constexpr size_t kMaxFilter = 100;
  if (key == Key::kText && view.filter.size() < kMaxFilter) view.filter += text;
  if (key == Key::kBackspace && !view.filter.empty()) view.filter.pop_back();
  if (key == Key::kEscape) view.filter.clear();
  if (key == Key::kEscape || key == Key::kEnter) view.types_filter = false;
}

bool ApplyLetter(TopView& view, char letter) {
  switch (letter) {
    case 'q':
      return false;
    case 's':
      view.sort = NextSortKey(view.sort);
      break;
    case 'r':
      view.reverse = !view.reverse;
      break;
    case '/':
      view.types_filter = true;
      break;
    case 'p':
      view.paused = !view.paused;
      break;
    case '?':
      view.help = true;
      break;
    default:
      break;
  }
  return true;
}

}  // namespace

Charset CharsetOfLocale() {
  std::setlocale(LC_CTYPE, "");
  return std::string_view(nl_langinfo(CODESET)) == "UTF-8" ? Charset::kUtf8 : Charset::kAscii;
}

std::optional<std::string> ProblemOfTerminal() {
  if (isatty(STDOUT_FILENO) == 0) return "stdout is not a terminal";
  if (isatty(STDIN_FILENO) == 0) return "stdin is not a terminal";
  int error = 0;
  const char* const name = std::getenv("TERM");
  const std::string shown = name == nullptr ? "" : name;
  if (setupterm(nullptr, STDOUT_FILENO, &error) != OK) return "the terminal type TERM=" + shown + " is not known";
  char capability[] = "cup";
  const char* const moves = tigetstr(capability);
  if (moves == nullptr || reinterpret_cast<intptr_t>(moves) == -1)
    return "a terminal with TERM=" + shown + " cannot move the cursor";
  return std::nullopt;
}

std::string ClockText() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%H:%M:%S", &local);
  return text.data();
}

bool ApplyKey(TopView& view, Key key, char text, const std::vector<std::string>& rows, size_t page) {
  if (view.types_filter) {
    ApplyToFilter(view, key, text);
    return true;
  }
  if (view.help) {
    view.help = false;
    return key != Key::kText || text != 'q';
  }
  const size_t last = rows.empty() ? 0 : rows.size() - 1;
  const size_t at = RowOf(view.selected, rows);
  switch (key) {
    case Key::kUp:
      view.selected = at > 0 ? at - 1 : 0;
      break;
    case Key::kDown:
      view.selected = std::min(at + 1, last);
      break;
    case Key::kPageUp:
      view.selected = at > page ? at - page : 0;
      break;
    case Key::kPageDown:
      view.selected = std::min(at + page, last);
      break;
    case Key::kHome:
      view.selected = 0;
      break;
    case Key::kEnd:
      view.selected = last;
      break;
    case Key::kEnter:
      view.only = view.only.empty() && !rows.empty() ? rows[at] : "";
      view.selected = 0;
      break;
    case Key::kEscape:
      view.filter.clear();
      view.only.clear();
      break;
    case Key::kText:
      return ApplyLetter(view, text);
    default:
      break;
  }
  return true;
}

Result<int> RunScreen(Fleet& fleet, std::chrono::milliseconds interval, Charset charset) {
  ending_signal = 0;
  const Terminal terminal;
  if (!terminal.ok()) return Error{"cannot open the terminal"};
  TopView view;
  std::vector<AgentView> agents;
  std::string clock;
  std::chrono::steady_clock::time_point drawn{};
  // Another thread may take SIGWINCH or an ending signal, which then interrupts no read of a key.
  constexpr int kKeyMilliseconds = 100;
  timeout(kKeyMilliseconds);
  for (bool changed = true;;) {
    if (ending_signal != 0) return ending_signal.load();
    const auto now = std::chrono::steady_clock::now();
    bool waits = std::any_of(agents.begin(), agents.end(), [](const AgentView& agent) { return !agent.answered; });
    waits = waits || agents.empty();
    const bool is_due = !view.paused && (now - drawn >= std::min(interval, kDrawInterval) || waits);
    if (is_due) {
      agents = fleet.Views();
      clock = ClockText();
      drawn = now;
    }
    int height = 0;
    int width = 0;
    getmaxyx(stdscr, height, width);
    const FrameSize size{.width = static_cast<size_t>(std::max(width, 1)),
                         .height = static_cast<size_t>(std::max(height, 1)),
                         .charset = charset,
                         .clock = clock};
    const Frame frame = BuildFrame(agents, view, size);
    if (changed || is_due) Draw(frame);
    const int code = getch();
    changed = code != ERR;
    if (code == ERR && isatty(STDIN_FILENO) == 0) return SIGHUP;  // the terminal is gone
    Key key{};
    char text = 0;
    if (code == KEY_RESIZE || !KeyOf(code, key, text)) continue;
    if (!ApplyKey(view, key, text, frame.rows, size.height > 4 ? size.height - 4 : 1)) return 0;
  }
}

}  // namespace persia::agent

#include "options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <type_traits>
#include <utility>

#include "job_error.h"

namespace embedding_job {
namespace {

constexpr double kDefaultDuration = 30;
constexpr size_t kHelpColumn = 29;

constexpr std::array<std::pair<Role, std::string_view>, 5> kRoles = {{
    {Role::kAll, "all"},
    {Role::kDataLoader, "data_loader"},
    {Role::kEmbeddingWorker, "embedding_worker"},
    {Role::kEmbeddingServer, "embedding_server"},
    {Role::kTrainer, "trainer"},
}};

[[noreturn]] void Refuse(std::string_view name, std::string_view value, std::string_view allowed) {
  throw JobError(std::string(name) + " \"" + std::string(value) + "\": " + std::string(allowed));
}

// A number of type T from `least` to `most`.
template <class T>
T ParseNumber(std::string_view name, std::string_view text, T least, T most) {
  T number{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  // Written so that NaN is refused.
  if (error != std::errc() || rest != text.data() + text.size() || !(number >= least && number <= most)) {
    std::string bounds = std::is_integral_v<T> ? "a whole number" : "a number";
    char digits[32];
    const auto shown = [&](T bound) { return std::string(digits, std::to_chars(digits, digits + sizeof(digits), bound).ptr); };
    Refuse(name, text, bounds + " from " + shown(least) + " to " + shown(most) + " is wanted");
  }
  return number;
}

Role ParseRole(std::string_view name, std::string_view text) {
  for (const auto& [role, role_name] : kRoles)
    if (text == role_name) return role;
  Refuse(name, text, "all, data_loader, embedding_worker, embedding_server or trainer is wanted");
}

std::vector<std::string> ParseList(std::string_view name, std::string_view text) {
  std::vector<std::string> items;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end == begin) Refuse(name, text, "addresses with a comma between them are wanted, as in a:7002,b:7002");
    items.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

struct Spec {
  std::string_view name;
  std::string_view argument;  // empty: none
  std::string_view help;      // empty: not shown in --help
  std::function<void(Options&, std::string_view name, std::string_view value)> set;
};

// An option that takes a number within bounds.
template <class T>
auto Number(T Options::*field, T least, T most) {
  return [=](Options& options, std::string_view name, std::string_view value) {
    options.*field = ParseNumber<T>(name, value, least, most);
  };
}

auto Text(std::string Options::*field) {
  return [=](Options& options, std::string_view name, std::string_view value) {
    if (value.empty()) Refuse(name, value, "it must not be empty");
    options.*field = value;
  };
}

const std::vector<Spec>& Specs() {
  constexpr double kDay = 86400;
  static const std::vector<Spec> specs = {
      {"--role", "ROLE",
       "all (default): the whole job on loopback; or data_loader, embedding_worker, embedding_server, trainer",
       [](Options& o, std::string_view n, std::string_view v) { o.role = ParseRole(n, v); }},
      {"--duration", "SECONDS", "how long to train (default 30, unless --epochs is given)",
       Number(&Options::duration, 0.001, 365 * kDay)},
      {"--epochs", "N", "how often to go through the text; with --duration, what ends first",
       Number<uint32_t>(&Options::epochs, 1, 1'000'000)},
      {"--corpus", "PATH", "a text file, or a folder of them (default: the licences and copyright files that every Debian has)",
       Text(&Options::corpus)},
      {"--max-words", "N", "how much of the text to read (default 0: all)",
       Number<uint64_t>(&Options::max_words, 0, 1'000'000'000)},
      {"--batch-size", "WORDS", "words in a batch (default 512)", Number<uint32_t>(&Options::batch_size, 1, 16384)},
      {"--dimension", "N", "numbers in an embedding, a multiple of 4 (default 32)",
       [](Options& o, std::string_view n, std::string_view v) {
         o.dimension = ParseNumber<uint32_t>(n, v, 4, 512);
         if (o.dimension % 4 != 0) Refuse(n, v, "a multiple of 4 is wanted");
       }},
      {"--staleness", "N", "batches in flight between look-up and update (default 4)",
       Number<uint32_t>(&Options::staleness, 1, 1024)},
      {"--pending", "N", "batches that may wait at the embedding worker (default 16)",
       Number<uint32_t>(&Options::pending, 1, 4096)},
      {"--server-replicas", "N", "embedding servers that --role all starts (default 2)",
       Number<uint32_t>(&Options::server_replicas, 1, 64)},
      {"--server-capacity", "ROWS", "rows that a server holds before it drops the least recently used (default 20000)",
       Number<uint64_t>(&Options::server_capacity, 16, 1'000'000'000)},
      {"--learning-rate", "X", "Adagrad's step (default 0.05)", Number(&Options::learning_rate, 1e-6, 10.0)},
      {"--inject-nan", "RATE", "share of gradients (of one feature in one batch) that the trainer breaks, 0 to 1 (default 0)",
       Number(&Options::inject_nan, 0.0, 1.0)},
      {"--seed", "N", "of all that is random (default 1)", Number<uint64_t>(&Options::seed, 0, UINT64_MAX)},
      {"--checkpoint-dir", "DIR", "where to write checkpoints (default: a fresh folder, removed at the end)",
       Text(&Options::checkpoint_dir)},
      {"--report", "FILE", "write, as JSON, what each process itself counted", Text(&Options::report)},
      {"--listen", "ADDRESS", "where this role listens: host:port, :port, or fd:N (embedding_worker, embedding_server)",
       Text(&Options::listen)},
      {"--servers", "A,B,...", "addresses of the embedding servers, in the order of their replicas (embedding_worker)",
       [](Options& o, std::string_view n, std::string_view v) { o.servers = ParseList(n, v); }},
      {"--worker", "ADDRESS", "address of the embedding worker (data_loader, trainer)", Text(&Options::worker)},
      {"--connect-timeout", "SECONDS", "how long to look for the other roles, which may start later (default 60)",
       Number(&Options::connect_timeout, 0.0, kDay)},
      {"--report-part", "", "", [](Options& o, std::string_view, std::string_view) { o.report_part = true; }},
      {"--help", "", "print this", [](Options& o, std::string_view, std::string_view) { o.help = true; }},
  };
  return specs;
}

void RequireAddress(const Options& options, std::string_view option, bool given) {
  if (!given) throw JobError("--role " + std::string(NameOf(options.role)) + " needs " + std::string(option));
}

}  // namespace

std::string_view NameOf(Role role) {
  return std::find_if(
             kRoles.begin(), kRoles.end(), [&](const auto& entry) { return entry.first == role; })
      ->second;
}

std::string HelpText() {
  std::string text =
      "embedding_job: trains word embeddings, asynchronously, in the processes of a recommender's training job:\n"
      "a data loader, an embedding worker, embedding servers and a trainer. All export their metrics.\n\n"
      "  embedding_job --duration 10                 the whole job, on this machine\n"
      "  embedding_job --role trainer --worker middleware:7001\n"
      "                                              one role of it\n\n"
      "Options:\n";
  for (const Spec& spec : Specs()) {
    if (spec.help.empty()) continue;
    std::string left = "  " + std::string(spec.name) + (spec.argument.empty() ? "" : " ") + std::string(spec.argument);
    left.resize(std::max(left.size() + 2, kHelpColumn), ' ');
    text += left + std::string(spec.help) + "\n";
  }
  return text +
         "\nSIGINT or SIGTERM, to any role, ends the job as its last epoch would: all batches are trained, a checkpoint and "
         "the\n"
         "report are written, and the exit code is 0.\n";
}

Options ParseOptions(const std::vector<std::string>& arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    const auto spec = std::find_if(Specs().begin(), Specs().end(), [&](const Spec& s) { return s.name == name; });
    if (spec == Specs().end()) throw JobError("unknown option \"" + std::string(argument) + "\"; see --help");
    std::string_view value;
    if (equals != std::string_view::npos) {
      value = argument.substr(equals + 1);
      if (spec->argument.empty()) Refuse(name, value, "this option takes no value");
    } else if (!spec->argument.empty()) {
      if (++i == arguments.size())
        throw JobError(std::string(name) + " needs a value: " + std::string(name) + " " + std::string(spec->argument));
      value = arguments[i];
    }
    spec->set(options, name, value);
  }
  if (options.help) return options;
  if (options.duration == 0 && options.epochs == 0) options.duration = kDefaultDuration;
  const bool listens = options.role == Role::kEmbeddingWorker || options.role == Role::kEmbeddingServer;
  RequireAddress(options, "--listen ADDRESS", !listens || !options.listen.empty());
  RequireAddress(options, "--servers A,B,...", options.role != Role::kEmbeddingWorker || !options.servers.empty());
  const bool asks = options.role == Role::kDataLoader || options.role == Role::kTrainer;
  RequireAddress(options, "--worker ADDRESS", !asks || !options.worker.empty());
  return options;
}

}  // namespace embedding_job

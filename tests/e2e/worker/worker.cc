// A worker of a job that reads commands from stdin, one per line, and answers each line when it is done:
//
//   count GROUP NAME BY       set GROUP NAME VALUE      observe GROUP NAME SECONDS
//   count_feat GROUP NAME FEAT BY                       exit CODE
//   emit NAME VALUE           as Benchmark AI's emit    event TYPE NAME
//   stream GROUP NAME VALUE   native GROUP NAME VALUE   adds to a stream, and to a native histogram
//   busy GROUP NAME           counts without end, in a separate thread
//
// So a test knows the job's counts without waiting for time to pass. The worker ends with code 0 at the end of stdin.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include "persia/metrics/metrics.h"

namespace {

using persia::metrics::Counter;
using persia::metrics::Description;
using persia::metrics::Family;
using persia::metrics::Gauge;
using persia::metrics::Histogram;
using persia::metrics::NativeBuckets;
using persia::metrics::Stream;
using persia::metrics::TimeCost;

void Obey(const std::string& verb, std::istream& rest) {
  if (verb == "exit") {
    int code = 0;
    rest >> code;
    std::exit(code);
  }
  if (verb == "emit") {
    std::string name;
    std::string number;
    rest >> name >> number;  // a stream reads no "inf"
    const auto result = persia::metrics::benchmarkai::Emit({{name, std::strtod(number.c_str(), nullptr)}});
    std::cerr << result.error;
    return;
  }
  std::string group;
  std::string name;
  rest >> group >> name;
  const Description about{.help = "Told by a test: " + name + "."};
  if (verb == "count_feat") {
    std::string feat;
    uint64_t by = 0;
    rest >> feat >> by;
    Family<Counter>(group, name, about).With({{"feat", feat}}).Increment(by);
    return;
  }
  if (verb == "busy") {
    std::thread([counter = Counter(group, name, about)]() mutable {
      for (;;) {
        counter.Increment();
      }
    }).detach();
    return;
  }
  if (verb == "event") {
    persia::metrics::events::Record(group, name, {{"told", true}});
    return;
  }
  double value = 0;
  rest >> value;
  if (verb == "count") {
    Counter(group, name, about).Increment(value);
  } else if (verb == "set") {
    Gauge(group, name, about).Set(value);
  } else if (verb == "observe") {
    TimeCost(group, name, about).Observe(value);
  } else if (verb == "stream") {
    Stream(group, name, about).Add(value);
  } else if (verb == "native") {
    Histogram(group, name, NativeBuckets{}, about).Observe(value);
  } else {
    std::cerr << "worker: no verb \"" << verb << "\"\n";
    std::exit(64);
  }
}

}  // namespace

int main() {
  const persia::metrics::InitResult result = persia::metrics::Init();
  std::cout << (result.exporting ? "exporting " : "private ") << result.detail << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    Obey(verb, words);
    if (!words) {
      std::cerr << "worker: cannot read \"" << line << "\"\n";
      return 64;
    }
    std::cout << "done " << line << std::endl;
  }
}

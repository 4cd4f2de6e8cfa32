// A worker that counts until its input ends, and then prints its count.
#include <persia/metrics/metrics.h>
#include <poll.h>

#include <cstdio>

int main() {
  persia::metrics::Counter steps("packages", "steps_total", {.help = "Steps of this process."});
  long count = 0;
  for (pollfd input{.fd = 0, .events = POLLIN, .revents = 0}; poll(&input, 1, 1) == 0; ++count) steps.Increment();
  std::printf("%ld\n", count);
}

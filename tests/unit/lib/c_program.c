/* All of c.h, by a program in C. */
#include "c_program.h"

#include <string.h>

#include "persia/metrics/c.h"

int RecordInC(void) {
  const persia_metrics_pair_t labels[] = {{"feat", "user"}, {"zone", "eu"}};
  const persia_metrics_pair_t turned[] = {{"zone", "eu"}, {"feat", "user"}};
  const double bounds[] = {1, 2};
  const persia_metrics_pair_t metadata[] = {{"path", "/ckpt"}, {"reason", NULL}};
  if (persia_metrics_init("c_job", "trainer", 3) != 1) return 1;

  persia_metrics_counter_t* batches = persia_metrics_counter("c_app", "batches", "Batches.", labels, 2);
  if (batches != persia_metrics_counter("c_app", "batches", NULL, turned, 2)) return 2;
  persia_metrics_counter_add(batches, 2);
  persia_metrics_counter_add(batches, 0.5);
  persia_metrics_counter_add(NULL, 1);

  persia_metrics_gauge_t* staleness = persia_metrics_gauge("c_app", "staleness", NULL, NULL, 0);
  persia_metrics_gauge_set(staleness, 7);
  persia_metrics_gauge_add(staleness, -0.5);

  persia_metrics_histogram_t* sizes = persia_metrics_histogram("c_app", "sizes", NULL, bounds, 2, NULL, 0);
  persia_metrics_histogram_observe(sizes, 1.5);
  persia_metrics_histogram_t* seconds = persia_metrics_histogram("c_app", "step", NULL, NULL, 0, NULL, 0);
  persia_metrics_histogram_observe(seconds, 0.25);

  persia_metrics_histogram_observe(persia_metrics_native_histogram("c_app", "native", NULL, 2, 0, 1, 4, NULL, 0), 1.5);

  persia_metrics_stream_add(persia_metrics_stream("c_app", "latency", NULL, NULL, 0), 12.5);
  persia_metrics_event("saved", "c_app", metadata, 2);
  persia_metrics_event("started", NULL, NULL, 0);

  char error[64];
  memset(error, 'x', sizeof error);
  if (persia_metrics_emit(NULL, 0, error, sizeof error) == 0 || strstr(error, "empty map") == NULL) return 3;
  if (strlen(error) >= sizeof error) return 4;
  const persia_metrics_number_t numbers[] = {{"c.latency", 4}};
  return persia_metrics_emit(numbers, 1, NULL, 0) == 0 ? 0 : 5;
}

/* All of c.h, by a program in C. */
#include "c_program.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

#include "persia/metrics/c.h"

static const persia_metrics_pair_t kLabels[] = {{"feat", "user"}, {"zone", "eu"}};
static const persia_metrics_pair_t kTurned[] = {{"zone", "eu"}, {"feat", "user"}};
static const double kBounds[] = {1, 2};
static const double kOtherBounds[] = {1, 3};

int RecordInC(void) {
  const persia_metrics_description_t about = {.help = "Batches.", .unit = "batches", .labels = kLabels, .label_count = 2};
  const persia_metrics_description_t turned = {.labels = kTurned, .label_count = 2};
  const persia_metrics_pair_t metadata[] = {{"path", "/ckpt"}, {"reason", NULL}};
  if (persia_metrics_init("c_job", "trainer", 3) != 1 || persia_metrics_exporting() != 1) return 1;

  persia_metrics_counter_t* batches = persia_metrics_counter("c_app", "batches", &about);
  if (batches != persia_metrics_counter("c_app", "batches", &turned)) return 2;
  persia_metrics_counter_add(batches, 2);
  persia_metrics_counter_add(batches, 0.5);
  persia_metrics_counter_add(NULL, 1);

  persia_metrics_gauge_t* staleness = persia_metrics_gauge("c_app", "staleness", PERSIA_METRICS_GAUGE_MAX, NULL);
  persia_metrics_gauge_set(staleness, 7);
  persia_metrics_gauge_add(staleness, -0.5);

  persia_metrics_histogram_t* sizes = persia_metrics_histogram("c_app", "sizes", kBounds, 2, NULL);
  persia_metrics_histogram_observe(sizes, 1.5);
  persia_metrics_histogram_t* seconds = persia_metrics_histogram("c_app", "step", NULL, 0, NULL);
  persia_metrics_histogram_observe_many(seconds, 0.25, 1);

  const persia_metrics_native_buckets_t buckets = {.factor = 2, .zero_threshold = 1, .most = 4};
  persia_metrics_histogram_observe(persia_metrics_native_histogram("c_app", "native", &buckets, NULL), 1.5);
  persia_metrics_time_cost_observe(persia_metrics_time_cost("c_app", "cost", kBounds, 2, NULL), 0.5);

  persia_metrics_stream_add(persia_metrics_stream("c_app", "latency", NULL), 12.5);
  persia_metrics_event("c_app", "saved", metadata, 2);
  persia_metrics_event(NULL, "started", NULL, 0);

  char error[64];
  memset(error, 'x', sizeof error);
  if (persia_metrics_emit(NULL, 0, error, sizeof error) != PERSIA_METRICS_EMIT_EMPTY_MAP || strstr(error, "empty map") == NULL)
    return 3;
  if (strlen(error) >= sizeof error) return 4;
  const persia_metrics_number_t numbers[] = {{"c.latency", 4}};
  return persia_metrics_emit(numbers, 1, NULL, 0) == PERSIA_METRICS_EMIT_DONE ? 0 : 5;
}

int AskAgainInC(void) {
  persia_metrics_histogram_t* sizes = persia_metrics_histogram("c_app", "sizes", kBounds, 2, NULL);
  persia_metrics_histogram_t* others = persia_metrics_histogram("c_app", "sizes", kOtherBounds, 2, NULL);
  persia_metrics_gauge_t* last = persia_metrics_gauge("c_app", "gauge", PERSIA_METRICS_GAUGE_LAST, NULL);
  persia_metrics_gauge_t* sum = persia_metrics_gauge("c_app", "gauge", PERSIA_METRICS_GAUGE_SUM, NULL);
  if (sizes == others || last == sum) return 1;
  persia_metrics_histogram_observe(sizes, 1);
  persia_metrics_histogram_observe(others, 1);
  persia_metrics_gauge_set(sum, 1);
  double value = 0;
  if (persia_metrics_histogram_value(sizes, NULL, NULL, 0) != 1 || persia_metrics_histogram_value(others, NULL, NULL, 0) != 0)
    return 2;
  if (persia_metrics_gauge_value(last, &value) != 0 || persia_metrics_gauge_value(sum, &value) != 0) return 3;
  return persia_metrics_histogram("c_app", "sizes", kOtherBounds, 2, NULL) == others ? 0 : 4;
}

struct seen {
  int series;
  double batches;
  uint64_t in_second_bucket;
  int unset;
};

static void Visit(const persia_metrics_series_t* series, void* context) {
  struct seen* seen = context;
  ++seen->series;
  if (strcmp(series->name, "batches") == 0 && series->kind == PERSIA_METRICS_COUNTER && series->label_count == 2 &&
      strcmp(series->labels[0].name, "feat") == 0 && strcmp(series->unit, "batches") == 0) {
    seen->batches = series->value;
  }
  if (strcmp(series->name, "sizes") == 0 && series->bound_count == 2 && series->bounds[1] == 2) {
    seen->in_second_bucket = series->buckets[1];
  }
  if (series->kind == PERSIA_METRICS_GAUGE && !series->has_value) ++seen->unset;
}

int ReadInC(void) {
  struct seen seen = {0, 0, 0, 0};
  double value = 0;
  double sum = 0;
  uint64_t buckets[4] = {9, 9, 9, 9};
  if (RecordInC() != 0) return 1;
  persia_metrics_gauge_t* unset = persia_metrics_gauge("c_app", "unset", PERSIA_METRICS_GAUGE_LAST, NULL);
  const size_t count = persia_metrics_read(&Visit, &seen);
  if (count != (size_t)seen.series || seen.batches != 2.5 || seen.in_second_bucket != 1 || seen.unset != 1) return 2;
  if (!persia_metrics_read_value("c_app", "batches", kTurned, 2, &value) || value != 2.5) return 3;
  if (persia_metrics_read_value("c_app", "batches", NULL, 0, &value)) return 4;
  if (persia_metrics_gauge_value(unset, &value) || persia_metrics_gauge_value(NULL, &value)) return 5;
  if (persia_metrics_histogram_value(persia_metrics_histogram("c_app", "sizes", kBounds, 2, NULL), &sum, buckets, 4) != 1)
    return 6;
  if (sum != 1.5 || buckets[0] != 0 || buckets[1] != 1 || buckets[2] != 0 || buckets[3] != 0) return 7;
  if (persia_metrics_time_cost_value(persia_metrics_time_cost("c_app", "cost", kBounds, 2, NULL), &sum, &value, NULL, 0) != 1)
    return 8;
  if (sum != 0.5 || value != 0.5) return 9;
  persia_metrics_stream_t* latency = persia_metrics_stream("c_app", "latency", NULL);
  persia_metrics_stream_add_many(latency, 2, 3);
  if (persia_metrics_stream_value(latency, &sum, &value) != 4 || sum != 18.5 || value != 2) return 10;
  if (persia_metrics_event_count("c_app", "saved") != 1 || persia_metrics_event_count(NULL, "started") != 1) return 11;
  if (persia_metrics_counter_value(NULL) != 0 || persia_metrics_stream_value(NULL, &sum, &value) != 0) return 12;
  return 0;
}

static double Seven(void* context) {
  __atomic_add_fetch((int*)context, 1, __ATOMIC_RELEASE);
  return 7;
}

static int CallsReach(const int* calls, int wanted) {
  const struct timespec moment = {0, 1000000};
  for (int i = 0; i < 30000; ++i) {
    if (__atomic_load_n(calls, __ATOMIC_ACQUIRE) >= wanted) return 1;
    nanosleep(&moment, NULL);
  }
  return 0;
}

int FollowInC(void) {
  static int of_gauge = 0;
  static int of_counter = 0;
  double value = 0;
  persia_metrics_set_callback_period(0.01);
  persia_metrics_gauge_t* gauge = persia_metrics_gauge("c_app", "followed", PERSIA_METRICS_GAUGE_LAST, NULL);
  persia_metrics_counter_t* counter = persia_metrics_counter("c_app", "total", NULL);
  persia_metrics_gauge_set_function(gauge, &Seven, &of_gauge);
  persia_metrics_counter_set_function(counter, &Seven, &of_counter);
  if (!CallsReach(&of_gauge, 3) || !CallsReach(&of_counter, 3)) return 1;
  if (!persia_metrics_gauge_value(gauge, &value) || value != 7 || persia_metrics_counter_value(counter) != 7) return 2;
  persia_metrics_gauge_set_function(gauge, NULL, NULL);
  persia_metrics_counter_set_function(counter, NULL, NULL);
  if (persia_metrics_gauge_value(gauge, &value)) return 3;
  persia_metrics_gauge_set(gauge, 1);
  persia_metrics_gauge_unset(gauge);
  if (persia_metrics_gauge_value(gauge, &value)) return 4;

  const persia_metrics_pair_t first[] = {{"version", "1"}};
  const persia_metrics_pair_t second[] = {{"version", "2"}};
  persia_metrics_info_t* build = persia_metrics_info("c_app", "build", NULL);
  persia_metrics_info_set(build, first, 1);
  persia_metrics_info_set(build, second, 1);
  persia_metrics_info_set(NULL, second, 1);
  if (persia_metrics_read_value("c_app", "build_info", first, 1, &value)) return 5;
  if (!persia_metrics_read_value("c_app", "build_info", second, 1, &value) || value != 1) return 6;

  const char* const states[] = {"warm", "train"};
  persia_metrics_enum_t* phase = persia_metrics_enum("c_app", "phase", states, 2, NULL);
  if (persia_metrics_enum_value(phase) != 0 || persia_metrics_enum_value(NULL) != -1) return 7;
  persia_metrics_enum_set(phase, "train");
  persia_metrics_enum_set(phase, "other");
  if (persia_metrics_enum_value(phase) != 1) return 8;

  persia_metrics_info_unset(build);
  persia_metrics_info_unset(NULL);
  persia_metrics_count_steps(2);
  persia_metrics_count_samples(64);
  persia_metrics_count_tokens(512);
  persia_metrics_set_total_steps(10);
  if (!persia_metrics_read_value("persia_phase", "step", NULL, 0, &value) || value != 2) return 10;
  if (!persia_metrics_read_value("persia_progress", "samples_total", NULL, 0, &value) || value != 64) return 11;
  if (!persia_metrics_read_value("persia_progress", "tokens_total", NULL, 0, &value) || value != 512) return 12;
  if (!persia_metrics_read_value("persia_progress", "planned_steps", NULL, 0, &value) || value != 10) return 13;

  persia_metrics_enum_unset(phase);
  persia_metrics_enum_unset(NULL);
  return persia_metrics_enum_value(phase) == -1 && !persia_metrics_read_value("c_app", "build_info", second, 1, &value) ? 0 : 9;
}

int ScopeInC(void) {
  persia_metrics_counter_t* counter = persia_metrics_counter("c_app", "steps", NULL);
  persia_metrics_counter_add(counter, 5);
  persia_metrics_scope_t* scope = persia_metrics_scope_begin();
  persia_metrics_counter_add(counter, 2);
  if (persia_metrics_counter_value(counter) != 2) return 1;
  persia_metrics_scope_end(scope);
  return persia_metrics_counter_value(counter) == 7 ? 0 : 2;
}

int RemoveInC(void) {
  const persia_metrics_description_t about = {.labels = kLabels, .label_count = 2};
  double value = 0;
  persia_metrics_counter_t* counter = persia_metrics_counter("c_app", "removed", &about);
  persia_metrics_counter_add(counter, 3);
  if (persia_metrics_remove("c_app", "removed", NULL, 0) || persia_metrics_remove("c_app", "none", kLabels, 2)) return 1;
  if (!persia_metrics_remove("c_app", "removed", kTurned, 2) || persia_metrics_remove("c_app", "removed", kLabels, 2)) return 2;
  persia_metrics_counter_add(counter, 10);
  if (persia_metrics_read_value("c_app", "removed", kLabels, 2, &value)) return 3;
  if (persia_metrics_counter("c_app", "removed", &about) != counter) return 4;
  persia_metrics_counter_add(counter, 1);
  if (!persia_metrics_read_value("c_app", "removed", kLabels, 2, &value) || value != 1) return 5;
  persia_metrics_clear("c_app", "removed");
  persia_metrics_clear("c_app", "none");
  return persia_metrics_read_value("c_app", "removed", kLabels, 2, &value) ? 6 : 0;
}

/* The library for C, and for any language that can call C.
 *
 *   persia_metrics_init("dlrm", "trainer", 0);
 *   persia_metrics_counter_t* batches = persia_metrics_counter("my_app", "batches", "Batches trained.", NULL, 0);
 *   persia_metrics_counter_add(batches, 1);
 *
 * Strings are UTF-8 and end in NUL; the library copies them. A string may be NULL only where its comment says so. A function
 * that returns a handle never returns NULL. Two requests for one metric with the same labels return the same handle. Handles
 * are never freed. If a metric is refused (instruments.h says when), its handle counts nothing. Recording through a NULL handle
 * does nothing.
 *
 * Thread safety: any function, from any thread, but not inside a signal handler. Adding, setting and observing take no lock,
 * make no system call and allocate nothing. Requesting a handle does all three: request it once and keep it.
 */
#ifndef PERSIA_METRICS_C_H_
#define PERSIA_METRICS_C_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PERSIA_METRICS_C_API __attribute__((visibility("default")))
#else
#define PERSIA_METRICS_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A number that only goes up: batches trained, bytes sent. It starts at 0. */
typedef struct persia_metrics_counter persia_metrics_counter_t;
/* A number that goes up and down: staleness, pending batches. It is not exported until it is first set. If several processes of
 * one identity set it, the agent exports the last value (GaugeMerge::kLast in instruments.h). */
typedef struct persia_metrics_gauge persia_metrics_gauge_t;
/* A distribution of durations or sizes. It is exported with its buckets, sum and count. */
typedef struct persia_metrics_histogram persia_metrics_histogram_t;
/* Measured values; a rule of the agent decides how they are exported (stream.h). */
typedef struct persia_metrics_stream persia_metrics_stream_t;

/* A name and its value: a label, or an event's metadata entry. */
typedef struct {
  const char* name;  /* not NULL */
  const char* value; /* not NULL */
} persia_metrics_pair_t;

/* A named number, for persia_metrics_emit. */
typedef struct {
  const char* name; /* not NULL */
  double value;     /* any double, including NaN and infinities */
} persia_metrics_number_t;

/* Tells the library which process this is (init.h). A NULL `job_name`, a NULL `role` and a negative `replica` are taken from
 * the environment. Returns 1 if an agent can see this process's metrics, else 0. */
PERSIA_METRICS_C_API int persia_metrics_init(const char* job_name, const char* role, int replica);

/* The counter (`group`, `name`) with these labels. `help` is one sentence: what is counted, and in which unit. It may be NULL.
 * `labels` may be NULL if `label_count` is 0. The same holds for the other kinds of metric. */
PERSIA_METRICS_C_API persia_metrics_counter_t* persia_metrics_counter(const char* group, const char* name, const char* help,
                                                                      const persia_metrics_pair_t* labels, size_t label_count);
/* Adds `by`. A negative or non-finite `by` is ignored and counted as dropped. */
PERSIA_METRICS_C_API void persia_metrics_counter_add(persia_metrics_counter_t* counter, double by);

/* The gauge (`group`, `name`) with these labels. */
PERSIA_METRICS_C_API persia_metrics_gauge_t* persia_metrics_gauge(const char* group, const char* name, const char* help,
                                                                  const persia_metrics_pair_t* labels, size_t label_count);
/* Sets the value: any double, including NaN and infinities. The last of several concurrent calls wins. */
PERSIA_METRICS_C_API void persia_metrics_gauge_set(persia_metrics_gauge_t* gauge, double value);
/* Adds `by`, which may be negative. A gauge that was never set starts from 0. Concurrent calls lose nothing. */
PERSIA_METRICS_C_API void persia_metrics_gauge_add(persia_metrics_gauge_t* gauge, double by);

/* The histogram (`group`, `name`) with these labels. `bounds` are `bound_count` inclusive upper bounds, ascending, finite, at
 * most 500. NULL: the default bounds, 100 microseconds to 10 seconds, in seconds. */
PERSIA_METRICS_C_API persia_metrics_histogram_t* persia_metrics_histogram(const char* group, const char* name, const char* help,
                                                                          const double* bounds, size_t bound_count,
                                                                          const persia_metrics_pair_t* labels,
                                                                          size_t label_count);
/* The native histogram (`group`, `name`) with these labels. The options are those of NativeBuckets (instruments.h), whose
 * defaults are 1.1, 160, 0x1p-20 and 0x1p20. */
PERSIA_METRICS_C_API persia_metrics_histogram_t* persia_metrics_native_histogram(
    const char* group, const char* name, const char* help, double factor, unsigned short max_buckets, double zero_threshold,
    double most, const persia_metrics_pair_t* labels, size_t label_count);
/* Adds one observation. A NaN is ignored and counted as dropped. An infinity is counted, and makes the sum infinite. */
PERSIA_METRICS_C_API void persia_metrics_histogram_observe(persia_metrics_histogram_t* histogram, double value);

/* The stream (`group`, `name`) with these labels. */
PERSIA_METRICS_C_API persia_metrics_stream_t* persia_metrics_stream(const char* group, const char* name, const char* help,
                                                                    const persia_metrics_pair_t* labels, size_t label_count);
/* Records a value. A NaN becomes the last value, but is not added to sums and buckets. */
PERSIA_METRICS_C_API void persia_metrics_stream_add(persia_metrics_stream_t* stream, double value);

/* Records that the event `name` happened now (events.h). A NULL `type` means "torchelastic". `metadata` may be NULL if
 * `metadata_count` is 0; its values are recorded as texts. */
PERSIA_METRICS_C_API void persia_metrics_event(const char* name, const char* type, const persia_metrics_pair_t* metadata,
                                               size_t metadata_count);

/* Benchmark AI's emit (emit.h). Returns 0 on success, else a value of EmitStatus. If `error` is not NULL, it receives the error
 * text, empty on success and cut to `error_bytes` including the NUL. */
PERSIA_METRICS_C_API int persia_metrics_emit(const persia_metrics_number_t* metrics, size_t count, char* error,
                                             size_t error_bytes);

#ifdef __cplusplus
}
#endif

#endif

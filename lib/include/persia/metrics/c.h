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

typedef struct persia_metrics_counter persia_metrics_counter_t;
typedef struct persia_metrics_gauge persia_metrics_gauge_t;
typedef struct persia_metrics_histogram persia_metrics_histogram_t;
typedef struct persia_metrics_stream persia_metrics_stream_t;

/* A name and its value: a label, or an event's metadata entry. */
typedef struct {
  const char* name;
  const char* value;
} persia_metrics_pair_t;

/* A named number, for persia_metrics_emit. */
typedef struct {
  const char* name;
  double value;
} persia_metrics_number_t;

/* Tells the library which process this is (init.h). A NULL `job_name`, a NULL `role` and a negative `replica` are taken from
 * the environment. Returns 1 if an agent can see this process's metrics, else 0. */
PERSIA_METRICS_C_API int persia_metrics_init(const char* job_name, const char* role, int replica);

/* `help` may be NULL. `labels` may be NULL if `label_count` is 0. The same holds for the other kinds of metric. */
PERSIA_METRICS_C_API persia_metrics_counter_t* persia_metrics_counter(const char* group, const char* name, const char* help,
                                                                      const persia_metrics_pair_t* labels, size_t label_count);
PERSIA_METRICS_C_API void persia_metrics_counter_add(persia_metrics_counter_t* counter, double by);

PERSIA_METRICS_C_API persia_metrics_gauge_t* persia_metrics_gauge(const char* group, const char* name, const char* help,
                                                                  const persia_metrics_pair_t* labels, size_t label_count);
PERSIA_METRICS_C_API void persia_metrics_gauge_set(persia_metrics_gauge_t* gauge, double value);
PERSIA_METRICS_C_API void persia_metrics_gauge_add(persia_metrics_gauge_t* gauge, double by);

/* `bounds` are inclusive upper bounds, ascending and finite. NULL: the default bounds, 100 microseconds to 10 seconds, in
 * seconds. */
PERSIA_METRICS_C_API persia_metrics_histogram_t* persia_metrics_histogram(const char* group, const char* name, const char* help,
                                                                          const double* bounds, size_t bound_count,
                                                                          const persia_metrics_pair_t* labels,
                                                                          size_t label_count);
PERSIA_METRICS_C_API void persia_metrics_histogram_observe(persia_metrics_histogram_t* histogram, double value);

/* A stream (stream.h): a rule of the agent decides how its values are exported. */
PERSIA_METRICS_C_API persia_metrics_stream_t* persia_metrics_stream(const char* group, const char* name, const char* help,
                                                                    const persia_metrics_pair_t* labels, size_t label_count);
PERSIA_METRICS_C_API void persia_metrics_stream_add(persia_metrics_stream_t* stream, double value);

/* Records an event (events.h). A NULL `type` means "torchelastic". */
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

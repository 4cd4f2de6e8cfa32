/* The library for C, and for whatever can call C.
 *
 *   persia_metrics_init("dlrm", "trainer", 0);
 *   persia_metrics_counter_t* batches = persia_metrics_counter("my_app", "batches", "Batches trained.", NULL, 0);
 *   persia_metrics_counter_add(batches, 1);
 *
 * Strings are UTF-8, end in NUL, are copied, and may be NULL where it says so. Handles are never freed: asking twice for one
 * metric and one set of labels gives the same one. A handle that is refused (instruments.h says when) counts nothing, and is
 * never NULL; recording through a NULL handle does nothing.
 *
 * Thread safety: any function, any thread; not inside signal handlers. Adding, setting and observing take no lock, no system
 * call and no allocation; asking for a handle does, so keep them.
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

/* A name and its value: a label, or metadata of an event. */
typedef struct {
  const char* name;
  const char* value;
} persia_metrics_pair_t;

/* A number with its name, for persia_metrics_emit. */
typedef struct {
  const char* name;
  double value;
} persia_metrics_number_t;

/* Says who this process is. `job_name` and `role` may be NULL: as the environment says; so does a negative `replica`. Returns 1
 * if the agent can see this process's metrics, else 0. */
PERSIA_METRICS_C_API int persia_metrics_init(const char* job_name, const char* role, int replica);

/* `help` may be NULL; `labels` too if `label_count` is 0. */
PERSIA_METRICS_C_API persia_metrics_counter_t* persia_metrics_counter(const char* group, const char* name, const char* help,
                                                                      const persia_metrics_pair_t* labels, size_t label_count);
PERSIA_METRICS_C_API void persia_metrics_counter_add(persia_metrics_counter_t* counter, double by);

PERSIA_METRICS_C_API persia_metrics_gauge_t* persia_metrics_gauge(const char* group, const char* name, const char* help,
                                                                  const persia_metrics_pair_t* labels, size_t label_count);
PERSIA_METRICS_C_API void persia_metrics_gauge_set(persia_metrics_gauge_t* gauge, double value);
PERSIA_METRICS_C_API void persia_metrics_gauge_add(persia_metrics_gauge_t* gauge, double by);

/* `bounds` are inclusive upper bounds, ascending and finite; NULL: from 100 microseconds to 10 seconds, in seconds. */
PERSIA_METRICS_C_API persia_metrics_histogram_t* persia_metrics_histogram(const char* group, const char* name, const char* help,
                                                                          const double* bounds, size_t bound_count,
                                                                          const persia_metrics_pair_t* labels,
                                                                          size_t label_count);
PERSIA_METRICS_C_API void persia_metrics_histogram_observe(persia_metrics_histogram_t* histogram, double value);

/* Values of which a rule of the agent says what they are shown as (stream.h). */
PERSIA_METRICS_C_API persia_metrics_stream_t* persia_metrics_stream(const char* group, const char* name, const char* help,
                                                                    const persia_metrics_pair_t* labels, size_t label_count);
PERSIA_METRICS_C_API void persia_metrics_stream_add(persia_metrics_stream_t* stream, double value);

/* An event (events.h). `type` may be NULL: torchelastic. */
PERSIA_METRICS_C_API void persia_metrics_event(const char* name, const char* type, const persia_metrics_pair_t* metadata,
                                               size_t metadata_count);

/* Benchmark AI's emit (emit.h). Returns 0, or a value of EmitStatus; `error`, if not NULL, then gets what is wrong, cut to
 * `error_bytes` with its NUL. */
PERSIA_METRICS_C_API int persia_metrics_emit(const persia_metrics_number_t* metrics, size_t count, char* error,
                                             size_t error_bytes);

#ifdef __cplusplus
}
#endif

#endif

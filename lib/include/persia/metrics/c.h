/* The library for C, and for any language that can call C.
 *
 *   persia_metrics_init("dlrm", "trainer", 0);
 *   const persia_metrics_description_t about = {.help = "Batches trained."};
 *   persia_metrics_counter_t* batches = persia_metrics_counter("my_app", "batches", &about);
 *   persia_metrics_counter_add(batches, 1);
 *
 * Strings are UTF-8 and end in NUL; the library copies them. A string may be NULL only where its comment says so. A function
 * that returns a handle never returns NULL. Two requests for one metric with the same labels return the same handle. Handles
 * are never freed. If a metric is refused (instruments.h says when), its handle counts nothing. A second request with another
 * merge policy or other bounds is refused: it returns another handle than the first one. A NULL handle counts nothing,
 * too.
 *
 * The arguments are in one order: group, name, what the kind of metric needs, and the description, which may be NULL.
 *
 * Thread safety: any function, from any thread, but not inside a signal handler or a replaced malloc. Adding, setting and
 * observing take no lock, make no system call and allocate nothing. Requesting a handle does all three: request it once and
 * keep it.
 */
#ifndef PERSIA_METRICS_C_H_
#define PERSIA_METRICS_C_H_

#include <stddef.h>
#include <stdint.h>

#include "persia/metrics/export.h"
#include "persia/metrics/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A number that only goes up: batches trained, bytes sent. It starts at 0. */
typedef struct persia_metrics_counter_t persia_metrics_counter_t;
/* A number that goes up and down: staleness, pending batches. It is not exported until it is set. */
typedef struct persia_metrics_gauge_t persia_metrics_gauge_t;
/* A distribution of durations or sizes. It is exported with its buckets, sum and count. */
typedef struct persia_metrics_histogram_t persia_metrics_histogram_t;
/* A duration, exported as the histogram `<name>` in seconds and the gauge `<name>_sec` with the last duration. */
typedef struct persia_metrics_time_cost_t persia_metrics_time_cost_t;
/* Measured values; a rule of the agent decides how they are exported (stream.h). */
typedef struct persia_metrics_stream_t persia_metrics_stream_t;

/* A name and its value: a label, or an event's metadata entry. */
typedef struct {
  const char* name;  /* not NULL */
  const char* value; /* not NULL */
} persia_metrics_pair_t;

/* The description of a metric: Description in labels.h. */
typedef struct {
  const char* help;                    /* one sentence: what is counted, where, and in which unit; may be NULL */
  const char* unit;                    /* the base unit in the plural, "seconds"; may be NULL */
  const persia_metrics_pair_t* labels; /* the labels of this series; may be NULL if label_count is 0 */
  size_t label_count;                  /* how many labels */
} persia_metrics_description_t;

/* How the agent merges the gauges of several processes that have one identity: GaugeMerge in instruments.h. */
typedef enum {
  PERSIA_METRICS_GAUGE_LAST = 0, /* the value that changed last */
  PERSIA_METRICS_GAUGE_SUM = 1,  /* the sum of the values */
  PERSIA_METRICS_GAUGE_MIN = 2,  /* the lowest value */
  PERSIA_METRICS_GAUGE_MAX = 3,  /* the highest value */
  PERSIA_METRICS_GAUGE_AVG = 4,  /* the mean of the values */
  PERSIA_METRICS_GAUGE_EACH = 5  /* a series for each process */
} persia_metrics_gauge_merge_t;

/* The buckets of a native histogram: NativeBuckets in instruments.h. */
typedef struct {
  double factor;         /* by how much a bucket's upper bound exceeds its lower one, at most; above 1, usually 1.1 */
  uint16_t max_buckets;  /* beyond this number, the exported buckets are coarser; usually 160; 0: no limit */
  double zero_threshold; /* values up to it count in the zero bucket; above 0, usually 0x1p-20 */
  double most;           /* the last bound; usually 0x1p20 */
} persia_metrics_native_buckets_t;

/* A named number, for persia_metrics_emit. */
typedef struct {
  const char* name; /* not NULL */
  double value;     /* any double, including NaN and infinities */
} persia_metrics_number_t;

/* Tells the library which process this is (init.h). A NULL `job_name`, a NULL `role` and a negative `replica` are taken from
 * the environment. Returns 1 if an agent can see this process's metrics, else 0. */
PERSIA_METRICS_API int persia_metrics_init(const char* job_name, const char* role, int replica);
/* Whether an export was requested, and metrics are not disabled: Exporting in init.h. 1 or 0. */
PERSIA_METRICS_API int persia_metrics_exporting(void);

/* The counter (`group`, `name`) with the labels of `about`, which may be NULL. */
PERSIA_METRICS_API persia_metrics_counter_t* persia_metrics_counter(const char* group, const char* name,
                                                                    const persia_metrics_description_t* about);
/* Adds `by`. A negative or non-finite `by` is ignored and counted as dropped. */
PERSIA_METRICS_API void persia_metrics_counter_add(persia_metrics_counter_t* counter, double by);
/* The count. */
PERSIA_METRICS_API double persia_metrics_counter_value(const persia_metrics_counter_t* counter);

/* The gauge (`group`, `name`) with the labels of `about`, which may be NULL. */
PERSIA_METRICS_API persia_metrics_gauge_t* persia_metrics_gauge(const char* group, const char* name,
                                                                persia_metrics_gauge_merge_t merge,
                                                                const persia_metrics_description_t* about);
/* Sets the value: any double, including NaN and infinities. The last of several concurrent calls wins. */
PERSIA_METRICS_API void persia_metrics_gauge_set(persia_metrics_gauge_t* gauge, double value);
/* Adds `by`, which may be negative. A gauge that was never set starts from 0. Concurrent calls lose nothing. */
PERSIA_METRICS_API void persia_metrics_gauge_add(persia_metrics_gauge_t* gauge, double by);
/* Stores the value in `*value`, and returns 1. Returns 0, and stores nothing, if it was never set. */
PERSIA_METRICS_API int persia_metrics_gauge_value(const persia_metrics_gauge_t* gauge, double* value);

/* Takes the value away: the gauge is not exported until it is set again. */
PERSIA_METRICS_API void persia_metrics_gauge_unset(persia_metrics_gauge_t* gauge);
/* From now on, a thread of the library calls `function(context)` once a period, and sets the gauge to the result (callback.h).
 * NULL ends this, and takes the value away. When this returns, the former function does not run any more. */
PERSIA_METRICS_API void persia_metrics_gauge_set_function(persia_metrics_gauge_t* gauge, double (*function)(void* context),
                                                          void* context);
/* The same for a counter: the increase of the result since the last call is added. */
PERSIA_METRICS_API void persia_metrics_counter_set_function(persia_metrics_counter_t* counter,
                                                            double (*function)(void* context), void* context);
/* Sets the seconds between two calls of each function: 0.01 to 86,400; at first 5. */
PERSIA_METRICS_API void persia_metrics_set_callback_period(double seconds);

/* What the process does now: loading data, waiting for other ranks, ... (phase.h). */
typedef struct persia_metrics_phase_t persia_metrics_phase_t;
/* The phase `name`. */
PERSIA_METRICS_API persia_metrics_phase_t* persia_metrics_phase(const char* name);
/* The process is in the phase from now on, until the same thread leaves it. Phases nest. */
PERSIA_METRICS_API void persia_metrics_phase_enter(const persia_metrics_phase_t* phase);
/* The process is in the phase again in which this one was entered. */
PERSIA_METRICS_API void persia_metrics_phase_leave(const persia_metrics_phase_t* phase);
/* The seconds that the process has spent in it, with those of now. */
PERSIA_METRICS_API double persia_metrics_phase_value(const persia_metrics_phase_t* phase);
/* The step that the process trains now, as the program numbers it. */
PERSIA_METRICS_API void persia_metrics_set_step(uint64_t step);

/* The process has done `count` more steps of training (progress.h). */
PERSIA_METRICS_API void persia_metrics_count_steps(uint64_t count);
/* The process has trained on `count` more samples. */
PERSIA_METRICS_API void persia_metrics_count_samples(uint64_t count);
/* The process has trained on `count` more tokens. */
PERSIA_METRICS_API void persia_metrics_count_tokens(uint64_t count);
/* The training ends with this step. */
PERSIA_METRICS_API void persia_metrics_set_total_steps(uint64_t steps);

/* Texts about the process, as the labels of the gauge `<group>_<name>_info` of value 1 (info.h). */
typedef struct persia_metrics_info_t persia_metrics_info_t;
/* The info (`group`, `name`) with the labels of `about`, which may be NULL. */
PERSIA_METRICS_API persia_metrics_info_t* persia_metrics_info(const char* group, const char* name,
                                                              const persia_metrics_description_t* about);
/* Replaces the texts. */
PERSIA_METRICS_API void persia_metrics_info_set(persia_metrics_info_t* info, const persia_metrics_pair_t* texts, size_t count);
/* Takes the texts away: the info is not exported until it is set again. */
PERSIA_METRICS_API void persia_metrics_info_unset(persia_metrics_info_t* info);

/* A state out of a few: a gauge for each state, 1 for the current one (info.h). */
typedef struct persia_metrics_enum_t persia_metrics_enum_t;
/* The enum (`group`, `name`) with the labels of `about`, which may be NULL. The first of the `count` states is the initial one.
 */
PERSIA_METRICS_API persia_metrics_enum_t* persia_metrics_enum(const char* group, const char* name, const char* const* states,
                                                              size_t count, const persia_metrics_description_t* about);
/* Changes the state. An unknown one is ignored and counted as dropped. */
PERSIA_METRICS_API void persia_metrics_enum_set(persia_metrics_enum_t* states, const char* state);
/* Takes the state away: the enum is not exported until it is set again. */
PERSIA_METRICS_API void persia_metrics_enum_unset(persia_metrics_enum_t* states);
/* The index of the current state; -1: there is none, since it was taken away, or the metric was refused. */
PERSIA_METRICS_API int persia_metrics_enum_value(const persia_metrics_enum_t* states);

/* The histogram (`group`, `name`) with the labels of `about`, which may be NULL. `bounds` are `bound_count` inclusive upper
 * bounds, ascending, finite, at most 500. NULL: the default bounds, 100 microseconds to 10 seconds, in seconds. */
PERSIA_METRICS_API persia_metrics_histogram_t* persia_metrics_histogram(const char* group, const char* name,
                                                                        const double* bounds, size_t bound_count,
                                                                        const persia_metrics_description_t* about);
/* The native histogram (`group`, `name`) with the labels of `about`, which may be NULL. If `buckets` is NULL, they are the
 * usual ones. */
PERSIA_METRICS_API persia_metrics_histogram_t* persia_metrics_native_histogram(const char* group, const char* name,
                                                                               const persia_metrics_native_buckets_t* buckets,
                                                                               const persia_metrics_description_t* about);
/* Adds one observation. A NaN is ignored and counted as dropped. An infinity is counted, and makes the sum infinite. */
PERSIA_METRICS_API void persia_metrics_histogram_observe(persia_metrics_histogram_t* histogram, double value);
/* Adds `count` observations of `value` at once. */
PERSIA_METRICS_API void persia_metrics_histogram_observe_many(persia_metrics_histogram_t* histogram, double value,
                                                              uint64_t count);
/* Returns the number of observations. If `sum` is not NULL, stores their sum in it. Stores the first `bucket_count` buckets in
 * `buckets`, which may be NULL if `bucket_count` is 0: one for each bound and one for +Inf, not cumulative, then zeros. */
PERSIA_METRICS_API uint64_t persia_metrics_histogram_value(const persia_metrics_histogram_t* histogram, double* sum,
                                                           uint64_t* buckets, size_t bucket_count);

/* The time cost (`group`, `name`) with the labels of `about`, which may be NULL. `bounds` are those of the histogram, as above.
 */
PERSIA_METRICS_API persia_metrics_time_cost_t* persia_metrics_time_cost(const char* group, const char* name,
                                                                        const double* bounds, size_t bound_count,
                                                                        const persia_metrics_description_t* about);
/* Adds one duration to the histogram, and sets the gauge to it. */
PERSIA_METRICS_API void persia_metrics_time_cost_observe(persia_metrics_time_cost_t* time_cost, double seconds);
/* Adds `count` durations of `seconds` at once. */
PERSIA_METRICS_API void persia_metrics_time_cost_observe_many(persia_metrics_time_cost_t* time_cost, double seconds,
                                                              uint64_t count);
/* Returns the number of durations. If `sum` is not NULL, stores their sum in it; if `last` is not NULL and there is a duration,
 * the last one. `buckets` as in persia_metrics_histogram_value. */
PERSIA_METRICS_API uint64_t persia_metrics_time_cost_value(const persia_metrics_time_cost_t* time_cost, double* sum,
                                                           double* last, uint64_t* buckets, size_t bucket_count);

/* The stream (`group`, `name`) with the labels of `about`, which may be NULL. */
PERSIA_METRICS_API persia_metrics_stream_t* persia_metrics_stream(const char* group, const char* name,
                                                                  const persia_metrics_description_t* about);
/* Records a value. A NaN becomes the last value, but is not added to sums and buckets. */
PERSIA_METRICS_API void persia_metrics_stream_add(persia_metrics_stream_t* stream, double value);
/* Records `count` values of `value` at once. */
PERSIA_METRICS_API void persia_metrics_stream_add_many(persia_metrics_stream_t* stream, double value, uint64_t count);
/* Returns the number of values. If `sum` is not NULL, stores their sum in it; if `last` is not NULL and there is a value, the
 * last one. */
PERSIA_METRICS_API uint64_t persia_metrics_stream_value(const persia_metrics_stream_t* stream, double* sum, double* last);

/* Records that the event `name` happened now (events.h). A NULL `type` means "torchelastic". `metadata` may be NULL if
 * `metadata_count` is 0; its values are recorded as texts, and a NULL value as null. */
PERSIA_METRICS_API void persia_metrics_event(const char* type, const char* name, const persia_metrics_pair_t* metadata,
                                             size_t metadata_count);
/* How many events (`type`, `name`) this process has recorded. A NULL `type` means "torchelastic". */
PERSIA_METRICS_API uint64_t persia_metrics_event_count(const char* type, const char* name);

/* The kind of a metric. A time cost is two metrics: a histogram and a gauge. */
typedef enum {
  PERSIA_METRICS_COUNTER = 1,         /* a counter */
  PERSIA_METRICS_GAUGE = 2,           /* a gauge */
  PERSIA_METRICS_HISTOGRAM = 3,       /* a histogram with bounds */
  PERSIA_METRICS_STREAM = 4,          /* a stream */
  PERSIA_METRICS_EVENT = 5,           /* the counts of an event; its group is its type */
  PERSIA_METRICS_NATIVE_HISTOGRAM = 6 /* a native histogram */
} persia_metrics_kind_t;

/* A series of this process, valid during the call that passes it. */
typedef struct {
  persia_metrics_kind_t kind;          /* the kind of its metric */
  const char* group;                   /* the metric's group */
  const char* name;                    /* the metric's name */
  const char* help;                    /* the metric's help text, "" for none */
  const char* unit;                    /* the metric's unit, "" for none */
  persia_metrics_gauge_merge_t merge;  /* a gauge's merge policy */
  const persia_metrics_pair_t* labels; /* its labels, sorted by name */
  size_t label_count;                  /* how many labels */
  int has_value;                       /* 0: a gauge or a stream without a value; else 1 */
  double value;                        /* a count, a gauge's value, a stream's last value, a histogram's count */
  uint64_t count;                      /* of a histogram's observations or a stream's values */
  double sum;                          /* of a histogram's observations or a stream's values */
  const double* bounds;                /* a histogram's bounds, without +Inf */
  const uint64_t* buckets;             /* bound_count + 1 buckets of a histogram, not cumulative; NULL for another kind */
  size_t bound_count;                  /* how many bounds */
} persia_metrics_series_t;

/* Calls `visit` for each series of the process, in the order of their metrics. It may call this library. Returns the number of
 * series. */
PERSIA_METRICS_API size_t persia_metrics_read(void (*visit)(const persia_metrics_series_t* series, void* context),
                                              void* context);
/* Stores the value of a series in `*value`, as persia_metrics_series_t::value, and returns 1. Returns 0, and stores nothing, if
 * there is no such series, or it has no value. `labels` may be NULL if `label_count` is 0. */
PERSIA_METRICS_API int persia_metrics_read_value(const char* group, const char* name, const persia_metrics_pair_t* labels,
                                                 size_t label_count, double* value);

/* Removes the series of (`group`, `name`) with exactly these labels, in any order: it is not exported until it is requested
 * again (remove.h). Names are those of persia_metrics_read: a time cost is two metrics, an info's name ends in `_info`, and
 * each state of an enum is a series. Returns 1; 0 if there is no such series, or memory ran out, and then nothing has changed.
 * `labels` may be NULL if `label_count` is 0. */
PERSIA_METRICS_API int persia_metrics_remove(const char* group, const char* name, const persia_metrics_pair_t* labels,
                                             size_t label_count);
/* Removes all series of (`group`, `name`). */
PERSIA_METRICS_API void persia_metrics_clear(const char* group, const char* name);

/* For unit tests: a scope, in which everything starts from 0 (testing.h). */
typedef struct persia_metrics_scope_t persia_metrics_scope_t;
/* Begins a scope. Aborts if memory runs out. */
PERSIA_METRICS_API persia_metrics_scope_t* persia_metrics_scope_begin(void);
/* Ends the scope. */
PERSIA_METRICS_API void persia_metrics_scope_end(persia_metrics_scope_t* scope);

/* Passes the library's log lines to `handler` instead of stderr (log.h). NULL restores stderr. */
PERSIA_METRICS_API void persia_metrics_set_log_handler(void (*handler)(const char* line, void* context), void* context);

/* How a call of persia_metrics_emit ended: EmitStatus in emit.h. */
typedef enum {
  PERSIA_METRICS_EMIT_DONE = 0,                     /* all metrics were emitted */
  PERSIA_METRICS_EMIT_EMPTY_MAP = 1,                /* no metrics were given */
  PERSIA_METRICS_EMIT_NAME_TOO_LONG = 2,            /* a name does not fit into a line; the others were emitted */
  PERSIA_METRICS_EMIT_UNKNOWN_MODE = 3,             /* BENCHMARK_AI has an unknown value */
  PERSIA_METRICS_EMIT_FIFO_NOT_CREATED_IN_TIME = 4, /* the named pipe did not appear in time */
  PERSIA_METRICS_EMIT_FIFO_NOT_READ_IN_TIME = 5,    /* no process opened the named pipe for reading in time */
  PERSIA_METRICS_EMIT_FIFO_CANNOT_BE_WRITTEN = 6,   /* the path is not a named pipe, or its reader closed it */
  PERSIA_METRICS_EMIT_OUT_OF_MEMORY = 7             /* some of the metrics were not emitted */
} persia_metrics_emit_status_t;

/* Benchmark AI's emit (emit.h). If `error` is not NULL, it receives the error text, empty on success and cut to `error_bytes`
 * including the NUL. */
PERSIA_METRICS_API persia_metrics_emit_status_t persia_metrics_emit(const persia_metrics_number_t* metrics, size_t count,
                                                                    char* error, size_t error_bytes);

#ifdef __cplusplus
}
#endif

#endif

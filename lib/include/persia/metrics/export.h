/* Marks the symbols that the shared library exports. All others are hidden. For C and C++. */
#ifndef PERSIA_METRICS_EXPORT_H_
#define PERSIA_METRICS_EXPORT_H_

#if defined(__GNUC__)
#define PERSIA_METRICS_API __attribute__((visibility("default")))
#else
#define PERSIA_METRICS_API
#endif

#endif

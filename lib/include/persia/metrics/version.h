/* The version of the library, for C and C++. The numbers are those of the headers; the functions return those of the library
 * that the program runs with. */
#ifndef PERSIA_METRICS_VERSION_H_
#define PERSIA_METRICS_VERSION_H_

#include "persia/metrics/export.h"

/* The first part of the version. */
#define PERSIA_METRICS_VERSION_MAJOR 0
/* The second part. Before 1.0, a program must be compiled again for another one. */
#define PERSIA_METRICS_VERSION_MINOR 1
/* The third part. */
#define PERSIA_METRICS_VERSION_PATCH 0
/* The version as one number that can be compared: 102 is 0.1.2. */
#define PERSIA_METRICS_VERSION_NUMBER \
  (PERSIA_METRICS_VERSION_MAJOR * 10000 + PERSIA_METRICS_VERSION_MINOR * 100 + PERSIA_METRICS_VERSION_PATCH)
/* The version as a text. */
#define PERSIA_METRICS_VERSION_TEXT "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/* PERSIA_METRICS_VERSION_TEXT of the library. */
PERSIA_METRICS_API const char* persia_metrics_version(void);
/* PERSIA_METRICS_VERSION_NUMBER of the library. */
PERSIA_METRICS_API int persia_metrics_version_number(void);

#ifdef __cplusplus
}
#endif

#endif

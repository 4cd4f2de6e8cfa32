// Marks what the shared library exports; everything else in it stays hidden.
#pragma once

#define PERSIA_METRICS_API __attribute__((visibility("default")))

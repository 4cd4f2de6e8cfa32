// Marks the symbols that the shared library exports. All others are hidden.
#pragma once

#define PERSIA_METRICS_API __attribute__((visibility("default")))

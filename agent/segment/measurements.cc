#include "segment/measurements.h"

namespace persia::agent {

Measurements MeasurementsOf(const SegmentReader& reader) {
  return {.id = reader.id(),
          .generation = reader.generation(),
          .identity = &reader.identity(),
          .birth_unix_ns = reader.header().birth_unix_ns,
          .families = reader.families(),
          .series = reader.series(),
          .records = reader.records(),
          .values = &reader.values(),
          .changed_at = reader.changed_at(),
          .over_limit = reader.over_limit(),
          .later_series = reader.later_series()};
}

}  // namespace persia::agent

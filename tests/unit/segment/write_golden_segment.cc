// Writes the sample with the current library, for the golden file of a new version of the format:
//
//   PERSIA_METRICS_DIR=<new directory> PERSIA_METRICS_SEGMENT_BYTES=262144 write_golden_segment
//
// The segment is then the only file in the directory. The files of released versions never change.
#include "segment/sample_job.h"

int main() { persia::agent::testing::RecordSample(); }

// Writes the sample with the library as it is, for the golden file of a new version of the format:
//
//   PERSIA_METRICS_DIR=<new directory> PERSIA_METRICS_SEGMENT_BYTES=262144 write_golden_segment
//
// The segment is then the one file in the directory. The files of released versions stay as they are for ever.
#include "sample_job.h"

int main() { persia::agent::testing::RecordSample(); }

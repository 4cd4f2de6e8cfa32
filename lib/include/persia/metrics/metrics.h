// Includes the whole C++ API.
//
//   persia::metrics::Init({"dlrm", "trainer"});
//   persia::metrics::Counter batches("my_app", "batches", {"Batches trained."});
//   batches.Increment();
#pragma once

#include "persia/metrics/callback.h"
#include "persia/metrics/catalog.h"
#include "persia/metrics/emit.h"
#include "persia/metrics/events.h"
#include "persia/metrics/family.h"
#include "persia/metrics/info.h"
#include "persia/metrics/init.h"
#include "persia/metrics/instruments.h"
#include "persia/metrics/labels.h"
#include "persia/metrics/log.h"
#include "persia/metrics/metric_stream.h"
#include "persia/metrics/phase.h"
#include "persia/metrics/prof.h"
#include "persia/metrics/progress.h"
#include "persia/metrics/read.h"
#include "persia/metrics/remove.h"
#include "persia/metrics/span.h"
#include "persia/metrics/stream.h"
#include "persia/metrics/timer.h"
#include "persia/metrics/values.h"
#include "persia/metrics/version.h"

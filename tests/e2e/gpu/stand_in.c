// A stand-in for NVIDIA's libnvidia-ml.so.1. It reads what it is to do at each call from the file that NVML_STAND_IN names:
//
//   devices 2                     how many there are
//   do FUNCTION hang 30           also: crash, exit 7, error 9, leak, garbage, print
//   pids 0 4711 4712              processes on device 0; device 0:1 is a MIG device
//   set power 0 250000            a value of device 0, in NVML's unit; * is every device
//   text uuid 0 GPU-...           a text of a device
//   mig 0 2                       device 0 is divided into two
//   lost 1                        device 1 has fallen off the bus
//   xid 0 79                      an error, reported once, if the line is added after the start
//
// Built three times: with the functions of a driver of today, of an old one, and with the fewest that the agent needs.
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_DEVICES 64
#define MAX_MIG 8
#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, TIMEOUT = 10, LOST = 15, NOT_FOUND = 6 };

struct device {
  char name[16];  // "0", "0:1"
  int mig;
};
static struct device devices[MAX_DEVICES];
static struct device migs[MAX_DEVICES][MAX_MIG];
static char text[1 << 16];

static void load(void) {
  const char* const path = getenv("NVML_STAND_IN");
  FILE* const file = path == NULL ? NULL : fopen(path, "r");
  text[0] = '\0';
  if (file == NULL) return;
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
}

// The rest of the n-th line that begins with these words; NULL: there is none.
static const char* line(int n, const char* format, ...) {
  char words[128];
  va_list list;
  va_start(list, format);
  vsnprintf(words, sizeof words, format, list);
  va_end(list);
  const size_t size = strlen(words);
  for (const char* at = text; *at != '\0'; at = strchrnul(at, '\n') + (*strchrnul(at, '\n') == '\n')) {
    if (strncmp(at, words, size) == 0 && (at[size] == ' ' || at[size] == '\n' || at[size] == '\0') && n-- == 0) {
      return at[size] == ' ' ? at + size + 1 : at + size;
    }
  }
  return NULL;
}

static int act(const char* what) {
  if (strncmp(what, "hang", 4) == 0) sleep((unsigned)atoi(what + 4));
  if (strncmp(what, "crash", 5) == 0) raise(SIGSEGV);
  if (strncmp(what, "exit", 4) == 0) _exit(atoi(what + 4));
  if (strncmp(what, "error", 5) == 0) return atoi(what + 5);
  if (strncmp(what, "slow", 4) == 0) usleep((unsigned)atoi(what + 4) * 1000);
  if (strncmp(what, "garbage", 7) == 0) dprintf(3, "what a driver may write into any descriptor that it finds\n");
  if (strncmp(what, "print", 5) == 0) fprintf(stderr, "NVRM: hello\n"), puts("NVRM: GPU hello"), fflush(stdout);
  if (strncmp(what, "leak", 4) == 0) {
    while (malloc(16 << 20) != NULL) {
    }
    abort();
  }
  return SUCCESS;
}

// What each function begins with: its own faults, and those of its device.
static int begin(const char* function, const struct device* device) {
  load();
  const char* const what = line(0, "do %s", function);
  const int result = what == NULL ? SUCCESS : act(what);
  if (result != SUCCESS) return result;
  if (device != NULL && line(0, "lost %s", device->name) != NULL) return LOST;
  return SUCCESS;
}

__attribute__((unused)) static int number(const char* what, const struct device* device, double usual, double* value) {
  const char* found = line(0, "set %s %s", what, device->name);
  if (found == NULL) found = line(0, "set %s *", what);
  if (found != NULL && strncmp(found, "none", 4) == 0) return NOT_SUPPORTED;
  *value = found == NULL ? usual : atof(found);
  return SUCCESS;
}

__attribute__((unused)) static void copy(const char* what, const struct device* device, const char* usual, char* to,
                                         unsigned size) {
  const char* const found = line(0, "text %s %s", what, device->name);
  const char* const from = found == NULL ? usual : found;
  const size_t length = found == NULL ? strlen(from) : (size_t)(strchrnul(from, '\n') - from);
  memset(to, 'x', size);  // no zero byte, if it is longer
  memcpy(to, from, length < size ? length : size);
  if (length < size) to[length] = '\0';
}

#ifdef STAND_IN_NOW
#define V2(name) name##_v2
#else
#define V2(name) name
#endif

EXPORT int V2(nvmlInit)(void) {
  const int result = begin("nvmlInit", NULL);
  for (int i = 0; i < MAX_DEVICES; ++i) {
    snprintf(devices[i].name, sizeof devices[i].name, "%d", i);
    for (int m = 0; m < MAX_MIG; ++m) {
      snprintf(migs[i][m].name, sizeof migs[i][m].name, "%d:%d", i, m);
      migs[i][m].mig = m + 1;
    }
  }
  return result;
}

EXPORT int V2(nvmlDeviceGetCount)(unsigned* count) {
  const int result = begin("nvmlDeviceGetCount", NULL);
  const char* const found = line(0, "devices");
  *count = found == NULL ? 1 : (unsigned)atoi(found);
  return result;
}

EXPORT int V2(nvmlDeviceGetHandleByIndex)(unsigned index, struct device** device) {
  *device = &devices[index];
  const int result = begin("nvmlDeviceGetHandleByIndex", NULL);
  return result == SUCCESS && line(0, "gone %u", index) != NULL ? LOST : result;
}

#ifndef STAND_IN_LEAST

EXPORT int nvmlSystemGetDriverVersion(char* version, unsigned size) {
  const int result = begin("nvmlSystemGetDriverVersion", NULL);
  snprintf(version, size, "550.54.15");
  return result;
}

EXPORT int nvmlDeviceGetName(struct device* device, char* name, unsigned size) {
  const int result = begin("nvmlDeviceGetName", device);
  copy("name", device, "NVIDIA H100 80GB HBM3", name, size);
  return result;
}

EXPORT int nvmlDeviceGetUUID(struct device* device, char* uuid, unsigned size) {
  const int result = begin("nvmlDeviceGetUUID", device);
  char usual[64];
  const int index = atoi(device->name);
  snprintf(usual, sizeof usual, device->mig ? "MIG-%08d-%04d-0000-0000-000000000000" : "GPU-%08d-%04d-0000-0000-000000000000",
           index, device->mig);
  copy("uuid", device, usual, uuid, size);
  return result;
}

EXPORT int nvmlDeviceGetUtilizationRates(struct device* device, unsigned* rates) {
  double gpu = 0, memory = 0;
  const int result = begin("nvmlDeviceGetUtilizationRates", device);
  if (result != SUCCESS || number("utilization", device, 90, &gpu) || number("memory_utilization", device, 40, &memory)) {
    return result != SUCCESS ? result : NOT_SUPPORTED;
  }
  rates[0] = (unsigned)gpu;
  rates[1] = (unsigned)memory;
  return SUCCESS;
}

// A function that gives one number.
#define NUMBER(type, function, key, usual, parameters)                    \
  EXPORT int function parameters {                                        \
    double value = 0;                                                     \
    int result = begin(#function, device);                                \
    if (result == SUCCESS) result = number(key, device, usual, &value);   \
    if (result == SUCCESS) *to = value > 1.8e19 ? (type)-1 : (type)value; \
    return result;                                                        \
  }

NUMBER(unsigned, nvmlDeviceGetPowerUsage, "power", 350000, (struct device * device, unsigned* to))
NUMBER(unsigned, nvmlDeviceGetEnforcedPowerLimit, "power_limit", 700000, (struct device * device, unsigned* to))
NUMBER(unsigned long long, nvmlDeviceGetTotalEnergyConsumption, "energy", 5e9, (struct device * device, unsigned long long* to))
NUMBER(unsigned, nvmlDeviceGetTemperature, "temperature", 61,
       (struct device * device, int sensor __attribute__((unused)), unsigned* to))
NUMBER(unsigned, nvmlDeviceGetClockInfo, kind == 1 ? "sm_clock" : "memory_clock", kind == 1 ? 1755 : 2619,
       (struct device * device, int kind, unsigned* to))
NUMBER(unsigned, nvmlDeviceGetMaxClockInfo, "max_clock", 1980,
       (struct device * device, int kind __attribute__((unused)), unsigned* to))
NUMBER(unsigned long long, nvmlDeviceGetCurrentClocksThrottleReasons, "throttle", 0,
       (struct device * device, unsigned long long* to))
NUMBER(unsigned, nvmlDeviceGetPcieThroughput, kind == 0 ? "pcie_tx" : "pcie_rx", kind == 0 ? 1000 : 2000,
       (struct device * device, int kind, unsigned* to))
NUMBER(unsigned, nvmlDeviceGetPcieReplayCounter, "replays", 3, (struct device * device, unsigned* to))
NUMBER(unsigned long long, nvmlDeviceGetTotalEccErrors, kind == 0 ? "ecc_corrected" : "ecc_uncorrected", kind == 0 ? 4 : 0,
       (struct device * device, int kind, int counter __attribute__((unused)), unsigned long long* to))

struct memory {
  unsigned long long total, free, used;
};
EXPORT int nvmlDeviceGetMemoryInfo(struct device* device, struct memory* memory) {
  const int result = begin("nvmlDeviceGetMemoryInfo", device);
  *memory = (struct memory){80ULL << 30, 60ULL << 30, 20ULL << 30};
  return result;
}

struct process {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(struct device* device, unsigned* count, struct process* processes) {
  const int result = begin("nvmlDeviceGetComputeRunningProcesses", device);
  if (result != SUCCESS) return result;
  const char* at = line(0, "pids %s", device->name);
  unsigned found = 0;
  for (; at != NULL && *at >= '0' && *at <= '9'; ++found) {
    char* end = NULL;
    const unsigned long pid = strtoul(at, &end, 10);
    if (found < *count) processes[found] = (struct process){(unsigned)pid, 1 << 20, ~0U, ~0U};
    at = *end == ' ' ? end + 1 : end;
  }
  const int fits = found <= *count;
  *count = found;
  return fits ? SUCCESS : INSUFFICIENT_SIZE;
}

#endif
#ifdef STAND_IN_NOW

NUMBER(unsigned, nvmlDeviceGetEncoderUtilization, "encoder", 0,
       (struct device * device, unsigned* to, unsigned* period __attribute__((unused))))
NUMBER(unsigned, nvmlDeviceGetDecoderUtilization, "decoder", 5,
       (struct device * device, unsigned* to, unsigned* period __attribute__((unused))))

struct memory_v2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
EXPORT int nvmlDeviceGetMemoryInfo_v2(struct device* device, struct memory_v2* memory) {
  if (memory->version != (sizeof *memory | (2U << 24))) return 25;
  const int result = begin("nvmlDeviceGetMemoryInfo", device);
  *memory = (struct memory_v2){memory->version, 80ULL << 30, 1ULL << 30, 59ULL << 30, 20ULL << 30};
  return result;
}

struct pci {
  char legacy[16];
  unsigned numbers[5];
  char bus_id[32];
};
EXPORT int nvmlDeviceGetPciInfo_v3(struct device* device, struct pci* pci) {
  const int result = begin("nvmlDeviceGetPciInfo", device);
  snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", atoi(device->name) + 0x1b);
  return result;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(struct device* device, unsigned* count, struct process* processes) {
  return nvmlDeviceGetComputeRunningProcesses_v2(device, count, processes);
}

struct field {
  unsigned id, scope;
  long long times[2];
  int type, result;
  unsigned long long value;
};
EXPORT int nvmlDeviceGetFieldValues(struct device* device, int count, struct field* fields) {
  const int result = begin("nvmlDeviceGetFieldValues", device);
  for (int i = 0; i < count && result == SUCCESS; ++i) {
    char key[32];
    double value = 0;
    snprintf(key, sizeof key, "field_%u", fields[i].id);
    fields[i].type = 3;
    fields[i].result = number(key, device, fields[i].id == 82 ? 70 : fields[i].id == 138 ? 1000 : 0, &value);
    fields[i].value = (unsigned long long)value;
  }
  return result;
}

EXPORT int nvmlDeviceGetMigMode(struct device* device, unsigned* current, unsigned* pending) {
  const int result = begin("nvmlDeviceGetMigMode", device);
  *current = *pending = line(0, "mig %s", device->name) != NULL;
  return result;
}

EXPORT int nvmlDeviceGetMaxMigDeviceCount(struct device* device, unsigned* count) {
  const int result = begin("nvmlDeviceGetMaxMigDeviceCount", device);
  *count = 7;
  return result;
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(struct device* device, unsigned index, struct device** mig) {
  const int result = begin("nvmlDeviceGetMigDeviceHandleByIndex", device);
  const char* const count = line(0, "mig %s", device->name);
  *mig = &migs[atoi(device->name)][index];
  return result != SUCCESS ? result : count != NULL && index < (unsigned)atoi(count) ? SUCCESS : NOT_FOUND;
}

EXPORT int nvmlDeviceGetGpuInstanceId(struct device* device, unsigned* id) {
  const int result = begin("nvmlDeviceGetGpuInstanceId", device);
  *id = (unsigned)device->mig + 6;
  return result;
}

EXPORT int nvmlDeviceGetComputeInstanceId(struct device* device, unsigned* id) {
  const int result = begin("nvmlDeviceGetComputeInstanceId", device);
  *id = 0;
  return result;
}

EXPORT int nvmlGpmQueryDeviceSupport(struct device* device, unsigned* support) {
  const int result = begin("nvmlGpmQueryDeviceSupport", device);
  support[1] = 1;
  return result;
}

EXPORT int nvmlGpmSampleAlloc(const struct device*** sample) {
  const int result = begin("nvmlGpmSampleAlloc", NULL);
  *sample = calloc(1, sizeof **sample);
  return result;
}

EXPORT int nvmlGpmSampleGet(struct device* device, const struct device** sample) {
  *sample = device;
  return begin("nvmlGpmSampleGet", device);
}

EXPORT int nvmlGpmMigSampleGet(struct device* device, unsigned gpu_instance __attribute__((unused)),
                               const struct device** sample) {
  return nvmlGpmSampleGet(device, sample);
}

struct gpm {
  unsigned version, count;
  const struct device **before, **after;
  struct {
    unsigned id;
    int result;
    double value;
    char* texts[3];
  } metrics[16];
};
EXPORT int nvmlGpmMetricsGet(struct gpm* get) {
  const int result = begin("nvmlGpmMetricsGet", *get->before);
  if (*get->before != *get->after) return 2;
  for (unsigned i = 0; i < get->count; ++i) {
    char key[32];
    snprintf(key, sizeof key, "gpm_%u", get->metrics[i].id);
    get->metrics[i].result = number(key, *get->after, 25, &get->metrics[i].value);
  }
  return result;
}

static int reported;
EXPORT int nvmlEventSetCreate(void** set) {
  const int result = begin("nvmlEventSetCreate", NULL);
  while (line(reported, "xid") != NULL) ++reported;
  *set = &reported;
  return result;
}

EXPORT int nvmlDeviceRegisterEvents(struct device* device, unsigned long long types, void* set __attribute__((unused))) {
  return types == 8 ? begin("nvmlDeviceRegisterEvents", device) : 2;
}

struct event {
  struct device* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
EXPORT int nvmlEventSetWait_v2(void* set __attribute__((unused)), struct event* event, unsigned timeout_ms) {
  const int result = begin("nvmlEventSetWait", NULL);
  if (result != SUCCESS) return result;
  for (unsigned waited = 0; waited <= timeout_ms; waited += 20) {
    load();
    unsigned index = 0, xid = 0, instance = ~0U;
    const char* const found = line(reported, "xid");
    if (found != NULL && sscanf(found, "%u %u %u", &index, &xid, &instance) >= 2) {
      ++reported;
      *event = (struct event){&devices[index], 8, xid, instance, 0};
      return SUCCESS;
    }
    usleep(20000);
  }
  return TIMEOUT;
}

#endif

// NVIDIA's management library and CUDA's driver interface for devices that are not there.
//
// A text file, named by FAKE_NVIDIA, says what there is, and is read at every call:
//
//   driver 580.1 13000                      versions; 13000 is CUDA 13.0
//   gpu GPU-<uuid> <minor> <major> <minor of capability> <MiB> <mode> <watts> <clock> <name...>
//   user GPU-<uuid> <pid>                   a process that computes on it
//   lost <index>                            fell off the bus
//   dead                                    the driver does not answer at all
//
// A device that is no longer in the file does not answer by its name.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, NOT_LOADED = 9, LOST = 15 };
enum { MOST = 8 };

typedef struct {
  char uuid[64], name[96];
  int minor, major, lesser, mode, lost;
  unsigned long long mib, watts, clock;
  unsigned users[MOST];
  int user_count;
} Gpu;

typedef struct {
  char version[80];
  int cuda, dead, count;
  Gpu gpus[MOST];
} State;

static Gpu* by_uuid(State* state, const char* uuid) {
  for (int i = 0; i < state->count; ++i)
    if (!strcmp(state->gpus[i].uuid, uuid)) return &state->gpus[i];
  return NULL;
}

static State read_state(void) {
  State state = {0};
  const char* path = getenv("FAKE_NVIDIA");
  FILE* file = path ? fopen(path, "r") : NULL;
  char line[512], uuid[64];
  unsigned number;
  if (!file) {
    state.dead = 1;
    return state;
  }
  while (fgets(line, sizeof line, file)) {
    Gpu gpu = {0};
    if (!strncmp(line, "dead", 4)) state.dead = 1;
    sscanf(line, "driver %79s %d", state.version, &state.cuda);
    if (sscanf(line, "gpu %63s %d %d %d %llu %d %llu %llu %95[^\n]", gpu.uuid, &gpu.minor,
               &gpu.major, &gpu.lesser, &gpu.mib, &gpu.mode, &gpu.watts, &gpu.clock,
               gpu.name) == 9)
      state.gpus[state.count++] = gpu;
    if (sscanf(line, "user %63s %u", uuid, &number) == 2) {
      Gpu* used = by_uuid(&state, uuid);
      if (used) used->users[used->user_count++] = number;
    }
    if (sscanf(line, "lost %u", &number) == 1 && (int)number < state.count)
      state.gpus[number].lost = 1;
  }
  fclose(file);
  return state;
}

// A handle is an index and one, so that none is null.
static int find(State* state, void* handle, Gpu** gpu) {
  long index = (long)handle - 1;
  *state = read_state();
  if (state->dead) return NOT_LOADED;
  if (index < 0 || index >= state->count) return INVALID;
  *gpu = &state->gpus[index];
  return (*gpu)->lost ? LOST : SUCCESS;
}

#define WITH_GPU                             \
  State state;                               \
  Gpu* gpu;                                  \
  int status = find(&state, handle, &gpu);   \
  if (status) return status;

int nvmlInit_v2(void) { return read_state().dead ? NOT_LOADED : SUCCESS; }

const char* nvmlErrorString(int status) {
  if (status == LOST) return "GPU is lost";
  if (status == NOT_LOADED) return "Driver Not Loaded";
  if (status == NOT_FOUND) return "Not Found";
  return status == NOT_SUPPORTED ? "Not Supported" : "Invalid Argument";
}

int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  snprintf(text, size, "%s", read_state().version);
  return SUCCESS;
}

int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = read_state().cuda;
  return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  State state = read_state();
  *count = (unsigned)state.count;
  return state.dead ? NOT_LOADED : SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  void* handle = (void*)(long)(index + 1);
  WITH_GPU
  *device = handle;
  return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  State state = read_state();
  Gpu* gpu = by_uuid(&state, uuid);
  if (!gpu) return NOT_FOUND;
  *device = (void*)(gpu - state.gpus + 1);
  return gpu->lost ? LOST : SUCCESS;
}

int nvmlDeviceGetName(void* handle, char* text, unsigned size) {
  WITH_GPU
  snprintf(text, size, "%s", gpu->name);
  return SUCCESS;
}

int nvmlDeviceGetUUID(void* handle, char* text, unsigned size) {
  WITH_GPU
  snprintf(text, size, "%s", gpu->uuid);
  return SUCCESS;
}

int nvmlDeviceGetMinorNumber(void* handle, unsigned* number) {
  WITH_GPU
  *number = (unsigned)gpu->minor;
  return SUCCESS;
}

int nvmlDeviceGetCudaComputeCapability(void* handle, int* major, int* minor) {
  WITH_GPU
  *major = gpu->major;
  *minor = gpu->lesser;
  return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(void* handle, unsigned long long* total_free_used) {
  WITH_GPU
  total_free_used[0] = gpu->mib << 20;
  return gpu->mib ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetMaxClockInfo(void* handle, int clock, unsigned* megahertz) {
  WITH_GPU
  *megahertz = clock == 1 ? 1980 : 2619;
  return SUCCESS;
}

int nvmlDeviceGetApplicationsClock(void* handle, int clock, unsigned* megahertz) {
  WITH_GPU
  if (clock != 1) return NOT_SUPPORTED;
  *megahertz = (unsigned)gpu->clock;
  return SUCCESS;
}

int nvmlDeviceGetEnforcedPowerLimit(void* handle, unsigned* milliwatts) {
  WITH_GPU
  *milliwatts = (unsigned)gpu->watts * 1000;
  return gpu->watts ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetComputeMode(void* handle, unsigned* mode) {
  WITH_GPU
  *mode = gpu->mode == 9 ? 0 : (unsigned)gpu->mode;
  return SUCCESS;
}

int nvmlDeviceGetMigMode(void* handle, unsigned* current, unsigned* pending) {
  WITH_GPU
  *current = *pending = gpu->mode == 9;  // 9 stands for MIG
  return gpu->mode == 9 ? SUCCESS : NOT_SUPPORTED;
}

typedef struct {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
} Process;

int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, Process* found) {
  WITH_GPU
  for (int i = 0; i < gpu->user_count; ++i) found[i].pid = gpu->users[i];
  *count = (unsigned)gpu->user_count;
  return SUCCESS;
}

// CUDA's driver interface, for machines without the management library.

static int hidden;  // CUDA reads the user's variable when it starts; here any value hides all

int cuInit(unsigned flags) {
  hidden = getenv("CUDA_VISIBLE_DEVICES") != NULL;
  return flags || read_state().dead ? 100 : 0;
}

int cuGetErrorString(int status, const char** text) {
  *text = status == 100 ? "no CUDA-capable device is detected" : "invalid argument";
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = hidden ? 0 : read_state().count;
  return 0;
}

int cuDeviceGet(int* device, int index) {
  *device = index;
  return index < read_state().count ? 0 : 1;
}

int cuDriverGetVersion(int* version) {
  *version = read_state().cuda;
  return 0;
}

int cuDeviceGetName(char* text, int size, int device) {
  snprintf(text, (size_t)size, "%s", read_state().gpus[device].name);
  return 0;
}

int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = (size_t)read_state().gpus[device].mib << 20;
  return 0;
}

int cuDeviceGetUuid_v2(unsigned char* raw, int device) {
  State state = read_state();
  const char* hex = state.gpus[device].uuid + strlen("GPU-");
  for (int i = 0; i < 16; ++i) {
    unsigned value = 0;
    while (*hex == '-') ++hex;
    sscanf(hex, "%2x", &value);
    raw[i] = (unsigned char)value;
    hex += 2;
  }
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  State state = read_state();
  const Gpu* gpu = &state.gpus[device];
  switch (attribute) {
    case 13: *value = 1980000; return 0;
    case 20: *value = gpu->mode == 9 ? 0 : gpu->mode; return 0;
    case 36: *value = 2619000; return 0;
    case 75: *value = gpu->major; return 0;
    case 76: *value = gpu->lesser; return 0;
    default: return 1;
  }
}

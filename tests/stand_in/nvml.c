/* A stand-in for the NVIDIA driver's library, for tests: built as libnvidia-ml.so.1 and found by LD_LIBRARY_PATH.
 *
 * Values come from the environment: STANDIN_<NAME>, or STANDIN_<NAME>_<gpu> for one GPU; a value "none" makes the call "not supported".
 * STANDIN_HANG=<function> hangs in it, STANDIN_HANG=<function>:<gpu> for one GPU; STANDIN_ABORT likewise ends the process.
 * Without any setting it is a healthy board of STANDIN_COUNT (8) H100 SXM. Built with -DOLD it lacks the calls that R470 lacks,
 * with -DNOISY it prints to standard output.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, TOO_SMALL = 7, LOST = 15 };
typedef unsigned int u32;
typedef unsigned long long u64;

static const char *text(const char *name, long gpu, const char *otherwise) {
    char key[128];
    const char *value;
    if (gpu >= 0) {
        snprintf(key, sizeof key, "STANDIN_%s_%ld", name, gpu);
        if ((value = getenv(key))) return value;
    }
    snprintf(key, sizeof key, "STANDIN_%s", name);
    return (value = getenv(key)) ? value : otherwise;
}

static int number(const char *name, long gpu, u64 otherwise, u64 *out) {
    char shown[32];
    snprintf(shown, sizeof shown, "%llu", otherwise);
    const char *value = text(name, gpu, shown);
    if (!strcmp(value, "none")) return NOT_SUPPORTED;
    *out = strtoull(value, NULL, 0);
    return OK;
}

static int is_here(const char *setting, const char *function, long gpu) {
    const char *wanted = getenv(setting);
    char both[160];
    if (!wanted) return 0;
    snprintf(both, sizeof both, "%s:%ld", function, gpu);
    return !strcmp(wanted, function) || !strcmp(wanted, both);
}

/* What every call does first: hang, abort, or say that the GPU is lost. */
static int enter(const char *function, long gpu) {
    if (is_here("STANDIN_HANG", function, gpu)) for (;;) pause();
    if (is_here("STANDIN_ABORT", function, gpu)) abort();
    if (gpu >= 0) {
        u64 lost;
        if (number("LOST", gpu, 0, &lost) == OK && lost && strcmp(function, "nvmlDeviceGetHandleByIndex_v2")) return LOST;
    }
    return OK;
}

static long index_of(void *handle) { return (long)handle - 1; }

#define ENTER(gpu) do { int code_ = enter(__func__, gpu); if (code_) return code_; } while (0)

static int put32(const char *name, long gpu, u64 otherwise, u32 *out) {
    u64 value;
    int code = number(name, gpu, otherwise, &value);
    if (code == OK) *out = (u32)value;
    return code;
}

#ifdef NOISY
#define NOISE() do { printf("nvml: "); fflush(stdout); } while (0)
#else
#define NOISE()
#endif
int nvmlInitWithFlags(u32 flags) { (void)flags; NOISE(); ENTER(-1); return atoi(text("INIT", -1, "0")); }
int nvmlShutdown(void) { ENTER(-1); return OK; }
int nvmlSystemGetDriverVersion(char *out, u32 size) { ENTER(-1); snprintf(out, size, "%s", text("DRIVER", -1, "570.86.10")); return OK; }
int nvmlSystemGetCudaDriverVersion_v2(int *out) { ENTER(-1); *out = atoi(text("CUDA", -1, "12080")); return OK; }
int nvmlDeviceGetCount_v2(u32 *out) { ENTER(-1); return put32("COUNT", -1, 8, out); }

int nvmlDeviceGetHandleByIndex_v2(u32 index, void **out) {
    ENTER((long)index);
    u64 failing;
    if (number("HANDLE", index, 0, &failing) == OK && failing) return (int)failing;
    *out = (void *)((long)index + 1);
    return OK;
}

int nvmlDeviceGetName(void *gpu, char *out, u32 size) { ENTER(index_of(gpu)); snprintf(out, size, "%s", text("NAME", index_of(gpu), "NVIDIA H100 80GB HBM3")); return OK; }
int nvmlDeviceGetUUID(void *gpu, char *out, u32 size) { ENTER(index_of(gpu)); snprintf(out, size, "GPU-%08lx-1111-2222-3333-444444444444", index_of(gpu)); return OK; }

struct pci { char legacy[16]; u32 domain, bus, device, id, subsystem; char bus_id[32]; };
int nvmlDeviceGetPciInfo_v3(void *gpu, struct pci *out) {
    ENTER(index_of(gpu));
    memset(out, 0, sizeof *out);
    out->bus = 0x10 + (u32)index_of(gpu);
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", out->bus);
    return OK;
}

int nvmlDeviceGetCudaComputeCapability(void *gpu, int *major, int *minor) {
    ENTER(index_of(gpu));
    return sscanf(text("CC", index_of(gpu), "9.0"), "%d.%d", major, minor) == 2 ? OK : INVALID;
}

struct memory { u32 version; u64 total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(void *gpu, struct memory *out) {
    ENTER(index_of(gpu));
    if (number("MEM", index_of(gpu), 85520809984ULL, &out->total)) return NOT_SUPPORTED;
    number("RESERVED", index_of(gpu), 500000000ULL, &out->reserved);
    number("USED", index_of(gpu), 0, &out->used);
    out->free = out->total - out->used - out->reserved;
    return OK;
}

int nvmlDeviceGetComputeMode(void *gpu, u32 *out) { ENTER(index_of(gpu)); return put32("COMPUTE_MODE", index_of(gpu), 0, out); }
int nvmlDeviceGetTemperature(void *gpu, u32 sensor, u32 *out) { (void)sensor; ENTER(index_of(gpu)); return put32("TEMP", index_of(gpu), 41, out); }
int nvmlDeviceGetTemperatureThreshold(void *gpu, u32 which, u32 *out) { (void)which; ENTER(index_of(gpu)); return put32("SLOWDOWN", index_of(gpu), 87, out); }
int nvmlDeviceGetCurrPcieLinkWidth(void *gpu, u32 *out) { ENTER(index_of(gpu)); return put32("PCIE_W", index_of(gpu), 16, out); }
int nvmlDeviceGetMaxPcieLinkWidth(void *gpu, u32 *out) { ENTER(index_of(gpu)); return put32("PCIE_MAX", index_of(gpu), 16, out); }
int nvmlDeviceGetMigMode(void *gpu, u32 *now, u32 *pending) { ENTER(index_of(gpu)); *pending = 0; return put32("MIG", index_of(gpu), 0, now); }
int nvmlDeviceGetEccMode(void *gpu, u32 *now, u32 *pending) { ENTER(index_of(gpu)); *pending = 1; return put32("ECC", index_of(gpu), 1, now); }
int nvmlDeviceGetDefaultEccMode(void *gpu, u32 *out) { ENTER(index_of(gpu)); return put32("ECC_DEFAULT", index_of(gpu), 1, out); }
int nvmlDeviceGetPersistenceMode(void *gpu, u32 *out) { ENTER(index_of(gpu)); return put32("PERSISTENCE", index_of(gpu), 1, out); }
int nvmlDeviceGetPowerUsage(void *gpu, u32 *out) { ENTER(index_of(gpu)); return put32("POWER", index_of(gpu), 72000, out); }
int nvmlDeviceGetEnforcedPowerLimit(void *gpu, u32 *out) { ENTER(index_of(gpu)); return put32("POWER_LIMIT", index_of(gpu), 700000, out); }
int nvmlDeviceGetPowerManagementDefaultLimit(void *gpu, u32 *out) { ENTER(index_of(gpu)); return put32("POWER_DEFAULT", index_of(gpu), 700000, out); }
int nvmlDeviceGetCurrentClocksEventReasons(void *gpu, u64 *out) { ENTER(index_of(gpu)); return number("CLOCKS", index_of(gpu), 1, out); }
int nvmlDeviceGetClockInfo(void *gpu, u32 kind, u32 *out) { (void)kind; ENTER(index_of(gpu)); return put32("CLOCK", index_of(gpu), 345, out); }
int nvmlDeviceGetMaxClockInfo(void *gpu, u32 kind, u32 *out) { (void)kind; ENTER(index_of(gpu)); return put32("CLOCK_MAX", index_of(gpu), 1980, out); }
int nvmlDeviceGetApplicationsClock(void *gpu, u32 kind, u32 *out) { (void)kind; ENTER(index_of(gpu)); return put32("CLOCK_SET", index_of(gpu), 1980, out); }

int nvmlDeviceGetTotalEccErrors(void *gpu, u32 kind, u32 counter, u64 *out) {
    (void)kind;
    ENTER(index_of(gpu));
    return number(counter ? "ECC_TOTAL" : "ECC_UNC", index_of(gpu), 0, out);
}

int nvmlDeviceGetRemappedRows(void *gpu, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failure) {
    ENTER(index_of(gpu));
    *uncorrected = 0;
    put32("ROW_PENDING", index_of(gpu), 0, pending);
    put32("ROW_FAILURE", index_of(gpu), 0, failure);
    return put32("ROWS", index_of(gpu), 0, corrected);
}

int nvmlDeviceGetRetiredPagesPendingStatus(void *gpu, u32 *out) { ENTER(index_of(gpu)); return put32("PAGES_PENDING", index_of(gpu), 0, out); }

int nvmlDeviceGetNvLinkState(void *gpu, u32 link, u32 *out) {
    u64 links, up;
    ENTER(index_of(gpu));
    number("NVLINKS", index_of(gpu), 18, &links);
    number("NVLINKS_UP", index_of(gpu), links, &up);
    if (!links) return NOT_SUPPORTED;
    if (link >= links) return INVALID;
    *out = link < up;
    return OK;
}

int nvmlDeviceGetNvLinkErrorCounter(void *gpu, u32 link, u32 counter, u64 *out) {
    ENTER(index_of(gpu));
    *out = 0;
    return link ? OK : number(counter == 1 ? "LINK_RECOVERY" : counter == 0 ? "LINK_REPLAY" : "LINK_CRC", index_of(gpu), 0, out);
}

struct fabric { unsigned char cluster[16]; u32 status, clique; unsigned char state; };
int nvmlDeviceGetGpuFabricInfo(void *gpu, struct fabric *out) {
    u64 state, status;
    ENTER(index_of(gpu));
    if (number("FABRIC", index_of(gpu), 3, &state)) return NOT_SUPPORTED;
    number("FABRIC_STATUS", index_of(gpu), 0, &status);
    memset(out, 0, sizeof *out);
    out->state = (unsigned char)state;
    out->status = (u32)status;
    return OK;
}

struct process { u32 pid; u64 used; u32 instance, compute; };
#ifdef OLD /* R470 and older */
#define nvmlDeviceGetComputeRunningProcesses_v3 nvmlDeviceGetComputeRunningProcesses_v2
#endif
int nvmlDeviceGetComputeRunningProcesses_v3(void *gpu, u32 *count, struct process *out) {
    ENTER(index_of(gpu));
    u64 pid, size;
    number("PID", index_of(gpu), 0, &pid);
    number("PID_MEM", index_of(gpu), 1ULL << 30, &size);
    if (!pid) { *count = 0; return OK; }
    if (!out || *count < 1) { *count = 1; return TOO_SMALL; }
    *count = 1;
    out[0].pid = (u32)pid;
    out[0].used = size;
    out[0].instance = out[0].compute = 0xFFFFFFFFu;
    return OK;
}

int nvmlDeviceGetTopologyCommonAncestor(void *one, void *other, u32 *out) { (void)other; ENTER(index_of(one)); return put32("ANCESTOR", index_of(one), 30, out); }
int nvmlDeviceGetP2PStatus(void *one, void *other, u32 kind, u32 *out) { (void)other; ENTER(index_of(one)); return put32(kind == 2 ? "P2P_NVLINK" : "P2P", index_of(one), 0, out); }

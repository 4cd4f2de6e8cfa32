// One of many libraries that use thread-local storage; NUMBER distinguishes them.
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

static thread_local long counters[4] = {NUMBER};

extern "C" long JOIN(Touch, NUMBER)() { return ++counters[0]; }

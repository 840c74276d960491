// The launcher: grids of blocks of fibers.
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <vector>

// The kernels are compiled into this file, which makes their thread-local indices cheap to reach.
#include "kernels.cu"

namespace shim {
namespace {

std::vector<Kernel>& kernels() {
    static std::vector<Kernel> all;
    return all;
}

// A thread of a block. It lives on and takes the next block's work when it is done: a context is made once and afterwards
// entered by longjmp, which needs no system call.
class Fiber {
  public:
    enum State { Ready, Waiting, Done };
    State state = Ready;

    void resume(jmp_buf& scheduler);
    void yield(State next) {
        state = next;
        if (_setjmp(here) == 0) _longjmp(*back, 1);
    }

  private:
    static const size_t STACK = 64 << 10;
    static void main();

    bool started = false;
    jmp_buf here;
    jmp_buf* back = nullptr;
    ucontext_t context;
    std::unique_ptr<char[]> stack;
};

// What the host thread that launches works on.
struct Launch {
    const Kernel* kernel;
    const void* params;
    std::vector<std::unique_ptr<Fiber>> fibers;
    std::vector<uint64_t> shared;
    Fiber* current = nullptr;
};

thread_local Launch launch;

void Fiber::main() {
    for (;;) {
        launch.kernel->run(launch.params);
        launch.current->yield(Done);
    }
}

void Fiber::resume(jmp_buf& scheduler) {
    back = &scheduler;
    launch.current = this;
    if (_setjmp(scheduler) != 0) return;
    if (started) _longjmp(here, 1);
    started = true;
    stack.reset(new char[STACK]);
    getcontext(&context);
    context.uc_stack.ss_sp = stack.get();
    context.uc_stack.ss_size = STACK;
    context.uc_link = nullptr;
    makecontext(&context, &Fiber::main, 0);
    setcontext(&context);
}

// Positions 0 to count - 1 in the order asked for: 0 ascending, 1 descending, others shuffled by that seed.
std::vector<uint32_t> order_of(uint32_t count, uint32_t order) {
    std::vector<uint32_t> out(count);
    for (uint32_t i = 0; i < count; i++) out[i] = order == 1 ? count - 1 - i : i;
    uint64_t state = order;
    for (uint32_t i = count; order > 1 && i > 1; i--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        std::swap(out[i - 1], out[(state >> 33) % i]);
    }
    return out;
}

void run_block(const std::vector<uint32_t>& threads) {
    jmp_buf scheduler;
    for (auto& fiber : launch.fibers) fiber->state = Fiber::Ready;
    std::fill(launch.shared.begin(), launch.shared.end(), ~0ull);
    for (;;) {
        size_t waiting = 0, done = 0;
        for (uint32_t t : threads) {
            threadIdx = {t, 0, 0};
            launch.fibers[t]->resume(scheduler);
            waiting += launch.fibers[t]->state == Fiber::Waiting;
            done += launch.fibers[t]->state == Fiber::Done;
        }
        if (waiting == 0) return;
        if (done > 0) fail("some threads of a block left, others wait at a barrier");
    }
}

}  // namespace

Registration::Registration(const char* name, size_t params, void (*run)(const void*)) {
    kernels().push_back({name, params, run});
}

void fail(const char* what) {
    fprintf(stderr, "kernel %s: %s\n", launch.kernel->name, what);
    abort();
}

void barrier() { launch.current->yield(Fiber::Waiting); }

void* shared_memory() { return launch.shared.data(); }

}  // namespace shim

// The number of a kernel, or -1.
extern "C" int32_t taciturn_shim_kernel(const char* name) {
    auto& all = shim::kernels();
    for (size_t i = 0; i < all.size(); i++) {
        if (strcmp(all[i].name, name) == 0) return (int32_t)i;
    }
    return -1;
}

extern "C" size_t taciturn_shim_kernel_count() { return shim::kernels().size(); }

extern "C" size_t taciturn_shim_params_size(int32_t kernel) { return shim::kernels()[kernel].params; }

extern "C" void taciturn_shim_launch(int32_t kernel, const uint32_t* grid, uint32_t threads, uint32_t shared, const void* params,
                                     uint32_t order) {
    using namespace shim;
    launch.kernel = &kernels()[kernel];
    launch.params = params;
    launch.shared.resize((shared + 7) / 8);
    while (launch.fibers.size() < threads) launch.fibers.emplace_back(new Fiber);
    blockDim = {threads, 1, 1};
    gridDim = {grid[0], grid[1], grid[2]};
    std::vector<uint32_t> within = order_of(threads, order);
    for (uint32_t block : order_of(grid[0] * grid[1] * grid[2], order)) {
        blockIdx = {block % grid[0], block / grid[0] % grid[1], block / grid[0] / grid[1]};
        run_block(within);
    }
}

#!/usr/bin/env bash
# On a machine with a GPU, beside the programs that package.sh made: checks the device limb for limb, then measures.
# JSON goes into the folder given. Takes a few minutes; the first step that fails ends it.
set -euo pipefail
out=${1:?usage: measure.sh FOLDER}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")"

step() {
    echo "== $1 ($SECONDS s)"
}

step "what is here"
./taciturn doctor --json >"$out/doctor.json"
grep -q '"gpu": true' "$out/doctor.json" || {
    cat "$out/doctor.json"
    echo "no GPU to measure" >&2
    exit 1
}

step "conformance suite on the device"
./conformance --test-threads=4 2>&1 | tee "$out/conformance.txt"

step "kernels"
./taciturn bench kernels --device cuda --json | tee "$out/kernels.json"

step "rotations and products by level"
./taciturn bench primitives --device cuda --json | tee "$out/primitives.json"

for slots in 15 10; do
    step "bootstrap of 2^$slots slots"
    ./taciturn bench bootstrap --device cuda --slots $slots --runs 11 --json | tee "$out/bootstrap-$slots.json"
done

if command -v compute-sanitizer >/dev/null; then
    # Slow: short tests only, which take every kernel.
    for tool in memcheck racecheck; do
        step "$tool"
        timeout 100 compute-sanitizer --tool $tool --error-exitcode 1 ./conformance --test-threads=1 \
            products_are_negacyclic a_digit_extends fused_sums >"$out/$tool.txt" 2>&1 || tail -5 "$out/$tool.txt"
    done
fi
step "done"

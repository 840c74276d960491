#!/usr/bin/env bash
# On a machine with a GPU, beside the programs that package.sh made: checks the device limb for limb, then measures, within ten minutes.
#
#   measure.sh FOLDER [--device cuda|cpu|...] [--small]
#
# Each part has a time limit of its own and files of its own, so that a part that fails or is cut off takes no other with it; each result is
# in the part's .rows as soon as it is measured. What matters most comes first. No part begins or goes on after TOTAL seconds, so that a
# machine lent for ten minutes has time left to send FOLDER away.
# FOLDER/summary.txt says how each part ended. --small takes an insecure parameter set and short parts, to try the script; --device cpu runs
# it where no GPU is, as far as that goes.
set -uo pipefail
out=${1:?usage: measure.sh FOLDER [--device DEVICE] [--small]}
shift
device=cuda
small=
while [ $# -gt 0 ]; do
    case $1 in
    --device) device=${2:?--device: expected a device} && shift ;;
    --small) small=1 ;;
    *) echo "measure.sh: unknown option $1" >&2 && exit 2 ;;
    esac
    shift
done
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")" || exit 1
: >"$out/summary.txt"
# Rows are added to what is there: those of an earlier run are another commit's.
rm -f "$out"/*.rows
# Copies do not always keep what may be executed.
chmod +x taciturn conformance 2>/dev/null

# Seconds for everything, of which parts 1 to 4 may take 555, and for a part that does not end when it is told to.
TOTAL=570
GRACE=5

params=(--params n16-128)
levels=1,4,7,10,13
sizes=(15 10)
runs=11
prompt="def add(a, b):"
new_tokens=2
if [ -n "$small" ]; then
    params=(--params insecure-n11 --allow-insecure)
    levels=1,4
    sizes=(4)
    runs=1
    new_tokens=1
fi

say() {
    printf '%4d s  %s\n' "$SECONDS" "$*" | tee -a "$out/summary.txt"
}

# part NAME SECONDS COMMAND...: standard output to NAME, the rest to NAME.err; fewer seconds where fewer are left.
part() {
    local name=$1 limit=$2 start=$SECONDS code=0
    local left=$((TOTAL - GRACE - SECONDS))
    shift 2
    if [ "$left" -lt 10 ]; then
        say "$name: LEFT OUT: no time"
        return 1
    fi
    [ "$limit" -le "$left" ] || limit=$left
    timeout --kill-after="$GRACE" "$limit" "$@" >"$out/$name" 2>"$out/$name.err" </dev/null || code=$?
    case $code in
    0) say "$name: done in $((SECONDS - start)) s" ;;
    124 | 137) say "$name: CUT OFF after $limit s; what it wrote is there" ;;
    127) say "$name: MISSING: $1 is not here" ;;
    *) say "$name: FAILED ($code): $(tail -n 1 "$out/$name.err")" ;;
    esac
    return $code
}

if [ ! -x ./taciturn ]; then
    say "taciturn: MISSING: run crates/cuda/package.sh FOLDER where Rust is, and copy that folder here"
    exit 1
fi
bench() {
    local name=$1 limit=$2
    shift 2
    part "$name.json" "$limit" ./taciturn bench "$@" "${params[@]}" --device "$device" --rows "$out/$name.rows" --json
}

[ -f commit.txt ] && say "commit $(cat commit.txt)"
part doctor.json 20 ./taciturn doctor --json
if command -v nvidia-smi >/dev/null; then
    part nvidia-smi.txt 10 nvidia-smi -q
else
    say "nvidia-smi: MISSING: clocks and driver are not noted"
fi
if grep -qs '"gpu": *true' "$out/doctor.json"; then
    say "a GPU is here"
else
    say "no GPU: $(grep -os '"gpu_error": *"[^"]*"' "$out/doctor.json")"
    [ "$device" != cuda ] || say "parts that need it fail; --device cpu tries the others"
fi

# 1. Right before fast: every kernel limb for limb.
part conformance.txt 85 ./conformance --test-threads=4 --nocapture ||
    grep -hsE 'FAILED|panicked|^test result' "$out/conformance.txt" "$out/conformance.txt.err" | head -n 40 | tee -a "$out/summary.txt"
# Where no GPU can be opened the suite passes.
if reason=$(grep -hs -m 1 'nothing compared' "$out/conformance.txt.err"); then
    say "conformance.txt: NOTHING COMPARED: $reason"
fi

# 2. Kernels beside the device's limits, then the rows of Cachemir's Table 9.
bench kernels 40 kernels
bench primitives 60 primitives
for size in "${sizes[@]}"; do
    bench "bootstrap-$size" 70 bootstrap --slots "$size" --levels "$levels" --runs "$runs"
done

# 3. Ways to come by the halves of keys.
for way in expanded each-time; do
    bench "bootstrap-$way" 35 bootstrap --slots "${sizes[-1]}" --runs "$runs" --key-halves "$way"
done

# 4. Whole tokens, and the processor's beside.
generate() {
    part "$1.json" "$2" ./taciturn generate --model model --prompt "$prompt" --max-new-tokens "$new_tokens" --seed 1 "${params[@]}" \
        --device "$3" --rows "$out/$1.rows" --json
}
if [ -d model ]; then
    generate tokens-device 60 "$device"
    generate tokens-cpu 70 cpu
    tokens() { tr -d ' \n' <"$1" | grep -o '"tokens":\[[0-9,]*\]'; }
    if [ -s "$out/tokens-device.json" ] && [ -s "$out/tokens-cpu.json" ]; then
        if [ "$(tokens "$out/tokens-device.json")" = "$(tokens "$out/tokens-cpu.json")" ]; then
            say "tokens: equal to the processor's, $(tokens "$out/tokens-device.json")"
        else
            say "tokens: DIFFERENT from the processor's"
        fi
    fi
else
    say "tokens: MISSING: no folder model"
fi

# 5. In the time that is left: slow tools on short tests that take every kernel.
for tool in memcheck racecheck; do
    if command -v compute-sanitizer >/dev/null; then
        part "$tool.txt" 60 compute-sanitizer --tool "$tool" --error-exitcode 1 ./conformance --test-threads=1 \
            products_are_negacyclic a_digit_extends fused_sums
    else
        say "$tool: MISSING: compute-sanitizer is not here"
    fi
done
say "the end"

#!/usr/bin/env bash
# Builds what a machine with a GPU needs and nothing else there: the command, the conformance suite, the demonstration model, and measure.sh
# to run them.
set -euo pipefail
out=${1:?usage: crates/cuda/package.sh FOLDER}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/../.."

if [ -z "${TACITURN_NVCC:-}" ]; then
    TACITURN_NVCC=$(crates/cuda/toolkit.sh target/cuda-toolkit)
    export TACITURN_NVCC
fi
cargo build --release --locked -p taciturn --features cuda
suite=$(cargo test --release --locked -p taciturn-cuda --features gpu --test gpu --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')
target=$(cargo metadata --locked --no-deps --format-version=1 | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p')
install "$target/release/taciturn" "$out/taciturn"
install "$suite" "$out/conformance"
install crates/cuda/measure.sh "$out/measure.sh"
strip "$out/taciturn" "$out/conformance"
rm -rf "$out/model"
cp -r models/llama-code-tiny "$out/model"
git describe --always --dirty >"$out/commit.txt"
ls -l "$out"

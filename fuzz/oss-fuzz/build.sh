#!/bin/bash -eu
# Copyright 2026 the authors of Cenote
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
#
################################################################################

cd "$SRC/cenote"
# For coverage, the builder runs `cargo build --bins` instead of `cargo fuzz build`, without features.
sed -i 's/^default = \[\]$/default = ["fuzzing"]/' fuzz/Cargo.toml
cargo fuzz build -O --debug-assertions
for target in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$target" .rs)
    cp "target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
    zip -q -j "$OUT/${target}_seed_corpus.zip" "fuzz/corpus/$target"/*
done

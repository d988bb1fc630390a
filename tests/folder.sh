# folder.sh: included (.) by tests: makes a new folder $dir the working folder, and
# removes it when the test ends.
# SPDX-License-Identifier: Apache-2.0
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 2

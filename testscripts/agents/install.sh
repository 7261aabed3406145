#!/usr/bin/env bash
# Installs the agents that tests tagged `agents` drive, at the versions of package-lock.json, into node_modules
# beside this script. Quick when they are there. Exits 3 if npm is missing, else with npm's code.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# npm removes node_modules before it installs: the copy of the lock file is there only after a whole installation.
readonly installed=node_modules/.installed
if cmp -s package-lock.json "$installed"; then
	exit 0
fi
if ! command -v npm >/dev/null; then
	echo 'agents: npm is not on the PATH, so no agent can be installed; install Node.js 16 or newer with npm' >&2
	exit 3
fi
npm ci --ignore-scripts --no-audit --no-fund --include=optional
cp package-lock.json "$installed"

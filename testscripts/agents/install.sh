#!/usr/bin/env bash
# Installs the agents that tests tagged `agents` drive, at the versions of package-lock.json, into node_modules
# beside this script. Quick when they are there. Exits 3 if npm is missing, else with npm's code.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# The copy of the lock file is there only after a whole installation.
readonly installed=node_modules/.installed
if cmp -s package-lock.json "$installed"; then
	exit 0
fi
if ! command -v npm >/dev/null; then
	echo 'agents: npm is not on the PATH, so no agent can be installed; install Node.js 16 or newer with npm' >&2
	exit 3
fi
# Not npm ci: it wants the packages for other systems in the lock file too, and not every registry has them. What is in the
# lock file is installed as it stands there, or not at all.
rm -rf node_modules
npm install --no-save --ignore-scripts --no-audit --no-fund --include=optional --loglevel=error
cp package-lock.json "$installed"

#!/bin/sh
# Installs Debian's Chromium, in which the tests of the report pages run. Where that cannot be done, says what can.
set -eu

if command -v chromium >/dev/null 2>&1; then
    chromium --version
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "There is no apt-get here: install a package that gives the command 'chromium' by hand." >&2
    echo "Without it, the tests in tests/browser are skipped." >&2
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "Installing Chromium needs root. Run this, then try again:" >&2
    echo "    sudo apt-get update && sudo apt-get install --yes chromium" >&2
    echo "Without it, the tests in tests/browser are skipped." >&2
    exit 1
fi
apt-get update --quiet
DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends chromium fonts-dejavu-core
chromium --version

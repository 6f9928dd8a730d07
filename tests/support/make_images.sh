#!/usr/bin/env bash
# The container images that the tests use: eval "$(tests/support/make_images.sh)"
#
# Where a registry answers, the official PostgreSQL and Python images are pulled. Elsewhere one is made from
# Debian's packages (needs root and debootstrap, about a minute) with both in it; its entry point takes
# POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB as the official PostgreSQL image does.
# Prints the settings that name the images; what happens goes to stderr. Ends with 1 if there is no image.
set -euo pipefail

postgres=${PGCOMBINE_TEST_IMAGE:-postgres:15}
python=${PGCOMBINE_TEST_PYTHON_IMAGE:-python:3.12-slim}
made=pgcombine-test:$(sha256sum "${BASH_SOURCE[0]}" | cut -c 1-12) # made by this very script, or made anew
packages=postgresql-15,postgresql-15-hll,postgresql-15-tdigest,python3-pip

exec 9>"${TMPDIR:-/tmp}/pgcombine-images-$UID.lock"
flock 9 # test processes that need the image at the same time wait for the first one's

say() { echo "images: $*" >&2; }

answer() {
  echo "export PGCOMBINE_TEST_IMAGE=$1"
  echo "export PGCOMBINE_TEST_PYTHON_IMAGE=$2"
}

have() { docker image inspect "$1" >/dev/null 2>&1; }

# "Unauthorized" is an answer: a registry wants a token first.
registry_answers() {
  python3 - <<'PY'
import sys, urllib.error, urllib.request
try:
    urllib.request.urlopen("https://registry-1.docker.io/v2/", timeout=8)
except urllib.error.HTTPError as error:
    sys.exit(error.code != 401)
except OSError:
    sys.exit(1)
PY
}

pull() { have "$1" || timeout 300 docker pull -q "$1" >&2; }

if registry_answers && pull "$postgres" && pull "$python"; then
  say "$postgres and $python are from the registry"
  answer "$postgres" "$python"
  exit 0
fi
if have "$made"; then
  say "$made was made before"
  answer "$made" "$made"
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

say "no registry answers: making $made from Debian packages"
if ! debootstrap --variant=minbase --include="$packages" bookworm "$root" >"$work/log" 2>&1; then
  tail -n 20 "$work/log" >&2
  say "debootstrap failed (it needs root and a Debian mirror); the end of its log is above"
  exit 1
fi

# As in the official Python image: pip installs into the system, and knows who this machine trusts.
rm -f "$root"/usr/lib/python3*/EXTERNALLY-MANAGED
install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"

cat >"$root/usr/local/bin/docker-entrypoint.sh" <<'ENTRY'
#!/bin/sh
# Start PostgreSQL as the official image does: the first start makes the cluster, the role and the database.
set -eu
[ "${1#-}" = "$1" ] || set -- postgres "$@"
[ "$1" = postgres ] || exec "$@"

user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}
as_postgres="setpriv --reuid=postgres --regid=postgres --init-groups"
install -d -o postgres -g postgres -m 0700 "$PGDATA"
install -d -o postgres -g postgres -m 2775 /var/run/postgresql

if [ ! -s "$PGDATA/PG_VERSION" ]; then
  : "${POSTGRES_PASSWORD:?POSTGRES_PASSWORD must be set}"
  umask 077
  printf '%s\n' "$POSTGRES_PASSWORD" >/tmp/password
  chown postgres /tmp/password
  $as_postgres initdb --no-sync -E UTF8 --locale=C.UTF-8 -U "$user" --pwfile=/tmp/password \
    --auth-local=trust --auth-host=scram-sha-256 -D "$PGDATA" >/dev/null
  rm /tmp/password
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
  if [ "$database" != postgres ]; then
    printf 'create database "%s"\n' "$database" | $as_postgres postgres --single -D "$PGDATA" postgres >/dev/null
  fi
fi
exec $as_postgres "$@"
ENTRY
chmod 755 "$root/usr/local/bin/docker-entrypoint.sh"

tar -C "$root" --exclude=./var/cache/apt --exclude=./var/lib/apt/lists --exclude=./var/lib/postgresql/15 \
  --exclude=./usr/share/doc --exclude=./usr/share/man --exclude=./usr/share/locale \
  --exclude='./proc/*' --exclude='./sys/*' -c . |
  docker import \
    --change 'ENV PATH=/usr/lib/postgresql/15/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
    --change 'ENV PGDATA=/var/lib/postgresql/data' \
    --change 'VOLUME /var/lib/postgresql/data' \
    --change 'EXPOSE 5432' \
    --change 'ENTRYPOINT ["docker-entrypoint.sh"]' \
    --change 'CMD ["postgres"]' \
    - "$made" >/dev/null
answer "$made" "$made"

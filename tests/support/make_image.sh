#!/usr/bin/env bash
# make_image.sh [IMAGE]: see to it that the local Docker engine has a PostgreSQL image of that name.
#
# The official image is pulled where a registry answers. Elsewhere an image with PostgreSQL 15 is made from
# Debian's packages (root, debootstrap); its entry point takes POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB
# as the official one does. Ends with 0 and one line saying where the image is from, else 1.
set -euo pipefail

image=${1:-${PGCOMBINE_TEST_IMAGE:-postgres:15}}
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

if docker image inspect "$image" >/dev/null 2>&1; then
  echo "image $image: already there"
  exit 0
fi

# An HTTP error counts as an answer: the registry wants a token first.
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

if registry_answers && timeout 300 docker pull -q "$image"; then
  echo "image $image: pulled"
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

if ! debootstrap --variant=minbase --include=postgresql-15 bookworm "$root" "$mirror" >"$work/log" 2>&1; then
  tail -n 20 "$work/log" >&2
  echo "image $image: debootstrap failed (root? network?), its log ends above" >&2
  exit 1
fi

cat >"$root/usr/local/bin/docker-entrypoint.sh" <<'ENTRY'
#!/bin/sh
# Start PostgreSQL as the official image does: a first start makes the cluster, the role and the database.
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

tar -C "$root" --exclude=./var/cache/apt --exclude=./var/lib/apt/lists --exclude=./usr/share/doc \
  --exclude=./usr/share/man --exclude=./usr/share/locale --exclude='./var/lib/postgresql/15' \
  --exclude='./proc/*' --exclude='./sys/*' -c . |
  docker import \
    --change 'ENV PATH=/usr/lib/postgresql/15/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
    --change 'ENV PGDATA=/var/lib/postgresql/data' \
    --change 'VOLUME /var/lib/postgresql/data' \
    --change 'EXPOSE 5432' \
    --change 'ENTRYPOINT ["docker-entrypoint.sh"]' \
    --change 'CMD ["postgres"]' \
    - "$image" >/dev/null
echo "image $image: made from Debian packages"

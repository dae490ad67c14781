#!/bin/sh
# Certificates for the links between router and nodes: a private authority, one certificate per router, one per node.
#
#   make-certificates.sh DIR ca                    once; keep DIR/ca.key off the hosts
#   make-certificates.sh DIR router NAME...        every name and address that agents dial; files DIR/router-NAME.{pem,key}
#   make-certificates.sh DIR node NODE             the name in agent.yaml; files DIR/node-NODE.{pem,key}
#
# DAYS sets how long a certificate is valid (default 397; the authority 3650). To renew, run it again and put the new
# files in the place of the old ones. Router and agent read files of their own again; what systemd hands them as a
# credential is a copy, which a restart renews (INSTALL.md, "a renewed certificate").
set -eu
umask 077

fail() {
  echo "make-certificates.sh: $1" >&2
  exit 1
}

usage="usage: make-certificates.sh DIR ca | DIR router NAME... | DIR node NODE"
[ $# -ge 2 ] || fail "$usage"
command -v openssl >/dev/null 2>&1 || fail "openssl is not installed"
dir=$1
what=$2
shift 2
for name in "$@"; do
  case $name in *[!A-Za-z0-9.:_-]*) fail "\"$name\" is not a name or an address" ;; esac
done
mkdir -p "$dir"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# openssl talks on stderr also when all is well
quietly() {
  openssl "$@" 2>"$work/said" || fail "$(cat "$work/said")"
}

alternative_name() {
  case $1 in
    *:*) echo "IP:$1" ;;
    *[!0-9.]*) echo "DNS:$1" ;;
    *) echo "IP:$1" ;;
  esac
}

# file, common name, alternative names
issue() {
  [ -f "$dir/ca.key" ] || fail "no authority in $dir: run \"make-certificates.sh $dir ca\" first"
  cat >"$work/extensions" <<EOF
basicConstraints = critical, CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectAltName = $3
EOF
  quietly req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$2" \
    -keyout "$work/key" -out "$work/request"
  quietly x509 -req -in "$work/request" -CA "$dir/ca.pem" -CAkey "$dir/ca.key" -set_serial "0x$(openssl rand -hex 16)" \
    -days "${DAYS:-397}" -extfile "$work/extensions" -out "$work/certificate"
  mv "$work/key" "$1.key"
  mv "$work/certificate" "$1.pem"
  chmod 644 "$1.pem"
  echo "$1.pem $1.key ($3)"
}

case $what in
  ca)
    [ ! -e "$dir/ca.key" ] || fail "$dir/ca.key exists: a new authority would make every certificate worthless"
    quietly req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days "${DAYS:-3650}" \
      -subj "/CN=Weiche node authority" -addext "basicConstraints = critical, CA:true, pathlen:0" \
      -addext "keyUsage = critical, keyCertSign, cRLSign" -keyout "$dir/ca.key" -out "$dir/ca.pem"
    chmod 644 "$dir/ca.pem"
    echo "$dir/ca.pem $dir/ca.key"
    ;;
  router)
    [ $# -ge 1 ] || fail "$usage"
    names=""
    for name in "$@"; do names="$names${names:+, }$(alternative_name "$name")"; done
    issue "$dir/router-$1" "$1" "$names"
    ;;
  node)
    [ $# -eq 1 ] || fail "$usage"
    issue "$dir/node-$1" "$1" "DNS:$1"
    ;;
  *) fail "$usage" ;;
esac

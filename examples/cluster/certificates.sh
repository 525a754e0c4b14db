#!/usr/bin/env bash
# Makes an authority in this folder, once, and a certificate for each server that is named:
#   certificates.sh n1.example n2.example n3.example
# ca-key.pem signs further ones: keep it apart from the servers. IP:127.0.0.1 names an address.
set -euo pipefail
umask 077
[ $# -gt 0 ] || { echo "usage: $0 NAME ..., such as n1.example" >&2; exit 2; }
new="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
if [ ! -e ca-key.pem ]; then
  openssl req -x509 $new -days 3650 -subj "/CN=racflow cluster" -addext keyUsage=critical,keyCertSign -keyout ca-key.pem -out ca.pem
fi
for name; do
  case $name in *:*) names=$name ;; *) names=DNS:$name ;; esac
  file=${name##*:}
  openssl req -x509 $new -days 365 -CA ca.pem -CAkey ca-key.pem -subj "/CN=$file" -addext "subjectAltName=$names" \
    -addext basicConstraints=critical,CA:FALSE -addext extendedKeyUsage=serverAuth,clientAuth -keyout "$file-key.pem" -out "$file.pem"
done

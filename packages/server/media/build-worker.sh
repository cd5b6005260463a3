#!/usr/bin/env bash
# Builds the C++ worker of the npm package "mediasoup" on Debian 12 from that
# package's own sources and Debian's libraries. Downloads nothing, needs neither
# meson nor pip. Written for mediasoup 3.27.1; see docs/calls.md.
#
#   build-worker.sh [options] <path of node_modules/mediasoup>
#
#   --out FILE      where the binary goes (default: worker/out/Release/mediasoup-worker
#                   in the package, where mediasoup looks for it)
#   --cache DIR     keep finished binaries here, by key, and take them from here
#   --opt LEVEL     O1, O2 (default) or O3
#   --jobs N        compilers at a time (default: number of cores)
#   --groups N      translation units to merge the sources into (default: 6; 0: none)
#   --work DIR      build folder (default: a temporary one, removed at the end)
#   --force         build even if the output or the cache has this key
#   --key           print the key and stop
set -euo pipefail
export LC_ALL=C

main() { # one function, so that bash reads all of the file before it runs any of it

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
pkg= out= cache= opt=O2 jobs=$(nproc) groups=6 work= force=0 key_only=0
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=$2; shift 2 ;;
    --cache) cache=$2; shift 2 ;;
    --opt) opt=${2#-}; shift 2 ;;
    --jobs) jobs=$2; shift 2 ;;
    --groups) groups=$2; shift 2 ;;
    --work) work=$2; shift 2 ;;
    --force) force=1; shift ;;
    --key) key_only=1; shift ;;
    -h|--help) sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) echo "unknown option $1" >&2; exit 2 ;;
    *) pkg=$1; shift ;;
  esac
done
say() { printf '[%4ss] %s\n' "$SECONDS" "$*"; }
die() { printf 'build-worker: %s\n' "$*" >&2; exit 1; }

[ -n "$pkg" ] && [ -f "$pkg/worker/src/main.cpp" ] || die "give the path of node_modules/mediasoup (with its worker/ sources)"
pkg=$(cd "$pkg" && pwd)
version=$(sed -n 's/^[[:space:]]*"version": *"\([^"]*\)".*/\1/p' "$pkg/package.json" | head -1)
out=${out:-$pkg/worker/out/Release/mediasoup-worker}
mkdir -p "$(dirname "$out")"; out=$(cd "$(dirname "$out")" && pwd)/$(basename "$out")
if [ -n "$cache" ]; then mkdir -p "$cache"; cache=$(cd "$cache" && pwd); fi

# ------------------------------------------------------------------------ the key
# What decides whether a finished binary fits: mediasoup's version, the C library,
# the architecture, the Debian release (sonames), the way it is built.
libc=glibc$(getconf GNU_LIBC_VERSION | awk '{print $2}')
arch=$(dpkg --print-architecture)
distro=$(. /etc/os-release && echo "${ID}${VERSION_ID:-}")
recipe=$( { cat "$here/build-worker.sh"; find "$here/shims" -type f | sort | xargs cat; echo "$opt $groups"; } | sha256sum | cut -c1-10)
runtime="libssl3 libuv1 libstdc++6 libsrtp2-1 libnss3"
key=mediasoup-worker-$version-$libc-$arch-$distro-$recipe
if [ $key_only = 1 ]; then echo "$key"; exit 0; fi

starts() { # without MEDIASOUP_VERSION the worker says so and exits with 41
  local code=0
  env -u MEDIASOUP_VERSION "$1" > /dev/null 2>&1 || code=$?
  [ $code = 41 ]
}
install_bin() { # from; also the stamp beside it
  install -m 755 "$1" "$out.tmp$$" && mv "$out.tmp$$" "$out"
  install -m 644 "$1.json" "$out.json.tmp$$" && mv "$out.json.tmp$$" "$out.json"
}
if [ $force = 0 ]; then
  if [ -x "$out" ] && grep -qsF "\"key\": \"$key\"" "$out.json"; then
    say "up to date: $key"; exit 0
  fi
  if [ -n "$cache" ] && [ -x "$cache/$key/mediasoup-worker" ]; then
    if starts "$cache/$key/mediasoup-worker"; then
      install_bin "$cache/$key/mediasoup-worker"; say "from the cache: $key"; exit 0
    fi
    say "the cached binary does not start here (run-time packages: $runtime); building anew"
  fi
fi

# ---------------------------------------------------------------- what is needed
need=(g++ flatbuffers-compiler libflatbuffers-dev libssl-dev libuv1-dev libsrtp2-dev)
missing=()
for p in "${need[@]}"; do
  dpkg-query -W -f='${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || missing+=("$p")
done
[ ${#missing[@]} -eq 0 ] || die "missing packages; run: apt-get install -y --no-install-recommends ${missing[*]}"
pv() { dpkg-query -W -f='${Version}' "$1" 2>/dev/null || true; }

# ---------------------------------------------------------------- sources and shims
say "building $key (-$opt, $jobs jobs, $groups groups)"
if [ -z "$work" ]; then work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; fi
mkdir -p "$work"; work=$(cd "$work" && pwd); cd "$work"; rm -rf src include deps fbs gen obj shims
cp -r "$pkg/worker/src" "$pkg/worker/include" "$pkg/worker/fbs" .
mkdir deps; cp -r "$pkg/worker/deps/libwebrtc" deps/
cp -r "$here/shims" shims
mkdir -p gen/FBS obj

# The DTLS BIO callback answers 1 to every operation that is not exactly
# BIO_CB_RETURN, which none is (the flag comes or'ed to the operation). So libssl's
# question "does this BIO do kTLS?" is answered yes; Debian's OpenSSL has kTLS
# compiled in, allocates no write buffer and crashes in the first handshake.
f=src/RTC/DtlsTransport.cpp
if grep -q 'operationType == BIO_CB_RETURN' $f; then
  sed -i 's/(operationType == BIO_CB_RETURN) ? static_cast<long>(ret) : 1/(operationType \& BIO_CB_RETURN) ? static_cast<long>(ret) : 1/' $f
fi
grep -q '(operationType & BIO_CB_RETURN) ? static_cast<long>(ret) : 1' $f \
  || die "DtlsTransport.cpp is not what the BIO callback fix expects; look at onSslBioOut()"

# TCP connections that never become part of a transport are closed (shims/pending-tcp.hpp).
hook() { # file, the one line after which the code goes, code
  [ "$(grep -cF "$2" "$1")" = 1 ] || die "$1 is not what shims/pending-tcp.hpp expects; look for: $2"
  awk -v line="$2" -v code="$3" '{ print } index($0, line) { print code }' "$1" > "$1.new" && mv "$1.new" "$1"
}
hook include/RTC/TransportTuple.hpp 'void CloseTcpConnection();' \
  'RTC::TcpConnection* GetTcpConnection() const { return this->tcpConnection; }'
hook src/handles/TcpServerHandle.cpp 'this->connections.insert(connection);' 'PendingTcp::Add(connection);'
hook src/handles/TcpConnectionHandle.cpp 'delete[] this->buffer;' 'PendingTcp::Remove(this);'
hook src/RTC/ICE/IceServer.cpp 'this->listener->OnIceServerTupleAdded(this, storedTuple);' \
  'PendingTcp::Remove(storedTuple->GetTcpConnection());'
sed -i '1i #include "pending-tcp.hpp"' src/handles/TcpServerHandle.cpp src/handles/TcpConnectionHandle.cpp src/RTC/ICE/IceServer.cpp

flatc --cpp --cpp-field-case-style lower --reflect-names --scoped-enums --filename-suffix '' -o gen/FBS fbs/*.fbs

# --------------------------------------------------------------- translation units
# Parsing the headers costs more than compiling most files, so files are merged
# into a few units. Files that define the same file-local name go into different
# ones. A unit that does not compile is compiled file by file.
find src -name '*.cpp' | sort > worker.list
find deps/libwebrtc -name '*.cc' | sort > webrtc.list
plan() { # list, number of units, prefix
  xargs wc -c < "$1" | grep -v ' total$' | sort -k1,1nr -k2 | awk -v n="$2" -v prefix="$3" '
    {
      file = $2; size = $1; delete names; count = 0
      while ((getline line < file) > 0) {
        if (line !~ /^[\t ]?[\t ]?[\t ]?(alignas\([0-9]+\) )?(static|inline|constexpr|const|thread_local|enum) /) continue
        static = line ~ /static /
        sub(/enum \{ */, "", line); sub(/alignas\([0-9]+\)/, "", line)
        sub(/[({=\[;].*/, "", line); sub(/[ \t]+$/, "", line)
        if (match(line, /[A-Za-z_][A-Za-z_0-9]*$/) == 0 || substr(line, RSTART - 1, 1) == ":") continue
        line = substr(line, RSTART)
        if (static || line ~ /^k[A-Z]/) names[count++] = line
      }
      close(file); best = -1
      for (g = 0; g < n; g++) {
        clashes = 0
        for (i = 0; i < count; i++) if ((g, names[i]) in used) clashes++
        if (best < 0 || clashes < least || (clashes == least && load[g] < load[best])) { best = g; least = clashes }
      }
      load[best] += size; for (i = 0; i < count; i++) used[best, names[i]] = 1
      print file > (prefix best ".files")
    }'
}
rm -f obj/*
if [ "$groups" -gt 0 ]; then
  plan worker.list "$groups" obj/worker-
  plan webrtc.list 3 obj/webrtc- # three of its files share a name
else
  i=0; cat worker.list webrtc.list | while read -r f; do echo "$f" > "obj/one-$((i++)).files"; done
fi
for l in obj/*.files; do
  sort -o "$l" "$l"
  sed 's|.*|#undef MS_CLASS\n#include "&"|' "$l" > "${l%.files}.cpp"
done

endian=MS_LITTLE_ENDIAN
[ "$(printf '\1\0' | od -An -td2 | tr -d ' ')" = 1 ] || endian=MS_BIG_ENDIAN
cat > compile.sh <<C
set -eu
u=\$1; s=\$(date +%s)
flags="-std=c++20 -$opt -pipe -w -DNDEBUG -D_FILE_OFFSET_BITS=64 -DFLATBUFFERS_LOCALE_INDEPENDENT=1 -D$endian -DMS_EXECUTABLE
  -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection -fPIE -ffile-prefix-map=$work=. -ffunction-sections -fdata-sections
  -I. -Iinclude -Ishims -Igen -Ideps/libwebrtc -Ideps/libwebrtc/libwebrtc"
if g++ \$flags -c obj/\$u.cpp -o obj/\$u.o 2> obj/\$u.err; then :
elif [ "\$(wc -l < obj/\$u.files)" -gt 1 ]; then
  echo "        \$u does not compile as one unit (\$(grep -m1 error: obj/\$u.err)); file by file"
  n=0; while read -r f; do g++ \$flags -c "\$f" -o "obj/\$u.\$n.o"; n=\$((n + 1)); done < obj/\$u.files
else cat obj/\$u.err >&2; exit 1; fi
echo "        \$u: \$(wc -l < obj/\$u.files) files, \$((\$(date +%s) - s)) s"
C
say "compiling $(cat worker.list webrtc.list | wc -l) files as $(ls obj/*.files | wc -l) units"
ls -S obj/*.cpp | sed 's|obj/||;s|\.cpp$||' | awk '/^worker/{a[++n]=$0;next}{b[++m]=$0}END{for(i=1;i<=n;i++)print a[i];for(i=1;i<=m;i++)print b[i]}' \
  | xargs -P "$jobs" -I{} bash compile.sh {} || die "compilation failed"

# ---------------------------------------------------------------- link and look
say "linking"
g++ -pie -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--gc-sections -Wl,--as-needed -Wl,-O1 -o mediasoup-worker.full \
  $(ls obj/*.o | sort) -lsrtp2 -lssl -lcrypto -luv -pthread -ldl
strip -o mediasoup-worker mediasoup-worker.full
starts ./mediasoup-worker || die "the binary does not start"
cat > mediasoup-worker.json <<J
{
  "key": "$key",
  "mediasoup": "$version",
  "opt": "$opt",
  "compiler": "$(g++ -dumpfullversion)",
  "builtAgainst": {
    "openssl": "$(pv libssl3) (shared)",
    "libuv": "$(pv libuv1) (shared)",
    "srtp": "$(pv libsrtp2-1) (shared, over NSS)",
    "flatbuffers": "$(pv libflatbuffers-dev) (headers)",
    "libstdc++": "$(pv libstdc++6) (shared)"
  },
  "runtimePackages": "$runtime",
  "sha256": "$(sha256sum mediasoup-worker | cut -d' ' -f1)"
}
J
install_bin mediasoup-worker
if [ -n "$cache" ]; then
  tmp=$(mktemp -d "$cache/.new.XXXXXX"); chmod 755 "$tmp"
  cp mediasoup-worker mediasoup-worker.json "$tmp/"
  rm -rf "${cache:?}/$key"; mv -T "$tmp" "$cache/$key" || rm -rf "$tmp" # another build may have been first
fi
say "done: $(stat -c %s "$out") bytes, $key"
}
main "$@"; exit $?

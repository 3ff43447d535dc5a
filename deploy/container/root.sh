#!/usr/bin/env bash
# The whole content of the container: the two programs, the libraries that they load, and the few files that these
# look at. No shell, no package manager. It is made on Debian, from the libraries that are installed there.
#
#   BUILD=build deploy/container/root.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build} root=${1:?a folder to make}
umask 022
mkdir -p "$root"/{etc/grapevine,etc/ssl/certs,usr/bin,usr/share/doc/grapevine,tmp,run,var}

for program in grapevine gvctl; do
    strip --strip-unneeded -R .comment -o "$root/usr/bin/$program" "$BUILD/$program"
    chmod 755 "$root/usr/bin/$program"
done

# What the loader would load, under the names by which it would find it; where /lib is /usr/lib, so here.
for folder in lib lib64; do
    mkdir -p "$root/usr/$folder"
    ln -sfn "usr/$folder" "$root/$folder"
done
for program in grapevine gvctl; do
    ldd "$BUILD/$program" | grep -oE '/[^ ]+'
done | sort -u | while read -r library; do
    target=$root/usr/${library#/}
    target=${target/usr\/usr/usr}
    install -D -m 755 "$(readlink -f "$library")" "$target"
    strip --strip-unneeded "$target" 2>/dev/null || true
    # Its licence goes where it goes.
    owner=$(dpkg-query -S "$(readlink -f "$library")" 2>/dev/null || dpkg-query -S "${library#/usr}" 2>/dev/null || true)
    owner=$(sed -n '1s/[:,].*//p' <<<"$owner")
    [ -z "$owner" ] || install -D -m 644 "/usr/share/doc/$owner/copyright" "$root/usr/share/doc/$owner/copyright"
done

echo 'root:x:0:0:root:/:/sbin/nologin
grapevine:x:65532:65532:Grapevine:/:/sbin/nologin' >"$root/etc/passwd"
echo 'root:x:0:
grapevine:x:65532:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
[ ! -e /etc/ssl/certs/ca-certificates.crt ] || cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
install -m 644 LICENSE "$root/usr/share/doc/grapevine/LICENSE"
# Empty settings: all of them are flags and variables, too.
sed -n '1,/^$/p' deploy/etc/replicas >"$root/etc/grapevine/replicas"
chmod 1777 "$root/tmp"

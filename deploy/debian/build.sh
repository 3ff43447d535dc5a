#!/usr/bin/env bash
# Makes a Debian package of what `make` built. The same sources and SOURCE_DATE_EPOCH give the same bytes, wherever
# they lie; without it the time is that of the last commit.
#
#   BUILD=build [VERSION_SUFFIX=+local1] deploy/debian/build.sh    (prints the name of the package)
#
# The version ends in VERSION_SUFFIX, which may be empty; by default in what suffix.sh prints.
#
# By dpkg's own tools, which come with the compiler, not by debhelper: that would be forty packages more for whoever
# builds, and this is quick enough for the tests to build one each time. What debhelper would write stands in the
# maintainer scripts.
set -euo pipefail
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
version=$("$BUILD/grapevine" --version | cut -d' ' -f2 | cut -d+ -f1)
suffix=${VERSION_SUFFIX-$(deploy/debian/suffix.sh "$version")}
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y base/version.h)
fi
export SOURCE_DATE_EPOCH
version+=$suffix

tree=$root/tree
umask 022
python3 deploy/man/make.py "$BUILD/grapevine" "$BUILD/gvctl" "$root/man"
mkdir -p "$root/build" "$tree/DEBIAN"
for program in grapevine gvctl; do
    strip --strip-unneeded -R .comment -o "$root/build/$program" "$BUILD/$program"
done
mv "$root/man" "$root/build/man"
BUILD=$root/build DESTDIR=$tree PREFIX=/usr UNITDIR=/lib/systemd/system \
    COMPLETION_ZSH=/usr/share/zsh/vendor-completions deploy/install.sh install

doc=$tree/usr/share/doc/grapevine
rm "$doc/LICENSE" # the copyright file says where it is
install -m 644 deploy/debian/copyright "$doc/copyright"
{
    echo "grapevine ($version) stable; urgency=medium"
    echo
    echo "  * Version $version."
    echo
    echo " -- $(sed -n 's/^Maintainer: //p' deploy/debian/control)  $(date -uRd "@$SOURCE_DATE_EPOCH")"
} >"$root/changelog"
gzip -9nc "$root/changelog" >"$doc/changelog.gz"
gzip -9n "$tree"/usr/share/man/man?/*

cp deploy/debian/{postinst,prerm,postrm} "$tree/DEBIAN/"
chmod 755 "$tree"/DEBIAN/{postinst,prerm,postrm}
(cd "$tree" && find etc -type f -printf '/%p\n' | sort) >"$tree/DEBIAN/conffiles"
(cd "$tree" && find usr lib -type f -print0 | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"

mkdir "$root/debian" # where dpkg's tools look
cp deploy/debian/control "$root/debian/control"
cp "$root/changelog" "$root/debian/changelog"
(
    cd "$root"
    dpkg-shlibdeps -O "$tree"/usr/bin/* >debian/substvars
    dpkg-gencontrol -pgrapevine -Tdebian/substvars -fdebian/files -P"$tree" >/dev/null
)
# Of an earlier build: `apt install build/grapevine_*.deb` takes one.
[ -n "${VERSION_SUFFIX+given}" ] || rm -f "$BUILD"/grapevine_*.deb
package=$BUILD/grapevine_${version}_$(dpkg --print-architecture).deb
find "$tree" -newermt "@$SOURCE_DATE_EPOCH" -print0 | xargs -0r touch -hd "@$SOURCE_DATE_EPOCH"
dpkg-deb --root-owner-group -Zxz --build "$tree" "$package" >/dev/null
echo "$package"

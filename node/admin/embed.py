#!/usr/bin/env python3
"""Turns the files of the page (node/admin/page/) into C, which make compiles into the programs.

usage: embed.py FILE... >page_files.c
"""
import os
import sys

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


def main():
    files = []
    print("/* Made by node/admin/embed.py: change the files of the page. */")
    print('#include "node/admin/page.h"\n')
    for number, path in enumerate(sorted(sys.argv[1:])):
        name = os.path.basename(path)
        url = "/" if name == "index.html" else "/page/" + name
        kind = TYPES[os.path.splitext(name)[1]]
        with open(path, "rb") as f:
            data = f.read()
        files.append((url, kind, number, len(data)))
        print("static const unsigned char file_%d[] = {" % number)
        for at in range(0, len(data), 20):
            print("    " + "".join("%d," % byte for byte in data[at:at + 20]))
        print("};\n")
    print("const struct admin_page_file admin_page_files[] = {")
    for url, kind, number, size in files:
        print('    {"%s", "%s", file_%d, %d},' % (url, kind, number, size))
    print("};\nconst unsigned admin_page_files_count = %d;" % len(files))


if __name__ == "__main__":
    main()

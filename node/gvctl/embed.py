#!/usr/bin/env python3
"""Turns the templates of completion scripts (node/gvctl/completion/) into C: what make compiles into gvctl.

usage: embed.py FILE... >completion_files.c
"""
import os
import sys


def main():
    print("/* Made by node/gvctl/embed.py: change the templates. */")
    print('#include "node/gvctl/completion.h"\n')
    print("const struct completion_file completion_files[] = {")
    for path in sorted(sys.argv[1:]):
        print('    {"%s",' % os.path.basename(path))
        with open(path, encoding="ascii") as f:
            for line in f:
                print('     "%s\\n"' % "".join("\\" + c if c in '\\"?' else c for c in line.rstrip("\n")))
        print("    },")
    print("    {NULL, NULL},\n};")


if __name__ == "__main__":
    main()

"""Workloads, checkers and nemeses by their names: a file each, or classes of files."""

import importlib
import os
import re
import sys

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def modules(folder):
    path = os.path.join(HERE, folder)
    names = sorted(os.listdir(path)) if os.path.isdir(path) else []
    return [n[:-3] for n in names if n.endswith(".py") and not n.startswith("_")]


def workloads():
    """name -> class"""
    out = {}
    for m in modules("workloads"):
        cls = getattr(importlib.import_module("workloads." + m), "Workload", None)
        if cls is not None:
            out[cls.name] = cls
    return out


def about(cls):
    """A description: the first sentence of its class, or of its file."""
    text = " ".join((cls.__doc__ or sys.modules[cls.__module__].__doc__ or "").split())
    return re.split(r"(?<=\.) ", text)[0]


def checkers():
    """name -> module"""
    all_of_them = {m: importlib.import_module("checkers." + m) for m in modules("checkers")}
    return {name: m for name, m in all_of_them.items() if hasattr(m, "check")}


def nemeses():
    """name -> class"""
    out = {}
    for m in modules("nemeses"):
        for cls in vars(importlib.import_module("nemeses." + m)).values():
            if isinstance(cls, type) and getattr(cls, "name", "") and cls.__module__ == "nemeses." + m:
                out[cls.name] = cls
    return out

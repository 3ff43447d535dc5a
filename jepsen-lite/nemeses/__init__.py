"""Faults and their repair. Each class that has a name is a fault; base.py has their shared parts."""

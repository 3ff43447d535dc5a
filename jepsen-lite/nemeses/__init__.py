"""What goes wrong, and how it is mended. Each class that has a name is a fault; base.py has what they share."""

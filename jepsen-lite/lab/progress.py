"""One line that says what is going on: it is written over on a terminal, and a line for each episode elsewhere."""

import shutil
import sys
import time


class Progress:
    def __init__(self):
        self.terminal = sys.stdout.isatty()
        self.began = time.monotonic()
        self.head, self.shown = "", False

    def say(self, what, episode=None, end=None):
        if episode is not None:
            self.head = "episode %d: %s" % (episode, what)
            what = ""
        line = "%4.0f s  %s%s" % (time.monotonic() - self.began, self.head, " · " + what if what else "")
        if self.terminal:
            width = shutil.get_terminal_size().columns - 1
            sys.stdout.write("\r\033[K" + line[:width])
            self.shown = True
        elif episode is not None:
            sys.stdout.write(line + "\n")
        sys.stdout.flush()

    def end(self):
        if self.shown:
            sys.stdout.write("\r\033[K")
            sys.stdout.flush()

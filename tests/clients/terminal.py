"""A program at a terminal of its own, with somebody before it who types."""

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

SECONDS = 60
# How a program moves the cursor and colours what it says.
CONTROL = re.compile(r"\x1b(?:\[[0-9;?<>=]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78])")
COLUMNS = 1_000


def at_a_terminal(command, environment, folder, typed):
    """What a program shows, and how it ended: below zero by a signal. `typed` is asked, after each thing that it shows, what is
    typed then: bytes, or nothing. A program that shows nothing for long is ended."""
    child, terminal = pty.fork()
    if child == 0:
        try:
            os.chdir(folder)
            os.execve(command[0], [str(it) for it in command], environment)
        finally:
            os._exit(127)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    shown, end = b"", time.monotonic() + SECONDS
    while select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
        try:
            piece = os.read(terminal, 65_536)
        except OSError:  # nobody is at the other end any more
            break
        if not piece:
            break
        shown += piece
        if said := typed(plain(shown)):
            os.write(terminal, said)
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    return plain(shown), os.waitstatus_to_exitcode(status)


def plain(shown):
    return CONTROL.sub("", shown.decode(errors="replace")).replace("\r\n", "\n")

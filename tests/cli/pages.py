#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test the manual pages and the completions.

    pages.py BYOC SHARE

SHARE is the build's folder of pages. Every command and every option that `byoc
COMMAND --help` prints must be in the command's page and in the completions of bash,
zsh and fish, which run here as on a terminal, and nothing else may be. groff
and mandoc must accept the pages. The examples must run. Tools that are not
installed are named in a note; without any of them the test exits with 77.
"""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

BYOC, SHARE = (os.path.abspath(path) for path in sys.argv[1:3])
TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
OPTION = r"--?[A-Za-z][\w-]*"
failed, missing, used = [], [], []


def fail(text):
    failed.append(text)
    print("FAILED:", text)


def expect_same(what, expected, found):
    if set(expected) != set(found):
        fail(f"{what}: lacks {sorted(set(expected) - set(found))}, has "
             f"{sorted(set(found) - set(expected))} beyond the table")


def have(tool):
    (used if shutil.which(tool) else missing).append(tool)
    return shutil.which(tool) is not None


def output(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=False,
                          **more)


# --- the tables, from --help -------------------------------------------------


def options_of(command):
    text = output(BYOC, command, "--help").stdout
    found = {"-h", "--help"}
    for line in text.split("\n\n", 1)[1].splitlines():
        match = re.match(rf"  (-\w(?=[, .\d]))?(?:, | ?)(--[\w-]+)?", line)
        if line.startswith("   --") or line.startswith("  -"):
            found.update(name for name in match.groups() if name)
    return found


def examples_of(command):
    text = output(BYOC, command, "--help").stdout
    return re.findall(r"^  (byoc .*)$", text.partition("\nexamples:\n")[2], re.M)


COMMANDS = re.findall(r"^  (\w+) +\S", output(BYOC, "--help").stdout, re.M)
TABLE = {command: options_of(command) for command in COMMANDS}


# --- pages -------------------------------------------------------------------


def check_pages():
    pages = sorted(os.listdir(f"{SHARE}/man1"))
    expect_same("pages", ["byoc.1"] + [f"byoc-{command}.1" for command in COMMANDS], pages)
    paths = [f"{SHARE}/man1/{page}" for page in pages]
    if have("mandoc"):
        messages = output("mandoc", "-Tlint", *paths).stdout
        if messages:
            fail("mandoc: " + messages)
    if not have("groff"):
        return
    for command in COMMANDS:
        page = rendered(f"{SHARE}/man1/byoc-{command}.1")
        options = section(page, "OPTIONS")
        found = re.findall(rf"^ {{7}}({OPTION}?)(?=[,\s\d]|$)(?:, ({OPTION}))?",
                           options, re.M)
        expect_same(f"byoc-{command}.1", TABLE[command], {o for row in found for o in row if o})
        for line in examples_of(command):
            if line not in section(page, "EXAMPLES"):
                fail(f"byoc-{command}.1 lacks the example {line}")
    check_main_page(rendered(f"{SHARE}/man1/byoc.1"))


def check_main_page(page):
    expect_same("byoc.1", COMMANDS, re.findall(r"^ +byoc-(\w+)\(1\)$",
                                               section(page, "COMMANDS"), re.M))
    read = set()
    for folder in ("runtime", "core/base", "runtime_dnnl", "tuner", "codegen_c"):
        for name in os.listdir(f"{TOP}/{folder}"):
            with open(f"{TOP}/{folder}/{name}", encoding="utf-8") as file:
                read.update(re.findall(r'"(BYOC_[A-Z_]+|CC)"', file.read()))
    read.discard("BYOC_")
    found = re.findall(r"^ {7}([A-Z_]+)(?: |$)", section(page, "ENVIRONMENT"), re.M)
    lacking = {name for name in read if re.match(r"BYOC_[A-Z]+_[A-Z]+$", name)
               and name not in found}
    if lacking or len(found) < 10:
        fail(f"byoc.1: ENVIRONMENT lacks {sorted(lacking)}, has {found}")


def rendered(path):
    run = output("groff", "-man", "-ww", "-Tascii", "-P-cbou", "-rLL=200n", path)
    if run.stderr or run.returncode:
        fail(f"groff: {path}: {run.stderr}")
    return run.stdout


def section(page, name):
    return page.partition(f"\n{name}\n")[2].partition("\n\n\n")[0].split(
        "\nEXIT STATUS\n" if name == "OPTIONS" else "\nSEE ALSO\n")[0]


# --- shells ------------------------------------------------------------------


class Shell:
    """A shell on a terminal of its own, in a folder with some files."""

    def __init__(self, command, begin, folder):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            path = os.path.dirname(BYOC) + ":" + os.environ["PATH"]
            os.execvpe(command[0], command, {
                "PATH": path, "TERM": "dumb", "LC_ALL": "C.UTF-8", "PS1": "",
                "HOME": folder, "COLUMNS": "240", "LINES": "1000"})
        self.send(f"stty rows 1000 cols 240; {begin}; PS1='READY''> '\n")
        self.answer("READY> ")

    def send(self, text):
        os.write(self.fd, text.encode())

    def answer(self, last="END42\nREADY> "):
        """What the shell prints until `last`. At its prompt it reads keys; at
        other times the terminal would interpret them. zsh lists completions in
        a second, and in more than 30 on a machine with other work."""
        found, until = "", time.monotonic() + 240
        while last not in found:
            if not select.select([self.fd], [], [], 1)[0]:
                if time.monotonic() > until:
                    raise TimeoutError(found)
                continue
            found += os.read(self.fd, 65536).decode(errors="replace")
            found = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", found)
        return found

    def completed(self, line):
        """The words of a line after the key Tab."""
        self.send(line + "\t\x01printf '<%s>\\n' \x05; echo END$((40 + 2))\n")
        return re.findall(r"^<(.*)>$", self.answer(), re.M)

    def listed(self, line, key):
        """What the shell prints below a line after a key."""
        self.send(line + key + "\x15echo END$((40 + 2))\n")
        return self.answer().partition("\n")[2]

    def end(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def listed_bash(shell, line):
    text = shell.listed(line, "\x1b?").split("\n")
    return {word for row in text if not re.search(r"READY|END", row)
            for word in row.split()}


def listed_zsh(shell, line):
    found = set()
    for row in shell.listed(line, "\x04").split("\n"):
        if not re.search(r"READY|END", row):
            words = row.split(" -- ")[0].split()
            found.update(word.rstrip("=") for word in words)
    return found


def listed_fish(folder, line):
    text = output("fish", "-c", f"source {SHARE}/fish/byoc.fish; "
                  f"complete -C '{line}'", cwd=folder,
                  env={**os.environ, "HOME": folder}).stdout
    return {row.split("\t")[0] for row in text.splitlines()}


def check_listed(shell, listed, more=()):
    expect_same(f"{shell}: commands", COMMANDS + list(more), listed("byoc "))
    for command in COMMANDS:
        expect_same(f"{shell}: {command}", TABLE[command], listed(f"byoc {command} -"))
    expect_same(f"{shell}: values", {"auto", "c", "json"}, listed("byoc check --codegen "))
    expect_same(f"{shell}: of -O", {"0", "1", "2", "3"}, listed("byoc check -O "))
    expect_same(f"{shell}: report", {"show", "diff"}, listed("byoc report "))
    expect_same(f"{shell}: help", COMMANDS, listed("byoc help "))


LINES = (("byoc compi", "byoc compile"),
         ("byoc check mod", "byoc check model.onnx"),
         ("byoc check --ht", "byoc check --html"),
         ("byoc check --html mod", "byoc check --html model.onnx"),
         ("byoc check --html=mod", "byoc check --html=model.onnx"),
         ("byoc check -O 1 mod", "byoc check -O 1 model.onnx"),
         ("byoc compile model.onnx -o mod", "byoc compile model.onnx -o model.onnx"),
         ("byoc compile --keep-c fo", "byoc compile --keep-c folder"),
         ("byoc compile --keep-c mod", "byoc compile --keep-c mod"),
         ("byoc check --codegen=js", "byoc check --codegen=json"),
         ("byoc check --threads mod", "byoc check --threads mod"),
         ("byoc check wi", "byoc check with space.onnx"))


def check_lines(name, shell):
    for line, expected in LINES:
        found = " ".join(shell.completed(line)).rstrip("/ ")
        if found != expected:
            fail(f"{name}: {line!r} became {found!r}, expected {expected!r}")


def check_shells(folder):
    if have("bash"):
        shell = Shell(["bash", "--norc", "--noprofile", "-i"],
                      "bind 'set completion-query-items 0'; "
                      "bind 'set page-completions off'; "
                      "bind 'set enable-bracketed-paste off'; "
                      f". {SHARE}/bash/byoc", folder)
        check_listed("bash", lambda line: listed_bash(shell, line),
                     ("--help", "--version"))
        check_lines("bash", shell)
        shell.end()
    if have("zsh"):
        shell = Shell(["zsh", "-f", "-i"], "unsetopt prompt_cr prompt_sp; "
                      "bindkey -e; LISTMAX=100000; PS1=; PS2=; "
                      f"fpath=({SHARE}/zsh $fpath); autoload -U compinit; "
                      "compinit -u -D", folder)
        check_listed("zsh", lambda line: listed_zsh(shell, line),
                     ("--help", "--version"))
        check_lines("zsh", shell)
        shell.end()
    if have("fish"):
        check_listed("fish", lambda line: listed_fish(folder, line))
        expect_same("fish: files", {"model.onnx"}, listed_fish(folder, "byoc check mod"))
        expect_same("fish: folders", {"folder/"},
                    listed_fish(folder, "byoc compile --keep-c "))


# --- examples ----------------------------------------------------------------


def check_examples(folder):
    digits = f"{TOP}/examples/digits"
    for name in os.listdir(digits):
        shutil.copy(f"{digits}/{name}", folder)
    plugin = f"{os.path.dirname(BYOC)}/libbyoc_backend_dnnl.so"
    os.symlink(plugin, f"{folder}/libexample.so")
    path = os.path.dirname(BYOC) + ":" + os.environ["PATH"]
    count = 0
    for command in COMMANDS:
        for line in examples_of(command):
            run = output("sh", "-c", line, cwd=folder,
                         env={**os.environ, "PATH": path}, timeout=300)
            count += 1
            if run.returncode:
                fail(f"{line}: exit code {run.returncode}: {run.stderr[-500:]}")
    if count < len(COMMANDS):
        fail(f"found {count} examples, expected one for each of {len(COMMANDS)} commands")
    return count


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/folder")
        for name in ("model.onnx", "with space.onnx"):
            with open(f"{folder}/{name}", "w", encoding="utf-8"):
                pass
        check_pages()
        check_shells(folder)
    with tempfile.TemporaryDirectory() as folder:
        count = check_examples(folder)
    for tool in missing:
        print(f"note: {tool} is not installed: left out")
    print(f"note: {len(COMMANDS)} commands, {sum(map(len, TABLE.values()))} options, "
          f"in pages and in {' '.join(used)}; {count} examples run")
    return 1 if failed else 0 if used else 77


if __name__ == "__main__":
    sys.exit(main())

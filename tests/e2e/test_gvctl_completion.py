"""The completion scripts, loaded into the shells that they are for: what Tab offers."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

from lib import Case, answer_json, binary
from lib_cluster import gvctl
from lib_tls import Authority, TlsEngine

BASH = r"""
source /dev/stdin <<<"$SCRIPT"
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
COMP_LINE=$LINE COMP_POINT=${#LINE} COMP_TYPE=9
# As readline splits it: at blanks, and at each of = and :, which are words of their own.
read -ra COMP_WORDS <<<"$(sed 's/[=:]/ & /g' <<<"$LINE")"
[[ $LINE == *' ' || $LINE == *[=:] ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
function=$(complete -p "$PROGRAM" | sed -E 's/.*-F (\S+).*/\1/')
"$function"
printf '%s\n' "${COMPREPLY[@]}"
"""
ZSH = r"""
autoload -Uz compinit && compinit -u -d "$HOME/dump"
source =(print -r -- "$SCRIPT")
compdef -p '*' 2>/dev/null
print -r -- ${_comps[$PROGRAM]}
"""


def words(out):
    return sorted(out.split())


class Shells(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.symlink(os.path.abspath(binary("gvctl")), os.path.join(self.folder.name, "gvctl"))
        self.environment = {"PATH": self.folder.name + ":" + os.environ["PATH"], "HOME": self.folder.name,
                            "TERM": "xterm", "LC_ALL": "C.UTF-8"}

    def script(self, shell, program="gvctl"):
        status, out, err = gvctl("completion", shell, "--for", program)
        self.assertEqual((status, err), (0, ""))
        return out

    def in_bash(self, line, admin=None, program="gvctl"):
        if admin:
            self.environment["GRAPEVINE_ADMIN"] = admin
        p = subprocess.run(["bash", "--norc", "-uc", BASH], capture_output=True, text=True, cwd=self.folder.name,
                           env={**self.environment, "SCRIPT": self.script("bash", program), "LINE": line,
                                "PROGRAM": program})
        self.assertEqual(p.stderr, "", line)
        return words(p.stdout)

    def have(self, shell):
        """Installs the scripts where the shell looks for them."""
        if not shutil.which(shell):
            self.skipTest("%s is not installed" % shell)
        for program in ("gvctl", "grapevine"):
            with open(os.path.join(self.folder.name, program + ".f" if shell == "fish" else "_" + program), "w") as f:
                f.write(self.script(shell, program))

    def in_zsh(self, line):
        p = subprocess.run(["zsh", "-f"], capture_output=True, text=True, env=self.environment, timeout=60, input="""
            zmodload zsh/zpty
            zpty Z zsh -f
            zpty -w Z 'PS1=; fpath=(%s $fpath); autoload -Uz compinit; compinit -u -d %s/dump; '
            zpty -w Z 'report() { print -r -- "<<$BUFFER>>" >%s/line; exit }; zle -N report; bindkey "^X" report'
            zpty -w Z 'print -r -- set''up'
            zpty -r Z said '*setup*'
            zpty -w -n Z "$(print -r -- '%s')"$'\\t\\x18'
            for i in {1..200}; do [[ -s %s/line ]] && break; sleep 0.05; done
            """ % (self.folder.name, self.folder.name, self.folder.name, line, self.folder.name))
        with open(os.path.join(self.folder.name, "line")) as f:
            completed = f.read().strip()[2:-2].rstrip()
        os.unlink(os.path.join(self.folder.name, "line"))
        return completed or p.stderr

    def in_fish(self, line, program="gvctl"):
        p = subprocess.run(["fish", "--no-config", "-c", "source $FILE; complete -C $LINE"], capture_output=True, text=True,
                           env={**self.environment, "LINE": line, "FILE": os.path.join(self.folder.name, program + ".f")})
        self.assertEqual(p.stderr, "")
        return sorted(x.split("\t")[0] for x in p.stdout.splitlines())


class Completion(Shells):
    def commands(self):
        return sorted(re.findall(r"(?m)^  ([a-z]\S*)", gvctl("--help")[1]))

    def test_bash_knows_commands_and_options(self):
        self.assertEqual(self.in_bash("gvctl "), self.commands())
        self.assertEqual(self.in_bash("gvctl con"), ["config", "convergence", "convert"])
        self.assertEqual(self.in_bash("gvctl --admin http://a:1 help converg"), ["convergence"])
        self.assertEqual(self.in_bash("gvctl drain --w"), ["--wait"])
        self.assertEqual(self.in_bash("gvctl replicas --w"), [])
        self.assertEqual(self.in_bash("gvctl --wait drain --tim"), ["--timeout"])
        for line in ("gvctl replicas -o ", "gvctl --output "):
            self.assertEqual(self.in_bash(line), ["json", "name", "table", "wide", "yaml"])
        self.assertEqual(self.in_bash("gvctl completion "), ["bash", "fish", "zsh"])
        self.assertEqual(self.in_bash("gvctl log-level w"), ["warn"])
        self.assertEqual(self.in_bash("gvctl log-level warn "), [])
        self.assertEqual(self.in_bash("gvctl key "), ["list", "new", "revoke"])
        self.assertEqual(self.in_bash("gvctl key new "), [])
        self.assertEqual(self.in_bash("gvctl key new alice --in"), ["--in-flight", "--insecure"])
        open(os.path.join(self.folder.name, "request.json"), "w").close()
        for line in ("gvctl explain req", "gvctl --token-file req", "gvctl keygen --next req", "gvctl key new a --file req"):
            self.assertEqual(self.in_bash(line), ["request.json"])

    def test_bash_asks_the_router_for_replicas(self):
        port = self.engine().closes(answer_json([{"name": "10.0.0.1:8000"}, {"name": "10.0.0.2:8000"},
                                                 {"name": "x:1"}]))
        self.assertEqual(self.in_bash("gvctl drain ", port.url), ["10.0.0.1:8000", "10.0.0.2:8000", "x:1"])
        self.assertEqual(self.in_bash("gvctl remove 10.0.0.2"), ["10.0.0.2:8000"])
        self.assertEqual(self.in_bash("gvctl drain 10.0.0.2:8"), ["8000"])  # readline's word is what follows the colon
        del self.environment["GRAPEVINE_ADMIN"]
        self.assertEqual(self.in_bash("gvctl --admin %s undrain x" % port.url), ["x:1"])
        port.closes(answer_json([{"hash": "00ff"}]))
        self.assertEqual(self.in_bash("gvctl --admin %s forget " % port.url), ["00ff"])
        port.closes(b"")
        self.assertEqual(self.in_bash("gvctl --admin %s drain " % port.url), [])

    def test_bash_knows_the_settings_of_grapevine(self):
        self.assertEqual(self.in_bash("grapevine --policy ", program="grapevine"),
                         sorted("cache_aware chunk_aware prefix_hash session least_request least_tokens "
                                "power_of_two round_robin random".split()))
        self.assertEqual(self.in_bash("grapevine --log-l", program="grapevine"), ["--log-level"])
        self.assertEqual(self.in_bash("grapevine --log-level=d", program="grapevine"), ["debug"])
        open(os.path.join(self.folder.name, "grapevine.yaml"), "w").close()
        self.assertEqual(self.in_bash("grapevine --config gra", program="grapevine"), ["grapevine.yaml"])
        help_text = subprocess.run([binary("grapevine"), "--help"], capture_output=True, text=True).stdout
        self.assertEqual(set(self.in_bash("grapevine --", program="grapevine")),
                         set(re.findall(r"(?m)^  (?:-., )?(--[a-z-]+)", help_text)))

    def test_zsh_loads_the_script(self):
        if not shutil.which("zsh"):
            self.skipTest("zsh is not installed")
        for program in ("gvctl", "grapevine"):
            p = subprocess.run(["zsh", "-fc", ZSH], capture_output=True, text=True,
                               env={**self.environment, "SCRIPT": self.script("zsh", program), "PROGRAM": program})
            self.assertEqual((p.stdout.split(), p.stderr), (["_" + program], ""))

    def test_zsh_completes(self):
        """A person's keys: the line after Tab."""
        self.have("zsh")
        for line, completed in (("gvctl converg", "gvctl convergence "), ("gvctl drain --wa", "gvctl drain --wait"),
                                ("gvctl replicas -o js", "gvctl replicas -o json"),
                                ("gvctl completion fi", "gvctl completion fish"), ("gvctl key n", "gvctl key new"),
                                ("gvctl key new x --in-f", "gvctl key new x --in-flight="),
                                ("grapevine --policy round", "grapevine --policy round_robin")):
            self.assertEqual(self.in_zsh(line), completed.rstrip())

    def test_fish_completes(self):
        self.have("fish")
        port = self.engine().closes(answer_json([{"name": "10.0.0.1:8000"}]))
        self.environment["GRAPEVINE_ADMIN"] = port.url
        self.assertEqual(self.in_fish("gvctl con"), ["config", "convergence", "convert"])
        self.assertEqual(self.in_fish("gvctl drain "), ["10.0.0.1:8000"])
        self.assertEqual(self.in_fish("gvctl drain --w"), ["--wait"])
        self.assertEqual(self.in_fish("gvctl replicas --w"), [])
        self.assertEqual(self.in_fish("gvctl queue -o j"), ["json"])
        self.assertEqual(self.in_fish("gvctl key "), ["list", "new", "revoke"])
        self.assertEqual(self.in_fish("gvctl key new "), [])
        self.assertEqual(self.in_fish("gvctl key new --mod"), ["--models"])
        self.assertEqual(self.in_fish("grapevine --log-level d", "grapevine"), ["debug"])

    def test_each_script_is_whole(self):
        """Needs no shell: all commands and options, each line with even quotes, and nothing left of a template."""
        helps = {"gvctl": "".join(gvctl("help", c)[1] for c in self.commands()),
                 "grapevine": subprocess.run([binary("grapevine"), "--help"], capture_output=True, text=True).stdout}
        for program, text in helps.items():
            names = re.findall(r"(?m)^(?:usage: gvctl |  (?:-., |    )?--)([a-z-]+)", text)
            for shell in ("bash", "zsh", "fish"):
                script = self.script(shell, program)
                self.assertEqual(sorted(n for n in set(names) if not re.search(r"(?<![a-z-])(-l |--)?%s(?![a-z-])" % n, script)), [])
                self.assertNotIn("{{", script)
                self.assertTrue(script.endswith("\n") and not re.search(r"(?m)^\n", script), "an empty line")
                for line in script.splitlines()[1:]:
                    quotes = re.sub(r"'\\''|\\'", "", line.partition(" # ")[0]).count("'")
                    self.assertEqual(quotes % 2, 0, line)

    def test_unknown_shells_are_refused(self):
        for args in (("csh",), ("bash", "--for", "nginx"), ("zsh", "--for", "option"), ("x" * 200,)):
            status, out, err = gvctl("completion", *args)
            self.assertEqual((status, out), (2, ""))
            self.assertIn("gvctl or grapevine, for bash, zsh or fish", err)


class Secured(Shells):
    """A router at https:// that requires a token: Tab offered nothing."""

    def setUp(self):
        super().setUp()
        ca = Authority(self.folder.name)
        self.port = self.keep(TlsEngine(ca.pair("router")))
        self.port.handler = self.answer
        with open(os.path.join(self.folder.name, "token"), "w") as f:
            f.write("sesame\n")
        os.rename(ca.cert, os.path.join(self.folder.name, "ca.pem"))

    def answer(self, asked):
        asked.read_body()
        good = asked.get("authorization") == "Bearer sesame"
        asked.send(answer_json([{"name": "10.0.0.7:8000"}] if good else {"error": {"message": "no"}}, 200 if good else 401))
        asked.close()

    def ways(self):
        """Equivalent forms, all before a command that requires a replica."""
        for ca in ("--ca-file ~/ca.pem", "--ca-file=%s/ca.pem" % self.folder.name, "--insecure"):
            for admin in ("--admin %s", "--admin=%s"):
                yield "gvctl %s %s --token-file %s/token" % (admin % self.port.url, ca, self.folder.name)

    def test_bash(self):
        for way in self.ways():
            self.assertEqual(self.in_bash(way + " drain "), ["10.0.0.7:8000"], way)
        self.assertEqual(self.in_bash("gvctl --admin %s drain " % self.port.url), [])
        self.assertEqual(self.in_bash("gvctl --admin %s --insecure drain " % self.port.url), [])

    def test_zsh(self):
        self.have("zsh")
        for way in list(self.ways())[:3]:
            self.assertEqual(self.in_zsh(way + " drain 10"), way + " drain 10.0.0.7:8000", way)

    def test_fish(self):
        self.have("fish")
        for way in self.ways():
            self.assertEqual(self.in_fish(way + " drain "), ["10.0.0.7:8000"], way)


if __name__ == "__main__":
    unittest.main()

"""make install and make deb: what they put where, and that it works from there with one file edited."""

import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

from lib_tls import Authority
from lib import BUILD, HOST, LIMIT, Case, Router, binary, closed_port, wait_for

CHAT = "/v1/chat/completions"
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("GRAPEVINE_", "MAKE"))}


def run(*command, status=0, **how):
    p = subprocess.run(command, capture_output=True, text=True, timeout=6 * LIMIT, env=how.pop("env", ENV), **how)
    if p.returncode != status:
        raise AssertionError("%s: status %d\n%s%s" % (command, p.returncode, p.stdout, p.stderr))
    return p.stdout


def text(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def files_below(folder):
    return {os.path.relpath(os.path.join(where, name), folder) for where, _, names in os.walk(folder) for name in names}


class Manual(unittest.TestCase):
    """grapevine(8) and gvctl(1)."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        run("deploy/man/make.py", binary("grapevine"), binary("gvctl"), cls.folder)

    def page(self, name):
        return text(os.path.join(self.folder, name)).replace("\\-", "-").replace("\\(aq", "'")

    def test_every_setting_and_every_command_has_its_paragraph(self):
        page = self.page("grapevine.8")
        settings = re.findall(r"^  --([a-z-]+) ", run(binary("grapevine"), "--help"), re.M)
        self.assertGreater(len(settings), 60)
        for name in settings:
            self.assertIn("\n.TP\n\\fB--%s\\fR" % name, page)
        page = self.page("gvctl.1")
        commands = re.findall(r"^  ([a-z][a-z-]+) ", run(binary("gvctl"), "--help"), re.M)
        self.assertGreater(len(commands), 12)
        for name in commands:
            self.assertRegex(page, r"\n\.TP\n\\fB%s\b" % name)

    def test_nothing_of_markdown_or_of_the_template_is_left(self):
        for name in ("grapevine.8", "gvctl.1"):
            self.assertNotRegex(self.page(name), r"\]\(|@[A-Z]+@|\*\*")
        self.assertNotIn("`", self.page("grapevine.8"))

    def test_the_man_pages_render_without_a_warning(self):
        checks = [c for c in (["groff", "-man", "-Tutf8", "-ww", "-z"], ["mandoc", "-T", "lint", "-W", "warning"])
                  if shutil.which(c[0])]
        if not checks:
            self.skipTest("want groff or mandoc")
        for check in checks:
            for name in ("grapevine.8", "gvctl.1"):
                p = subprocess.run(check + [os.path.join(self.folder, name)], capture_output=True, text=True)
                self.assertEqual((p.returncode, p.stdout, p.stderr), (0, "", ""), check)


ORDINARY = unittest.skipUnless(os.path.basename(BUILD) == "build", "want the ordinary build")


@ORDINARY
class Install(Case):
    def installed(self, action, folder):
        run("make", "-s", "--no-print-directory", action, "DESTDIR=" + folder, "PREFIX=/opt/g")
        return files_below(folder)

    def test_install_and_uninstall(self):
        with tempfile.TemporaryDirectory() as folder:
            files = self.installed("install", folder)
            for name in ("bin/grapevine", "bin/gvctl", "share/man/man8/grapevine.8", "share/man/man1/gvctl.1",
                         "lib/systemd/system/grapevine.service", "share/doc/grapevine/LICENSE",
                         "share/doc/grapevine/docs/how-to/install.md", "share/doc/grapevine/examples/grapevine.yaml"):
                self.assertIn("opt/g/" + name, files)
            unit = text(os.path.join(folder, "opt/g/lib/systemd/system/grapevine.service"))
            self.assertIn("ExecStart=/opt/g/bin/grapevine --config /etc/grapevine/grapevine.yaml", unit)
            self.assertNotRegex(unit.partition("\n")[2], "@[A-Z]+@")
            run(os.path.join(folder, "opt/g/bin/grapevine"), "--version")
            settings = os.path.join(folder, "etc/grapevine/replicas")
            with open(settings, "w", encoding="utf-8") as f:
                f.write("# mine\n")
            self.installed("install", folder)
            self.assertEqual(text(settings), "# mine\n")
            self.assertEqual(self.installed("uninstall", folder), {"etc/grapevine/" + f for f in ("grapevine.yaml", "replicas")})


@ORDINARY
@unittest.skipUnless(shutil.which("dpkg-deb") and shutil.which("dpkg-shlibdeps"), "want dpkg-dev")
class Debian(Case):
    @classmethod
    def set_up(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        os.chmod(cls.folder, 0o755)
        cls.build = os.path.join(cls.folder, "build")
        cls.package = cls.make(cls.build)
        cls.root = os.path.join(cls.folder, "root")
        run("dpkg-deb", "-x", cls.package, cls.root)
        run("dpkg-deb", "-e", cls.package, os.path.join(cls.folder, "control"))

    @classmethod
    def make(cls, build):
        os.mkdir(build)
        for name in ("grapevine", "gvctl"):
            os.symlink(os.path.abspath(binary(name)), os.path.join(build, name))
        return run("deploy/debian/build.sh", env=dict(ENV, BUILD=build, SOURCE_DATE_EPOCH="1700000000")).strip()

    def test_the_same_sources_give_the_same_bytes(self):
        again = self.make(os.path.join(self.folder, "elsewhere"))
        sums = [hashlib.sha256(open(p, "rb").read()).hexdigest() for p in (self.package, again)]
        self.assertEqual(sums[0], sums[1])
        dates = run("dpkg-deb", "-c", self.package)
        self.assertEqual(set(re.findall(r" (\d{4}-\d\d-\d\d) ", dates)), {"2023-11-14"})
        self.assertEqual(set(re.findall(r"^\S+ (\S+)", dates, re.M)), {"root/root"})

    @unittest.skipUnless(shutil.which("git"), "want git")
    def test_a_newer_build_has_a_higher_version(self):
        """Before, all builds were 0.1.0: apt and rollout.sh took a newer build for the installed one."""
        tree = os.path.join(self.folder, "tree")
        os.makedirs(os.path.join(tree, "deploy/debian"))
        shutil.copy("deploy/debian/suffix.sh", os.path.join(tree, "deploy/debian"))

        def suffix(*args):
            return run(os.path.join(tree, "deploy/debian/suffix.sh"), *args, "0.1.0").strip()

        def git(*args, at="1700000000"):
            run("git", "-c", "user.name=x", "-c", "user.email=x@y", *args, cwd=tree,
                env=dict(ENV, GIT_AUTHOR_DATE="@%s +0000" % at, GIT_COMMITTER_DATE="@%s +0000" % at))
        self.assertEqual(suffix() + suffix("--commit"), "", "without git")
        git("init", "-q")
        self.assertEqual(suffix() + suffix("--commit"), "", "without a commit")
        git("add", ".")
        git("commit", "-qm", "first")
        first = suffix()
        self.assertRegex(first, r"^\+20231114\.221320\.g[0-9a-f]{12}$")
        self.assertEqual(suffix("--commit"), "+" + first[-12:-4])  # the programs in it say the same commit
        with open(os.path.join(tree, "deploy/debian/suffix.sh"), "a", encoding="utf-8") as f:
            f.write("# more\n")
        changed = suffix()
        self.assertRegex(changed, "^" + re.escape(first) + r"\.local\d{8}\.\d{6}$")
        git("commit", "-qam", "second", at="1700000001")
        second = suffix()
        for older, newer in ((first, changed), (changed, second), ("", first)):
            run("dpkg", "--compare-versions", "0.1.0" + older, "lt", "0.1.0" + newer)
        git("tag", "v0.1.0")
        self.assertEqual(suffix() + suffix("--commit"), "", "a release")

    def test_a_build_in_another_folder_gives_the_same_program(self):
        """No path of the tree is in the program, not even in the parts that strip removes: the build id depends on
        them."""
        with open(binary("grapevine"), "rb") as f:
            self.assertNotIn(os.getcwd().encode(), f.read())

    def test_the_packages_control_fields(self):
        fields = dict(re.findall(r"^(\S+): (.*)$", run("dpkg-deb", "-f", self.package), re.M))
        version, _, commit = run(binary("grapevine"), "--version").split()[1].partition("+")
        self.assertIn("g" + commit if commit else version, fields["Version"])
        self.assertEqual(fields["Version"], version + run("deploy/debian/suffix.sh", version, env=dict(ENV, SOURCE_DATE_EPOCH="1700000000")).strip())
        for library in ("libuv1", "libsodium23", "libyaml-0-2", "libzmq5", "libc6 (>= "):
            self.assertIn(library, fields["Depends"])
        self.assertEqual(text(os.path.join(self.folder, "control/conffiles")).split(),
                         ["/etc/grapevine/grapevine.yaml", "/etc/grapevine/replicas"])
        for script in ("postinst", "prerm", "postrm"):
            run("sh", "-n", os.path.join(self.folder, "control", script))

    @unittest.skipUnless(os.geteuid() == 0 and not subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode,
                         "needs root and a mount namespace")
    def test_an_upgrade_checks_settings_as_the_services_user(self):
        """Before, root checked, which may read all: the old router was stopped, and the new one exited with status 2,
        for good."""
        at = lambda *names: os.path.join(self.folder, "upgrade", *names)
        os.makedirs(at("bin"))
        os.chmod(at(), 0o755)

        def put(name, content, mode=0o644):
            with open(at(name), "w", encoding="utf-8") as f:
                f.write(content)
            os.chmod(at(name), mode)
        for name in ("grapevine", "gvctl"):
            shutil.copy(binary(name), at("bin", name))  # a place where that user finds it
        for name in ("systemctl", "systemd-sysusers", "deb-systemd-helper"):
            put("bin/" + name, "#!/bin/sh\n", 0o755)
        put("bin/deb-systemd-invoke", '#!/bin/sh\necho "invoked: $*"\n', 0o755)
        for name, line in (("group", "grapevine:x:64000:"), ("passwd", "grapevine:x:64000:64000::/:/usr/sbin/nologin")):
            put(name, re.sub(r"(?m)^grapevine:.*\n", "", text("/etc/" + name)) + line + "\n")
        script = """set -e
            mount --make-rprivate /
            mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system
            mkdir -p /etc/grapevine && mount -t tmpfs -o mode=755 tmpfs /etc/grapevine
            mount --bind passwd /etc/passwd && mount --bind group /etc/group
            printf 'replica: http://127.0.0.1:1\\nadmin-token-file: /etc/grapevine/t\\n' >/etc/grapevine/grapevine.yaml
            echo sesame >/etc/grapevine/t
            chown root:grapevine /etc/grapevine/t
            chmod $1 /etc/grapevine/t
            PATH=$PWD/bin:$PATH
            sh ../control/postinst configure 0.0.1 2>&1
            gvctl keygen --out /etc/grapevine/k >keygen.out
            gvctl key new alice --file /etc/grapevine/c >key.out
            gvctl key new bob --file /etc/grapevine/c >key.out
            gvctl keygen --out /run/k >keygen.out
            stat -c "%n %G %a" /etc/grapevine /etc/grapevine/k /etc/grapevine/c /run/k"""
        for mode, restarts in (("640", True), ("600", False)):
            said = run("unshare", "-m", "sh", "-c", script, "sh", mode, cwd=at())
            self.assertEqual("restart grapevine.service" in said or "restarting" in said, restarts, said)
            self.assertEqual("/etc/grapevine/t" in said and "may not read" in said, not restarts, said)
            # Files that root makes in that folder, and only there, are readable for the service.
            self.assertEqual(said.split("\n")[-5:-1], ["/etc/grapevine grapevine 755", "/etc/grapevine/k grapevine 640",
                                                      "/etc/grapevine/c grapevine 640", "/run/k root 600"])

    @unittest.skipUnless(shutil.which("lintian"), "want lintian")
    def test_lintian(self):
        run("lintian", "--fail-on", "error,warning", self.package)

    def test_every_setting_in_the_comments_is_valid(self):
        """A setting that a newcomer uncomments must be valid."""
        settings = text(os.path.join(self.root, "etc/grapevine/grapevine.yaml"))
        known = set(re.findall(r"^- `([a-z-]+)` \(", text("docs/options.md"), re.M))
        named = re.findall(r"^(?:# )?([a-z][a-z-]+):(?: |$)", settings, re.M)
        self.assertGreater(len(named), 10)
        self.assertEqual([n for n in named if n not in known], [])
        file = os.path.join(self.folder, "all.yaml")
        with open(file, "w", encoding="utf-8") as f:
            f.write(re.sub(r"^# ([a-z][a-z-]+:(?: |$)|  - )", r"\1", settings, flags=re.M))
        # The only error left is that the files do not exist here.
        p = subprocess.run([binary("grapevine"), "--check-config", "--config", file], capture_output=True, text=True)
        self.assertRegex(p.stderr, r"^grapevine: [^\n]*\"/etc/grapevine/[^\n]*No such file or directory\n$")

    def test_one_file_edited_gives_a_routed_request(self):
        """As installed, started by the unit's own command, with the package's /etc/grapevine and ports moved."""
        unit = text(os.path.join(self.root, "lib/systemd/system/grapevine.service"))
        command = re.search(r"^ExecStart=(.*)$", unit, re.M)[1].split()
        self.assertEqual(command, ["/usr/bin/grapevine", "--config", "/etc/grapevine/grapevine.yaml"])
        etc = os.path.join(self.root, "etc/grapevine")
        if os.geteuid() == 0 and not subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
            made = not os.path.isdir("/etc/grapevine")
            os.makedirs("/etc/grapevine", exist_ok=True)
            if made:
                self.addCleanup(os.rmdir, "/etc/grapevine")
            wrap = ["unshare", "-m", "sh", "-c", "mount --bind %s /etc/grapevine && exec \"$@\"" % etc, "sh"]
            config = command[2]
        else:  # the same files from where they were unpacked
            config = os.path.join(etc, "grapevine.yaml")
            settings = text(config).replace("/etc/grapevine", etc)
            with open(config, "w", encoding="utf-8") as f:
                f.write(settings)
            wrap = []
        program = os.path.join(self.root, "usr/bin/grapevine")
        said = run(*wrap, program, "--check-config", "--config", config)
        self.assertRegex(said, r"replica-file: \[\S*/etc/grapevine/replicas\]")
        engine = self.engine()
        r = self.keep(Router([], "--config", config, "--listen", HOST + ":0", "--admin-listen", HOST + ":0",
                             "--log-format", "json", "--drain-delay", "0", wrap=wrap, program=program,
                             defaults=False))
        self.assertEqual(r.admin("GET", "/readyz").status, 503)
        with open(os.path.join(etc, "replicas"), "a", encoding="utf-8") as f:
            f.write(engine.url + "\n")
        began = time.monotonic()
        wait_for(lambda: r.admin("GET", "/readyz").status == 200, "ready")
        got = self.client(r).ask("POST", CHAT, json.dumps({"model": "m", "messages": []}).encode())
        self.assertEqual((got.status, got.get("x-grapevine-replica")), (200, engine.name))
        self.assertLess(time.monotonic() - began, LIMIT)
        gvctl = os.path.join(self.root, "usr/bin/gvctl")
        run(gvctl, "--admin", "http://%s:%d" % (HOST, r.admin_port), "ready")


@ORDINARY
@unittest.skipIf(os.geteuid(), "want root, for chroot")
class Container(Case):
    def test_the_image_is_complete_and_small(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        run("deploy/container/root.sh", folder, env=dict(ENV, BUILD=BUILD))
        files = files_below(folder)
        self.assertEqual({f for f in files if f.startswith(("bin/", "usr/bin/", "sbin/", "usr/sbin/"))},
                         {"usr/bin/grapevine", "usr/bin/gvctl"})
        size = sum(os.lstat(os.path.join(folder, f)).st_size for f in files)
        self.assertLess(size, 40 << 20)
        engine = self.engine()
        inside = ("chroot", "--userspec=65532:65532", folder)
        r = self.router([engine], wrap=inside, program="/usr/bin/grapevine")
        self.assertEqual(self.client(r).ask("POST", CHAT, json.dumps({"model": "m"}).encode()).status, 200)
        admin = "http://%s:%d" % (HOST, r.admin_port)
        run(*inside, "/usr/bin/gvctl", "--admin", admin, "alive")
        run(*inside, "/usr/bin/gvctl", "--admin", "http://%s:%d" % (HOST, closed_port()), "alive", status=1)
        with socket.create_server((HOST, 0)) as silent:  # a call that lasts: the end of a look-up's thread aborted it
            run(*inside, "/usr/bin/gvctl", "--admin", "http://%s:%d" % (HOST, silent.getsockname()[1]), "--timeout", "3",
                "alive", status=1)
        self.health_check(folder, inside, engine)

    def health_check(self, folder, inside, engine):
        """The check of deploy/Containerfile, in the environment of the container, with TLS and tokens on the admin
        port."""
        check = json.loads(re.search(r"HEALTHCHECK .* CMD (\[.*\])", text("deploy/Containerfile"))[1])
        etc = os.path.join(folder, "etc/grapevine")
        Authority(etc, "tls")
        with open(os.path.join(etc, "admin.token"), "w", encoding="utf-8") as f:
            f.write("secret\n")
        for name in ("tls.key", "admin.token"):
            os.chown(os.path.join(etc, name), 65532, 65532)
        settings = {"ADMIN_LISTEN": "%s:%d" % (HOST, closed_port()), "ADMIN_TLS_CERT": "/etc/grapevine/tls.crt",
                    "ADMIN_TLS_KEY": "/etc/grapevine/tls.key", "ADMIN_TOKEN_FILE": "/etc/grapevine/admin.token",
                    "ADMIN_READ_TOKEN_FILE": "/etc/grapevine/admin.token"}
        variables = {"GRAPEVINE_" + name: value for name, value in settings.items()}
        more = {"GRAPEVINE_PROBE_LISTEN": "%s:%d" % (HOST, closed_port())}
        for env in (variables, {**variables, **more}):
            r = self.keep(Router([engine], "--listen", HOST + ":0", "--log-format", "json", "--drain-delay", "0", wrap=inside,
                                 program="/usr/bin/grapevine", defaults=False, env=env))
            run(*inside, *check, env={**ENV, **env})
            run(*inside, "/usr/bin/gvctl", "undrain", engine.name, env={**ENV, **env})
            r.stop()
            run(*inside, *check, env={**ENV, **env}, status=1)


if __name__ == "__main__":
    unittest.main()

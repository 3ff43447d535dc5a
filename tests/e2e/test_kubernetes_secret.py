"""gvctl keygen --kubernetes-secret: the cluster's key as a Secret, made by a Job in the cluster, once."""

import os
import re
import shutil
import subprocess
import tempfile

from lib import Case, binary
from lib_k8s import NAMESPACE, Account, Api, write


class Secret(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.account = Account(self.folder)
        self.api = Api(self.account)
        self.addCleanup(self.api.stop)

    def make(self, name="grapevine-key", folder=None, **env):
        base = {k: v for k, v in os.environ.items() if not k.startswith("KUBERNETES_")}
        p = subprocess.run([binary("gvctl"), "keygen", "--kubernetes-secret", name], capture_output=True, text=True,
                           timeout=60, env={**base, **self.api.env,
                                            "GRAPEVINE_KUBERNETES_CREDENTIALS": folder or self.account.folder, **env})
        return p.returncode, p.stdout, p.stderr

    def refused(self, why, **how):
        status, out, err = self.make(**how)
        self.assertEqual((status, out), (1, ""))
        self.assertRegex(err, why)
        self.assertNotIn(self.account.token, err)
        self.assertEqual(self.api.secrets, {})

    def test_the_secret_is_made_once_and_a_router_accepts_it(self):
        status, out, err = self.make()
        self.assertEqual((status, err), (0, ""))
        made = self.api.secrets["grapevine-key"]
        self.assertEqual((made["kind"], made["type"], list(made["stringData"])), ("Secret", "Opaque", ["cluster.key"]))
        key = os.path.join(self.folder, "cluster.key")
        write(key, made["stringData"]["cluster.key"])
        router = self.router(["http://127.0.0.1:9"], "--gossip-listen", "127.0.0.1:0", "--cluster-key-file", key,
                             wait_up=False)
        held = router.wait_event("cluster_key_held")["ids"]
        self.assertIn("key in use: %s\n" % re.sub(r"\W", "", str(held)), out)
        for secret in re.findall(r"[0-9a-f]{64}", made["stringData"]["cluster.key"]):
            self.assertNotIn(secret, out)
        status, out, err = self.make()  # as an upgrade does
        self.assertEqual((status, err), (0, ""))
        self.assertIn('"grapevine-key" already exists and is not changed', out)
        self.assertEqual(self.api.secrets, {"grapevine-key": made})

    def test_errors_are_explained(self):
        self.refused("KUBERNETES_SERVICE_HOST is not set", KUBERNETES_SERVICE_HOST="")
        self.refused("nowhere.*No such file", folder=os.path.join(self.folder, "nowhere"))
        self.api.forbidden = True
        self.refused(r"403: a Role with create of secrets is missing \(deploy/kubernetes/key.yaml\)")
        self.api.forbidden = False
        self.api.tokens = {"another"}
        self.refused("401: the API server does not accept the token")
        self.api.tokens = {self.account.token}
        write(self.account.path("namespace"), "two words")
        self.refused("namespace is no single line of visible ASCII")
        write(self.account.path("namespace"), NAMESPACE)
        self.account.ca()  # another CA, which did not sign the API server
        self.refused("does not answer: .*certificate")
        self.api.stop()
        self.refused("the API server does not answer: .*(refused|connect)")


if __name__ == "__main__":
    import unittest
    unittest.main()

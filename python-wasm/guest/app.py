"""The component's entry: makes the interpreter ready, compiles a script, runs it.

componentize-py takes a snapshot of the interpreter after this module is imported, so all that is imported and made
here is free at run time. The snapshot freezes the secret of str hashes; everything else that is random is seeded anew
by `prepare`.
"""

import gc

from cx_guest import modules

modules.install()

from cx_guest import run  # noqa: E402

import wit_world  # noqa: E402

run.install()


class WitWorld(wit_world.WitWorld):
    """What the host calls: each once, in this order."""

    def prepare(self) -> None:
        run.prepare()

    def load(self, script: wit_world.Script) -> str | None:
        return run.load(script)

    def run(self) -> str:
        return run.run()


# All objects that exist now live as long as the interpreter: the collector need not visit them, nor write to their
# pages.
gc.collect()
gc.freeze()

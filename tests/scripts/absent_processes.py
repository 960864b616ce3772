import os
import subprocess


def attempt(action):
    try:
        return action()
    except Exception as error:
        return [type(error).__name__, str(error)]


return {
    "run": attempt(lambda: subprocess.run(["id"])),
    "check_output": attempt(lambda: subprocess.check_output("id", shell=True)),
    "system": attempt(lambda: os.system("id")),
    "popen": attempt(lambda: os.popen("id").read()),
    "fork": attempt(lambda: os.fork()),
    "execv": attempt(lambda: os.execv("/bin/id", ["id"])),
}

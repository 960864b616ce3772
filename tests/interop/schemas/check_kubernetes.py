"""Checks the manifests of a folder against the schemas of Kubernetes, strictly: no field is unknown.

    check_kubernetes.py FOLDER VERSION...

Prints the manifests as JSON, by their kind. Also breaks each of them, and expects that the schemas notice.
"""

import copy
import json
import pathlib
import sys

import kubernetes_validate
import yaml

folder, *versions = sys.argv[1:]
manifests = {}
for path in sorted(pathlib.Path(folder).glob("*.yaml")):
    for manifest in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        # For kubectl, which has its own checks.
        if manifest["kind"] == "Kustomization":
            listed = sorted(manifest["resources"])
            continue
        for version in versions:
            kubernetes_validate.validate(manifest, version, strict=True)
            broken = copy.deepcopy(manifest)
            broken["metadata"]["nmae"] = "cx"
            try:
                kubernetes_validate.validate(broken, version, strict=True)
            except kubernetes_validate.ValidationError:
                pass
            else:
                sys.exit(f"{path}: the schemas of {version} take any field")
        assert manifest["kind"] not in manifests, path
        manifests[manifest["kind"]] = manifest
found = sorted(path.name for path in pathlib.Path(folder).glob("*.yaml") if path.name != "kustomization.yaml")
assert listed == found, f"kustomization.yaml lists {listed}, there are {found}"
json.dump(manifests, sys.stdout)

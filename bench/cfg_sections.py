"""The sections of a model file, for benches that build its network in another program."""

import re


def sections(path):
    """(name, {key: value}) of each."""
    found = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = re.sub("[#;].*", "", line).strip()
            if line.startswith("["):
                found.append((line.strip("[]"), {}))
            elif "=" in line:
                key, value = line.split("=", 1)
                found[-1][1][key.strip()] = value.strip()
    return found

"""A release's software bill of materials, in CycloneDX: Ferret's wheels, the packages of the lock, the dashboard's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from scripts import lock

NPM_LOCK = lock.ROOT / "web/package-lock.json"
LICENCE = "Apache-2.0"


def of(version: str, wheels: list[Path]) -> str:
    """Returns the CycloneDX 1.6 document of Ferret's ``version``, with the SHA-256 of its ``wheels``."""
    root = Component(name="ferret", version=version, type=ComponentType.APPLICATION, licenses=_licences(LICENCE))
    bom = Bom(components=[*_of_ferret(version, wheels), *_of_python(), *_of_dashboard()])
    bom.metadata.component = root
    bom.register_dependency(root, bom.components)
    return make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2) + "\n"


def _of_ferret(version: str, wheels: list[Path]) -> Iterator[Component]:
    for wheel in wheels:
        name = wheel.name.split("-")[0].replace("_", "-")
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        yield _component("pypi", name, version, LICENCE, [HashType(alg=HashAlgorithm.SHA_256, content=digest)])


def _of_python() -> Iterator[Component]:
    """Yields the packages that run the service and a participant. The lock has their hashes, one for each platform."""
    for pin in lock.pins(lock.RUNTIME):
        yield _component("pypi", pin.name, pin.version, _licence_of(pin.name))


def _of_dashboard() -> Iterator[Component]:
    """Yields the packages in the dashboard's build, without its tools."""
    for path, package in json.loads(NPM_LOCK.read_text())["packages"].items():
        if path and not package.get("dev"):
            yield _component("npm", path.rpartition("node_modules/")[2], package["version"], package.get("license"))


def _component(
    kind: str, name: str, version: str, licence: str | None, hashes: list[HashType] | None = None
) -> Component:
    group, _, last = name.rpartition("/")
    purl = PackageURL(kind, group or None, last, version)
    return Component(
        name=name, version=version, purl=purl, bom_ref=str(purl), licenses=_licences(licence), hashes=hashes
    )


def _licences(licence: str | None) -> list[License]:
    return [LicenseFactory().make_from_string(licence)] if licence else []


def _licence_of(package: str) -> str | None:
    """Returns the licence that the installed package declares in one line. Some packages are for other machines."""
    try:
        declared = metadata.metadata(package)
    except metadata.PackageNotFoundError:
        return None
    (licence, *_) = declared.get_all("License-Expression") or declared.get_all("License") or [""]
    return licence if licence and "\n" not in licence else None

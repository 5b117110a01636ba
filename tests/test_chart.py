"""The Helm chart, rendered by Helm: against Kubernetes' schemas, the settings, and ``docker-compose.yml``."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from ferret_api.http import trusted_hosts
from ferret_api.oidc.provider import OidcSettings
from ferret_api.server import SHUTDOWN_SECONDS
from ferret_api.settings import ApiSettings
from ferret_api.system import prometheus
from ferret_core import __version__
from ferret_db import migrate
from ferret_db.database import Database
from ferret_runtime.settings import FROM_FILE, ServiceSettings
from ferret_worker.settings import WorkerSettings
from scripts import secrets
from tests.helm import CHART, NAMESPACE

ROOT = Path(__file__).parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
BUCKET: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.s3.yml").read_text())["services"]
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
GUIDE = (ROOT / "docs/operators/kubernetes.md").read_text()
FIELDS = {**ApiSettings.model_fields, **WorkerSettings.model_fields}
SERVICES = {"api": "api", "train": "train-0", "aggregate": "aggregate", "playground": "playground"}
"""Services of compose by the components that do the same."""
READ_BY = {"api": ApiSettings, "migrate": ServiceSettings}

MINIMAL: dict[str, Any] = {
    "image": {"repository": "registry.example.org/ferret"},
    "publicUrl": "https://ferret.example.org",
    "secret": {"name": "passwords"},
    "storageUrl": "s3://hospital-models/ferret",
}
FOLDER: dict[str, Any] = {"storageUrl": "file:///var/lib/ferret/storage", "persistence": {"enabled": True}}
PASSED_ON = {
    "FERRET_OIDC_ISSUER": "https://login.example.org/realms/hospital",
    "FERRET_OIDC_CLIENT_ID": "ferret",
    "FERRET_OIDC_SCOPES": "openid profile",
    "FERRET_OIDC_NAME": "The hospital",
    "FERRET_OIDC_NAME_CLAIM": "email",
    "FERRET_OIDC_ROLE_CLAIM": "groups",
    "FERRET_OIDC_ROLES": '{"ferret-admins": "admin"}',
    "FERRET_OIDC_DEFAULT_ROLE": "viewer",
    "FERRET_ALERT_NETWORKS": "10.0.0.0/8",
    "FERRET_SMTP_HOST": "mail.example.org",
    "FERRET_SMTP_PORT": 587,
    "FERRET_SMTP_SECURITY": "starttls",
    "FERRET_SMTP_USER": "ferret",
    "FERRET_SMTP_FROM": "ferret@example.org",
}
"""Compose has these from ``.env``."""
AS_COMPOSE: dict[str, Any] = {
    **FOLDER,
    "secret": {"name": "passwords", "also": ["oidc_client_secret", "smtp_password"]},
    "trustedProxies": ["10.87.65.0/29"],
    "api": {"settings": PASSED_ON},
}
BUCKET_SETTINGS = {
    "FERRET_S3_ENDPOINT": "https://minio.example.org:9000",
    "FERRET_S3_REGION": "eu-central-1",
    "FERRET_S3_PATH_STYLE": True,
}
COLLECTOR = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://otel-collector.monitoring:4318"}
EVERYTHING: dict[str, Any] = {
    "image": {"repository": "registry.example.org:5000/ai/ferret", "tag": "1.2", "pullSecrets": ["registry"]},
    "allowedHosts": ["ferret.internal"],
    "secret": {"name": "passwords", "also": ["s3_credentials", "oidc_client_secret", "smtp_password"]},
    "persistence": {"enabled": True, "existingClaim": "home"},
    "data": {"existingClaim": "datasets"},
    "settings": {**BUCKET_SETTINGS, "FERRET_LEASE_SECONDS": 0.5, "FERRET_S3_CACHE_BYTES": 68719476736, **COLLECTOR},
    "api": {"replicas": 3, "settings": PASSED_ON, "nodeSelector": {"disk": "ssd"}},
    "train": {
        "settings": {"FERRET_THREADS": 8},
        "gpu": {"resource": "nvidia.com/mig-3g.40gb"},
        "runtimeClassName": "nvidia",
        "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100"},
        "podDisruptionBudget": {"maxUnavailable": "25%"},
    },
    "aggregate": {"replicas": 2, "settings": {"FERRET_LOG_LEVEL": "debug"}},
    "playground": {"tolerations": [{"key": "spot", "operator": "Equal", "value": "yes", "effect": "NoExecute"}]},
    "ingress": {
        "enabled": True,
        "className": "traefik",
        "annotations": {"cert-manager.io/cluster-issuer": "letsencrypt"},
        "tlsSecret": "ferret-tls",
    },
    "trustedProxies": ["10.244.0.0/16", "fd00::/8"],
    "autoscaling": {"enabled": True, "tasksPerWorker": 2, "token": {"secretName": "keda"}},
    "networkPolicy": {
        "enabled": True,
        "from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}],
        "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"protocol": "TCP", "port": 5432}]}],
    },
    "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/ferret"}},
}
SMALLEST = {"train": {"replicas": 0}, "playground": {"replicas": 0}}
NO_GPU = {"train": {"gpu": {"count": 0}}}


def guide() -> Iterator[tuple[str, dict[str, Any]]]:
    """What the guide's blocks of values say, each together with the first."""
    blocks = [yaml.safe_load(text) for text in re.findall(r"```yaml[^\n]*\n(.*?)```", GUIDE, re.DOTALL)]
    yield from ((f"guide-{number}", {**blocks[0], **block}) for number, block in enumerate(blocks))


CASES: dict[str, dict[str, Any]] = {
    "minimal": MINIMAL,
    "folder": MINIMAL | FOLDER,
    "as-compose": MINIMAL | AS_COMPOSE,
    "as-compose-with-bucket": MINIMAL
    | AS_COMPOSE
    | {
        "storageUrl": "s3://hospital-models/ferret",
        "secret": {"name": "passwords", "also": ["s3_credentials", "oidc_client_secret", "smtp_password"]},
        "settings": BUCKET_SETTINGS,
    },
    "everything": MINIMAL | EVERYTHING,
    "smallest": MINIMAL | SMALLEST,
    "no-gpu": MINIMAL | NO_GPU,
    "open": MINIMAL | {"networkPolicy": {"enabled": False}},
    **dict(guide()),
}

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "defaults": ({}, "image.repository is needed"),
    "no-address": (MINIMAL | {"publicUrl": ""}, "publicUrl is needed"),
    "no-secret": (MINIMAL | {"secret": {}}, "secret.name is needed"),
    "no-storage": (MINIMAL | {"storageUrl": ""}, "storageUrl is needed"),
    "folder-of-each-pod": (MINIMAL | {"storageUrl": "file:///var/lib/ferret/storage"}, "persistence.enabled must be"),
    "two-homes-for-uploads": (MINIMAL | {"api": {"replicas": 2}}, "persistence.enabled must be true for more than one"),
    "credentials-of-no-bucket": (
        MINIMAL | FOLDER | {"secret": {"name": "passwords", "also": ["s3_credentials"]}},
        "secret.also names s3_credentials",
    ),
    "unknown-proxy": (MINIMAL | {"ingress": {"enabled": True}}, "trustedProxies is needed"),
    "more-than-most": (MINIMAL | {"autoscaling": {"enabled": True, "minReplicas": 5}}, "autoscaling.minReplicas"),
    "no-token-for-keda": (MINIMAL | {"autoscaling": {"enabled": True}}, "autoscaling.token.secretName is needed"),
    "the-ingress-does-not-get-in": (
        MINIMAL | {"ingress": {"enabled": True}, "trustedProxies": ["10.244.0.0/16"]},
        "networkPolicy.from is needed",
    ),
    "keda-does-not-get-in": (
        MINIMAL | {"autoscaling": {"enabled": True, "token": {"secretName": "keda"}}},
        "networkPolicy.from is needed",
    ),
    "slip": (MINIMAL | {"publicURL": "https://ferret.example.org"}, "publicURL"),
    "slip-within": (MINIMAL | {"train": {"replica": 1}}, "replica"),
    "no-setting": (MINIMAL | {"settings": {"FERRET_LEASE": 30}}, "FERRET_LEASE"),
    "setting-of-others": (MINIMAL | {"train": {"settings": {"FERRET_SMTP_HOST": "mail"}}}, "FERRET_SMTP_HOST"),
    "key": (MINIMAL | {"settings": {"OTEL_EXPORTER_OTLP_HEADERS": "key=…"}}, "OTEL_EXPORTER_OTLP_HEADERS"),
    "password": (MINIMAL | {"settings": {"FERRET_DATABASE_URL": "postgresql://…"}}, "FERRET_DATABASE_URL"),
    "what-the-chart-sets": (MINIMAL | {"api": {"settings": {"FERRET_PORT": 80}}}, "FERRET_PORT"),
    "structured-setting": (MINIMAL | {"api": {"settings": {"FERRET_OIDC_ROLES": {}}}}, "FERRET_OIDC_ROLES"),
    "address-without-scheme": (MINIMAL | {"publicUrl": "ferret.example.org"}, "publicUrl"),
    "address-with-path": (MINIMAL | {"publicUrl": "https://example.org/ferret"}, "publicUrl"),
    "folder-outside": (MINIMAL | FOLDER | {"storageUrl": "file:///srv/storage"}, "storageUrl"),
    "unknown-secret": (MINIMAL | {"secret": {"name": "passwords", "also": ["password"]}}, "secret/also"),
    "two-gpus": (MINIMAL | {"train": {"gpu": {"count": 2}}}, "gpu/count"),
    "words-for-numbers": (MINIMAL | {"api": {"replicas": "two"}}, "api/replicas"),
    "no-aggregation": (MINIMAL | {"aggregate": {"replicas": 0}}, "aggregate/replicas"),
    "tag-in-the-repository": (MINIMAL | {"image": {"repository": "ferret:0.1.0"}}, "image/repository"),
    "no-network": (MINIMAL | {"trustedProxies": ["everybody"]}, "trustedProxies"),
    "too-long-a-window": (MINIMAL | {"autoscaling": {"cooldownSeconds": 7200}}, "cooldownSeconds"),
}


class Chart:
    """What Helm made of the cases."""

    def __init__(self, found: dict[str, dict[str, Any]]) -> None:
        self.found = found
        self.read: dict[str, list[dict[str, Any]]] = {}

    def objects(self, case: str) -> list[dict[str, Any]]:
        if case not in self.read:
            texts = self.found[case]["rendered"]
            templates = [text for path, text in texts.items() if path.endswith(".yaml")]
            self.read[case] = [found for text in templates for found in yaml.safe_load_all(text) if found]
        return self.read[case]

    def of_kind(self, case: str, kind: str) -> dict[str, dict[str, Any]]:
        return {found["metadata"]["name"]: found for found in self.objects(case) if found["kind"] == kind}

    def pods(self, case: str) -> dict[str, dict[str, Any]]:
        """Their specifications by component."""
        deployments = self.of_kind(case, "Deployment")
        return {name.removeprefix("ferret-"): found["spec"]["template"]["spec"] for name, found in deployments.items()}

    def containers(self, case: str) -> dict[str, dict[str, Any]]:
        """Every container by what it is called; that all pods migrate in the same way is a test of its own."""
        pods = self.pods(case).values()
        return {container["name"]: container for pod in pods for container in pod["initContainers"] + pod["containers"]}

    def environment(self, case: str, name: str) -> dict[str, str]:
        """As Kubernetes fills it in: ConfigMaps in order, then what the container adds."""
        maps, container = self.of_kind(case, "ConfigMap"), self.containers(case)[name]
        variables: dict[str, str] = {}
        for source in container["envFrom"]:
            variables |= maps[source["configMapRef"]["name"]]["data"]
        return variables | {entry["name"]: entry["value"] for entry in container.get("env", [])}


@pytest.fixture(scope="module")
def chart(need: Callable[[bool, str], None]) -> Chart:
    here = importlib.util.find_spec("helm_python") is not None
    need(here, "helm-python-sdk, which has wheels for Linux on x86_64")
    asked = CASES | {name: values for name, (values, _) in REFUSED.items()}
    command = [sys.executable, "-m", "tests.helm"]
    done = subprocess.run(command, cwd=ROOT, input=json.dumps(asked), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Chart(json.loads(done.stdout))


class TestRendered:
    """What needs Helm."""

    pytestmark = pytest.mark.heavy

    @pytest.mark.parametrize("case", CASES)
    def test_helm_renders_it_and_finds_nothing_to_say(self, chart: Chart, case: str) -> None:
        found = chart.found[case]
        assert "rendered" in found, found.get("refusal")
        assert [message for message in found["lint"]["messages"] if message["severity"] > 1] == []
        assert not found["lint"]["errors"]

    @pytest.mark.parametrize("case", REFUSED)
    def test_what_is_wrong_is_refused_by_its_name(self, chart: Chart, case: str) -> None:
        assert REFUSED[case][1] in chart.found[case].get("refusal", "it was rendered")

    @pytest.mark.parametrize(("case", "version"), [*((case, "1.37") for case in CASES), ("everything", "1.25")])
    def test_every_object_follows_the_schema_of_kubernetes(self, chart: Chart, case: str, version: str) -> None:
        import kubernetes_validate

        for found in chart.objects(case):
            if found["apiVersion"] != "keda.sh/v1alpha1":
                kubernetes_validate.validate(found, version, strict=True)

    @pytest.mark.parametrize("case", CASES)
    def test_names_are_unique_and_every_pod_is_selected_by_its_own(self, chart: Chart, case: str) -> None:
        named = [(found["kind"], found["metadata"]["name"]) for found in chart.objects(case)]
        assert len(named) == len(set(named))
        for name, found in chart.of_kind(case, "Deployment").items():
            selector, labels = found["spec"]["selector"]["matchLabels"], found["spec"]["template"]["metadata"]["labels"]
            assert selector.items() <= labels.items()
            assert selector["app.kubernetes.io/component"] == name.removeprefix("ferret-")
            budget = chart.of_kind(case, "PodDisruptionBudget")[name]["spec"]
            assert budget["selector"]["matchLabels"] == selector
            assert "minAvailable" not in budget
        (service,) = chart.of_kind(case, "Service").values()
        api = chart.of_kind(case, "Deployment")["ferret-api"]
        assert service["spec"]["selector"] == api["spec"]["selector"]["matchLabels"]

    @pytest.mark.parametrize("name", [*SERVICES, "migrate"])
    @pytest.mark.parametrize("case", CASES)
    def test_every_process_reads_its_settings(
        self, chart: Chart, case: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        if name not in chart.containers(case):
            assert case == "smallest"
            return
        settings = read(chart.environment(case, name), READ_BY.get(name, WorkerSettings), monkeypatch, tmp_path)
        assert settings.database_url.startswith("postgresql+psycopg://")
        assert settings.broker_url.startswith("redis://")
        assert settings.storage_url == CASES[case]["storageUrl"]
        assert settings.home == Path("/var/lib/ferret")

    @pytest.mark.parametrize("name", [*SERVICES, "migrate"])
    @pytest.mark.parametrize("case", CASES)
    def test_every_variable_is_a_setting_and_no_secret_is_one(self, chart: Chart, case: str, name: str) -> None:
        if name not in chart.containers(case):
            return
        secret = {f"FERRET_{field.upper()}" for field in FIELDS if FROM_FILE in FIELDS[field].metadata}
        known = {f"FERRET_{field.upper()}" for field in FIELDS} - secret | {f"{variable}_FILE" for variable in secret}
        assert chart.environment(case, name).keys() - {"AWS_SHARED_CREDENTIALS_FILE", *COLLECTOR} <= known

    @pytest.mark.parametrize("case", CASES)
    def test_every_secret_that_a_pod_reads_is_mounted_there_and_no_other(self, chart: Chart, case: str) -> None:
        for name, pod in chart.pods(case).items():
            (volume,) = [volume["secret"] for volume in pod["volumes"] if volume["name"] == "secrets"]
            text = " ".join(chart.environment(case, name).values())
            assert {item["key"] for item in volume["items"]} == set(re.findall(r"/run/secrets/ferret/(\w+)", text))
            assert volume["secretName"] == CASES[case]["secret"]["name"]

    @pytest.mark.parametrize("case", CASES)
    def test_every_pod_fits_the_standard_restricted(self, chart: Chart, case: str) -> None:
        (uid,) = re.findall(r"useradd .*--uid (\d+)", (ROOT / "Dockerfile").read_text())
        for pod in chart.pods(case).values():
            security = pod["securityContext"]
            assert (security["runAsNonRoot"], security["runAsUser"]) == (True, int(uid))
            assert security["seccompProfile"] == {"type": "RuntimeDefault"}
            assert pod["automountServiceAccountToken"] is False
            assert pod["enableServiceLinks"] is False, "a Service named ferret would set FERRET_PORT"
            for volume in pod["volumes"]:
                assert volume.keys() - {"name"} <= {"emptyDir", "persistentVolumeClaim", "secret"}
            for container in pod["initContainers"] + pod["containers"]:
                assert container["securityContext"] == {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                }
                assert {"memory"} <= container["resources"]["limits"].keys()
                mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
                assert mounts.keys() == {volume["name"] for volume in pod["volumes"]}
                assert mounts["tmp"]["mountPath"] == "/tmp"

    @pytest.mark.parametrize("case", CASES)
    def test_every_pod_migrates_first_and_runs_what_compose_runs(self, chart: Chart, case: str) -> None:
        pods = chart.pods(case)
        assert pods.keys() == ({"api", "aggregate"} if case == "smallest" else SERVICES.keys())
        for name, pod in pods.items():
            (first,), (container,) = pod["initContainers"], pod["containers"]
            assert first["args"] == COMPOSE["migrate"]["command"]
            assert container["args"] == COMPOSE[SERVICES[name]]["command"]
            assert first["image"] == container["image"]
            assert first["volumeMounts"] == container["volumeMounts"]

    @pytest.mark.parametrize("case", ["as-compose", "as-compose-with-bucket"])
    @pytest.mark.parametrize("name", [*SERVICES, "migrate"])
    def test_the_chart_sets_what_compose_sets(self, chart: Chart, case: str, name: str) -> None:
        differs = {
            "FERRET_ALLOWED_HOSTS": "names of the Service",
            "FERRET_PUBLIC_URL": "is a value that is needed; compose has localhost",
            "FERRET_TRUSTED_PROXIES": "is a value; compose makes the network itself",
        }
        service = SERVICES.get(name, name)
        theirs, ours = COMPOSE[service]["environment"], chart.environment(case, name)
        if case == "as-compose-with-bucket":
            theirs = theirs | BUCKET[service]["environment"]
        assert ours.keys() == theirs.keys()
        for variable in ours.keys() - differs:
            if not theirs[variable].startswith("${"):
                assert ours[variable].replace("/run/secrets/ferret/", "/run/secrets/") == theirs[variable], variable

    def test_limits_are_those_of_compose(self, chart: Chart) -> None:
        for name, container in chart.containers("minimal").items():
            theirs = COMPOSE[SERVICES.get(name, name)]["deploy"]["resources"]["limits"]
            memory = re.sub(r"\$\{\w+:-(\w+)\}", r"\1", theirs["memory"])
            assert container["resources"]["limits"]["memory"] == f"{memory.upper()}i"
            assert container["resources"]["limits"].get("cpu") == theirs.get("cpus")

    def test_probes_ask_what_compose_asks(self, chart: Chart) -> None:
        containers = chart.containers("minimal")
        api, port = containers["api"], ApiSettings.model_fields["port"].default
        assert [entry["containerPort"] for entry in api["ports"]] == [port]
        assert f":{port}{api['readinessProbe']['httpGet']['path']}'" in COMPOSE["api"]["healthcheck"]["test"][-1]
        assert api["livenessProbe"]["httpGet"]["path"] == "/healthz"
        for name in ("train", "aggregate", "playground"):
            asked = containers[name]["livenessProbe"]["exec"]["command"]
            assert ["CMD", *asked] == COMPOSE[SERVICES[name]]["healthcheck"]["test"]
            heartbeat = chart.environment("minimal", name)["FERRET_HEARTBEAT"]
            assert heartbeat in asked[-1]
            assert containers[name]["startupProbe"]["exec"]["command"] == asked, "a file may be left from before"

    def test_running_requests_have_the_time_that_the_api_gives_them(self, chart: Chart) -> None:
        pod = chart.pods("minimal")["api"]
        _, pause = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
        assert int(pause) + SHUTDOWN_SECONDS < pod["terminationGracePeriodSeconds"]

    def test_a_training_worker_has_the_gpu_that_its_settings_name(self, chart: Chart) -> None:
        def asked(case: str) -> tuple[object, str]:
            limits = chart.containers(case)["train"]["resources"]["limits"]
            return limits.keys() - {"memory"}, chart.environment(case, "train")["FERRET_DEVICE"]

        assert asked("minimal") == ({"nvidia.com/gpu"}, "cuda")
        assert asked("everything") == ({"nvidia.com/mig-3g.40gb"}, "cuda")
        assert asked("no-gpu") == (set(), "cpu")
        others = [chart.containers("minimal")[name]["resources"]["limits"] for name in ("aggregate", "playground")]
        assert not any("gpu" in resource for limits in others for resource in limits)
        pod = chart.pods("everything")["train"]
        assert (pod["runtimeClassName"], pod["tolerations"][0]["key"]) == ("nvidia", "nvidia.com/gpu")
        assert pod["nodeSelector"] == {"nvidia.com/gpu.product": "NVIDIA-H100"}

    def test_values_become_settings_as_they_were_meant(
        self, chart: Chart, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        api = read(chart.environment("everything", "api"), ApiSettings, monkeypatch, tmp_path)
        assert isinstance(api, ApiSettings)
        assert (api.s3_cache_bytes, api.lease_seconds, api.s3_path_style) == (64 << 30, 0.5, True)
        assert api.data_roots == (Path("/var/lib/ferret/data"), Path("/data"))
        assert api.trusted_proxies == "10.244.0.0/16,fd00::/8"
        assert (api.smtp_password, api.smtp_port) == ("of smtp_password", 587)
        found = OidcSettings.of(api)
        assert found is not None
        assert (found.client_secret, found.roles) == ("of oidc_client_secret", {"ferret-admins": "admin"})
        assert {
            "ferret.internal",
            "ferret.example.org",
            "ferret-api",
            f"ferret-api.{NAMESPACE}.svc",
        } <= trusted_hosts.names(api)
        assert chart.environment("everything", "train")["FERRET_THREADS"] == "8"
        assert chart.environment("everything", "aggregate")["FERRET_LOG_LEVEL"] == "debug"

    def test_the_home_is_shared_where_something_must_be(self, chart: Chart) -> None:
        def home(case: str) -> dict[str, Any]:
            (found,) = {json.dumps(volume) for pod in chart.pods(case).values() for volume in pod["volumes"][:1]}
            return json.loads(found)

        assert home("minimal") == {"name": "home", "emptyDir": {"sizeLimit": "128Gi"}}
        assert home("folder") == {"name": "home", "persistentVolumeClaim": {"claimName": "ferret"}}
        assert home("everything") == {"name": "home", "persistentVolumeClaim": {"claimName": "home"}}
        (claim,) = chart.of_kind("folder", "PersistentVolumeClaim").values()
        assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
        assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
        assert not chart.of_kind("everything", "PersistentVolumeClaim")
        scratch = DEFAULTS["persistence"]["scratchSize"]
        assert int(scratch.removesuffix("Gi")) << 30 > ServiceSettings.model_fields["s3_cache_bytes"].default

    def test_other_settings_make_other_pods(self, chart: Chart) -> None:
        def stamp(case: str) -> str:
            (found,) = {
                deployment["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
                for deployment in chart.of_kind(case, "Deployment").values()
            }
            return found

        assert stamp("minimal") == stamp("no-gpu") != stamp("everything")

    def test_an_ingress_leads_to_the_service_under_the_public_address(self, chart: Chart) -> None:
        assert not chart.of_kind("minimal", "Ingress")
        (ingress,) = chart.of_kind("everything", "Ingress").values()
        (rule,) = ingress["spec"]["rules"]
        assert ingress["spec"]["tls"] == [{"hosts": ["ferret.example.org"], "secretName": "ferret-tls"}]
        assert rule["host"] == "ferret.example.org"
        backend = rule["http"]["paths"][0]["backend"]["service"]
        service = chart.of_kind("everything", "Service")[backend["name"]]
        assert [port["name"] for port in service["spec"]["ports"]] == [backend["port"]["name"]]

    def test_workers_are_scaled_by_figures_that_the_api_has(
        self, chart: Chart, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        assert not chart.of_kind("minimal", "ScaledObject")
        (scaled,) = chart.of_kind("everything", "ScaledObject").values()
        (authentication,) = chart.of_kind("everything", "TriggerAuthentication").values()
        assert authentication["spec"]["secretTargetRef"] == [{"parameter": "token", "name": "keda", "key": "token"}]
        deployment = chart.of_kind("everything", "Deployment")[scaled["spec"]["scaleTargetRef"]["name"]]
        assert "replicas" not in deployment["spec"], "Helm and KEDA would take turns at it"
        formula = scaled["spec"]["advanced"]["scalingModifiers"]["formula"]
        assert formula == "busy + waiting / 2"
        api = read(chart.environment("everything", "api"), ApiSettings, monkeypatch, tmp_path)
        found = figures(tmp_path)
        assert {trigger["name"] for trigger in scaled["spec"]["triggers"]} == set(re.findall(r"[a-z]+", formula))
        for trigger in scaled["spec"]["triggers"]:
            asked = trigger["metadata"]
            assert asked["valueLocation"] in found
            host = re.fullmatch(r"http://(.*):8765/metrics", asked["url"])
            assert host
            assert isinstance(api, ApiSettings)
            assert host[1] in trusted_hosts.names(api), "else the API refuses to answer KEDA"
            assert trigger["authenticationRef"] == {"name": authentication["metadata"]["name"]}

    def test_a_network_policy_lets_its_peers_in_to_the_api_alone(self, chart: Chart) -> None:
        assert not chart.of_kind("open", "NetworkPolicy")
        closed = chart.of_kind("minimal", "NetworkPolicy")
        assert [policy["spec"]["policyTypes"] for policy in closed.values()] == [["Ingress"], ["Ingress"]]
        assert not any("ingress" in policy["spec"] for policy in closed.values()), "a rule without peers lets all in"
        policies = chart.of_kind("everything", "NetworkPolicy")
        everywhere, api = policies["ferret"]["spec"], policies["ferret-api"]["spec"]
        assert everywhere["policyTypes"] == ["Ingress", "Egress"]
        assert "ingress" not in everywhere
        assert [rule["ports"][0]["port"] for rule in everywhere["egress"]] == [53, 5432]
        assert api["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "api"
        assert [rule["from"] for rule in api["ingress"]] == [EVERYTHING["networkPolicy"]["from"]]


def read(
    environment: dict[str, str], settings: type[ServiceSettings], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> ServiceSettings:
    """The settings of a process with this environment, and secrets in ``folder``."""
    given = {name: f"of {name}" for name in ("s3_credentials", "oidc_client_secret", "smtp_password")}
    for name, text in (secrets.made() | given).items():
        (folder / name).write_text(text)
    for name, value in environment.items():
        monkeypatch.setenv(name, value.replace("/run/secrets/ferret", str(folder)))
    return settings.read()


def figures(folder: Path) -> set[str]:
    """The figures of an API with an empty database, as KEDA would name those with one label."""
    url = f"sqlite:///{folder}/ferret.db"
    migrate.upgrade(url)
    database = Database(url)
    text = bytes(prometheus.respond(prometheus.RequestFigures(), database).body).decode()
    database.dispose()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {f'{sample.name}{{queue="{sample.labels["queue"]}"}}' for sample in samples if "queue" in sample.labels}


def test_the_chart_has_the_version_of_ferret() -> None:
    found = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (found["version"], found["appVersion"]) == (__version__, __version__)


def names(fields: set[str]) -> list[str]:
    return sorted(f"FERRET_{field.upper()}" for field in fields)


def test_the_schema_names_every_setting_that_values_may_give() -> None:
    """A setting that is new belongs into ``values.schema.json`` too, or into the sets below."""
    by_the_chart = {"home", "storage_url", "data_roots", "heartbeat", "host", "port", "public_url", "allowed_hosts"}
    by_the_chart |= {"trusted_proxies", "device"}
    of_other_ways_to_serve = {"listen_fd", "tls_cert", "tls_key", "log_bytes", "log_files"}
    secret = {name for name, field in FIELDS.items() if FROM_FILE in field.metadata}
    not_given = by_the_chart | of_other_ways_to_serve | secret
    readers = {"settings": ServiceSettings, "apiSettings": ApiSettings, "workerSettings": WorkerSettings}
    wanted = {name: names(set(reader.model_fields) - not_given) for name, reader in readers.items()}
    wanted["workerSettings"] = sorted([*wanted["workerSettings"], "FERRET_KERNEL"])  # the core reads it
    allowed = {name: SCHEMA["definitions"][name]["propertyNames"] for name in readers}
    ours, opentelemetry = allowed["settings"]["anyOf"]
    assert {**allowed, "settings": ours} == {name: {"enum": found} for name, found in wanted.items()}
    assert opentelemetry == {"pattern": "^OTEL_[A-Z_]+$", "not": {"pattern": "HEADERS"}}, "a key is a password"


def test_nothing_may_be_given_that_the_schema_does_not_know() -> None:
    def objects(schema: Any) -> Iterator[dict[str, Any]]:
        if isinstance(schema, dict):
            if "properties" in schema and schema.get("type") == "object":
                yield schema
            for inner in schema.values():
                yield from objects(inner)

    assert all(found["additionalProperties"] is False for found in objects(SCHEMA))

# One image for every process: API, workers, migration. Compose chooses the command.
# Pin the base by digest with --build-arg PYTHON_IMAGE=python:3.11.14-slim-bookworm@sha256:…
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm
FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE requirements.txt ./
COPY bench/pyproject.toml ./bench/
COPY scripts ./scripts
COPY packaging ./packaging
COPY ferret_core ./ferret_core
COPY ferret_sdk ./ferret_sdk
COPY ferret_cli ./ferret_cli
COPY ferret_runtime ./ferret_runtime
COPY ferret_db ./ferret_db
COPY migrations ./migrations
COPY api ./api
COPY worker ./worker
# PyPI's torch brings CUDA; for machines without a GPU:
#   --build-arg TORCH=cpu
ARG TORCH=cuda
ARG PIP_EXTRA_INDEX_URL=
RUN PIP_NO_CACHE_DIR=1 python -m scripts.setup --service --venv /opt/ferret --torch "$TORCH"

FROM ${PYTHON_IMAGE}
# Triton compiles the launchers of the GPU kernels.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 10001 ferret && install -d -o ferret /var/lib/ferret /var/lib/ferret/data
COPY --from=build /opt/ferret /opt/ferret
# The image is read-only where compose runs it: caches go to the volume and to memory.
ENV PATH=/opt/ferret/bin:$PATH FERRET_HOME=/var/lib/ferret PYTHONUNBUFFERED=1 \
    HF_HOME=/var/lib/ferret/huggingface NUMBA_CACHE_DIR=/tmp/numba TRITON_CACHE_DIR=/tmp/triton
USER ferret
VOLUME /var/lib/ferret
ENTRYPOINT ["ferret"]
CMD ["api"]

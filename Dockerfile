# One image for every process: API, workers, migration. Compose chooses the command.
FROM python:3.11-slim AS build
WORKDIR /src
COPY constraints.txt pyproject.toml README.md ./
COPY participant ./participant
COPY ferret_core ./ferret_core
COPY ferret_sdk ./ferret_sdk
COPY ferret_cli ./ferret_cli
COPY ferret_db ./ferret_db
COPY api ./api
COPY worker ./worker
COPY migrations ./migrations
COPY bench ./bench
# The CUDA build is PyPI's default for Linux; for CPU machines: --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cpu
ARG TORCH_INDEX=https://pypi.org/simple
RUN python -m venv /opt/ferret \
 && /opt/ferret/bin/pip install --no-cache-dir --constraint constraints.txt --index-url "$TORCH_INDEX" \
      --extra-index-url https://pypi.org/simple torch \
 && /opt/ferret/bin/pip install --no-cache-dir --constraint constraints.txt './participant[train,hub]' .

FROM python:3.11-slim
RUN useradd --create-home --uid 10001 ferret && install -d -o ferret /var/lib/ferret
COPY --from=build /opt/ferret /opt/ferret
ENV PATH=/opt/ferret/bin:$PATH FERRET_HOME=/var/lib/ferret PYTHONUNBUFFERED=1
USER ferret
VOLUME /var/lib/ferret
ENTRYPOINT ["ferret"]
CMD ["api"]

# sf-explore-go, ready to train. Build and use: docs/scaling.md.
#   docker build -t sf-explore-go .                                        torch with CUDA, as it comes
#   docker build -t sf-explore-go --build-arg TORCH_INDEX_URL=URL .        torch from another index, e.g. its CPU builds
#   docker build -t sf-explore-go-test --target test .                     the same with the tests and their tools
ARG BASE_IMAGE=debian:bookworm-slim

FROM ${BASE_IMAGE} AS base
# libgl1 and libglib2.0-0: OpenCV loads them. tini: passes signals on and buries what engines and workers leave.
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3.11 python3.11-venv libgl1 libglib2.0-0 tini \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
RUN useradd --create-home --uid 1000 explorer && mkdir -p /work/train_dir && chmod -R 1777 /work
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 MPLBACKEND=Agg HOME=/tmp USER=explorer \
    SF_EXPLORE_GO_CACHE=/opt/wads

# What changes rarely comes first: a change of our code leaves this layer as it is.
ARG TORCH_INDEX_URL=""
COPY requirements.txt /tmp/
RUN python3.11 -m venv /opt/venv \
 && pip install --no-cache-dir --disable-pip-version-check "setuptools>=77" \
 && if [ -n "$TORCH_INDEX_URL" ]; then \
      pip install --no-cache-dir --disable-pip-version-check --index-url "$TORCH_INDEX_URL" \
        "$(grep ^torch== /tmp/requirements.txt)"; \
    fi \
 && pip install --no-cache-dir --disable-pip-version-check -r /tmp/requirements.txt \
 && rm -rf /tmp/* /root/.cache

WORKDIR /work
ENTRYPOINT ["tini", "--", "sf-explore-go"]
CMD ["--help"]

FROM base AS program
COPY launch /work/launch
COPY pyproject.toml requirements.txt README.md LICENSE /src/
COPY doom_scenarios /src/doom_scenarios
COPY sf_explore_go /src/sf_explore_go
RUN pip install --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation /src \
 && sf-explore-go scenario \
 && rm -rf /src /tmp/*

FROM program AS test
COPY requirements.txt requirements-dev.txt /tmp/
RUN pip install --no-cache-dir --disable-pip-version-check -r /tmp/requirements-dev.txt && rm -rf /tmp/*
COPY --chown=explorer . /test
WORKDIR /test
USER explorer
ENTRYPOINT ["tini", "--"]
CMD ["python", "-m", "pytest", "-m", "not slow"]

FROM program
USER explorer

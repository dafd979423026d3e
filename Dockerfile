# The image of pysbx's docker backend (target sandbox, the default), and the server (target server).
#
#   docker build -t pysbx-sandbox .             pysbx --sandbox-backend docker --docker-image pysbx-sandbox
#   docker build -t pysbx --target server .     docker run -e PYSBX_TOKEN=… -p 8000:8000 … pysbx
#
# The base has Debian's glibc, CA certificates, tzdata, Python 3.13 and uv, for amd64 and arm64.
FROM astral/uv:0.13.9-python3.13-trixie-slim AS base
ENV PYTHONUTF8=1 SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt

FROM base AS sandbox
RUN ["sh", "-c", "mkdir -p /pysbx/cache /pysbx/envs /pysbx/pythons && chown 65534:65534 /pysbx/* && chmod 311 /pysbx/envs && python3 -I -S -m compileall -q -x '[\\\\/]tests?[\\\\/]' \"$(python3 -c 'import sysconfig; print(sysconfig.get_path(\"stdlib\"))')\""]
WORKDIR /work
USER 65534:65534

FROM base AS server
USER root
RUN ["sh", "-c", "apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends bubblewrap tini && rm -rf /var/lib/apt/lists/*"]
COPY pyproject.toml README.md LICENSE pysbx.py pysbx_sandbox.py /opt/pysbx/
RUN ["sh", "-c", "uv venv -q --no-managed-python /opt/venv && uv pip install -q --no-cache -p /opt/venv /opt/pysbx && mkdir /cache && chown 65534:65534 /cache"]
ENV XDG_CACHE_HOME=/cache
USER 65534:65534
EXPOSE 8000
# bubblewrap needs user namespaces and an unmasked /proc: see "HTTP for teams" in the README
ENTRYPOINT ["/usr/bin/tini", "--", "/opt/venv/bin/pysbx", "--transport", "http", "--host", "0.0.0.0", "--require-sandbox", "--no-warm-cache"]

FROM sandbox

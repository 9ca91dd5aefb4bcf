# syntax=docker/dockerfile:1

# The base image. For a reproducible build, pin it by digest:
#   docker build --build-arg NODE_IMAGE=node:24-bookworm-slim@sha256:… .
ARG NODE_IMAGE=node:24-bookworm-slim

# No package needs its install scripts: packages with native code carry their binaries.

FROM ${NODE_IMAGE} AS build
WORKDIR /service
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm run build

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /service
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund

FROM ${NODE_IMAGE}
WORKDIR /service
ENV NODE_ENV=production \
    SVC_HOST=0.0.0.0 \
    SVC_PORT=8080 \
    SVC_DATA_DIR=/data
RUN mkdir /data && chown node:node /data
COPY --from=dependencies /service/node_modules ./node_modules
COPY --from=build /service/dist ./dist
COPY package.json LICENSE ./
# Runs on a read-only root file system: it writes to /data and /tmp only.
USER node
VOLUME /data
EXPOSE 8080
# The service handles signals itself, also as process 1. Running work gets up to 25 s after SIGTERM:
# give the container 40 s to stop.
STOPSIGNAL SIGTERM
# Bash asks by itself, without a second Node. With TLS it only checks that the port accepts connections.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/$SVC_PORT || exit 1; [ -n \"$SVC_TLS_CERT_FILE\" ] && exit 0; printf 'GET /health/live HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3; read -r status <&3; [[ $status == *' 200 '* ]]"]
CMD ["node", "dist/app/main.js"]

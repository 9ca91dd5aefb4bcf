# syntax=docker/dockerfile:1

# No package of this project needs its install scripts: what is native carries its binaries.

FROM node:22-bookworm-slim AS build
WORKDIR /service
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm run build

FROM node:22-bookworm-slim AS dependencies
WORKDIR /service
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund

FROM node:22-bookworm-slim
WORKDIR /service
ENV NODE_ENV=production \
    SVC_HOST=0.0.0.0 \
    SVC_PORT=8080 \
    SVC_DATA_DIR=/data
RUN mkdir /data && chown node:node /data
COPY --from=dependencies /service/node_modules ./node_modules
COPY --from=build /service/dist ./dist
COPY package.json LICENSE ./
USER node
VOLUME /data
EXPOSE 8080
# The service handles signals itself, also as process 1. Running work gets up to 25 s after SIGTERM: give
# the container 30 s to stop.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.SVC_PORT}/health/live`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--enable-source-maps", "dist/app/main.js"]

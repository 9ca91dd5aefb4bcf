import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isArtifactName } from '../../../domain/artifacts/artifact.ts';
import {
  ArtifactError,
  type ArtifactStore,
  type OpenArtifact,
} from '../../../domain/artifacts/artifact-store.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { ArtifactContent } from '../../schemas/response-schemas-runs.ts';
import { endpoint, idIn, type Endpoint, type Streaming } from '../../endpoint.ts';
import { notFound } from '../../errors.ts';
import { inReach } from '../lookup.ts';
import { ReadQuery } from '../../schemas/schemas.ts';

/** A client that reads nothing for this many milliseconds is disconnected. */
const STALL_TIMEOUT = 120_000;

const artifact = endpoint('GET /runs/:run_id/artifacts/:artifact', {
  operationId: 'getRunArtifact',
  summary: 'Returns a large result of a run',
  description:
    'A run shows a result over 256 KiB as a reference, `{artifact, size_bytes, sha256}`. This endpoint returns the result itself, as JSON. Its SHA-256 is checked before it is sent, and is the `ETag`.',
  scopes: ['runs:read'],
  acceptsOwn: true,
  query: ReadQuery,
  reads: [runsProjection],
  responses: { 200: ArtifactContent },
  responseHeaders: ['ETag'],
  async handle(call) {
    const { readModel, artifacts } = call.dependencies;
    const id = idIn(call, 'run_id');
    const name = idIn(call, 'artifact');
    // The artifacts of a removed run are already removed, or will be soon.
    inReach(call, 'run', id, (await readModel.get(runsProjection, id))?.document);
    const { store } = artifacts;
    const isThere = isArtifactName(name) && (await isWhole(store, id, name));
    const opened = isThere ? await store.open(id, name) : null;
    if (opened === null) throw notFound('artifact', name);
    return { stream: (streaming) => send(streaming, name, opened, call.dependencies.telemetry) };
  },
});

export const artifactEndpoints: readonly Endpoint[] = [artifact];

/**
 * Reads an artifact once to verify it, so that a damaged one yields an error instead of part of its content.
 * @returns false if there is no such artifact
 * @throws ArtifactError `DAMAGED`, `UNAVAILABLE`
 */
async function isWhole(store: ArtifactStore, runId: string, name: string): Promise<boolean> {
  const opened = await store.open(runId, name);
  if (opened === null) return false;
  const digest = createHash('sha256');
  try {
    for await (const chunk of opened.chunks) digest.update(chunk);
  } finally {
    opened.close();
  }
  if (digest.digest('hex') === name) return true;
  const problem = `artifact ${name} of run ${runId} is damaged, as its content has another SHA-256`;
  throw new ArtifactError('DAMAGED', problem, 'restore it from a backup');
}

async function send(
  { request, response }: Streaming,
  name: string,
  opened: OpenArtifact,
  { log }: Pick<Telemetry, 'log'>,
): Promise<void> {
  response.statusCode = 200;
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  response.setHeader('Content-Length', opened.sizeBytes);
  response.setHeader('ETag', `"${name}"`);
  if (request.method === 'HEAD') {
    opened.close();
    response.end();
    return;
  }
  request.socket.setTimeout(STALL_TIMEOUT);
  try {
    await pipeline(Readable.from(opened.chunks, { objectMode: false }), response);
  } catch (error) {
    // The client has left, or the store has failed since. The response is then shorter than its Content-Length.
    if (error instanceof ArtifactError)
      log.warn('artifact sent in part', { artifact: name, error });
    response.destroy();
  } finally {
    opened.close();
    request.socket.setTimeout(0);
  }
}

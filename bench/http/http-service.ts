import { createClient, type Client } from '../../api/client/client.ts';
import { nameBasedId } from '../../domain/ids.ts';
import { withBenchFolder } from '../bench-folder.ts';
import { BenchService } from '../bench-service.ts';

/** The same in every process, because a store may be kept. */
const ADMIN = { agent_id: nameBasedId('bench admin'), agent_secret: 'of the benchmark only' };

/** The built service as a process, called over HTTP as its first agent. */
export interface HttpService {
  readonly process: BenchService;
  readonly client: Client;
  readonly agentId: string;
  readonly agentSecret: string;
  /** The token, for every request. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Starts the service over an empty folder, or one of an earlier call. The caller stops it with `process`. */
export async function startHttpService(
  directory: string,
  settings: Readonly<Record<string, string>> = {},
  entry?: string,
): Promise<HttpService> {
  const { agent_id, agent_secret } = ADMIN;
  const admin = { SVC_ADMIN_ID: agent_id, SVC_ADMIN_SECRET: agent_secret };
  // All clients share one address, and most clients share one agent.
  const unlimited = {
    SVC_RATE_LIMIT: '0',
    SVC_CONNECTIONS_PER_ADDRESS: '0',
    SVC_LIVE_STREAMS_PER_AGENT: '0',
  };
  const all = { ...unlimited, ...admin, ...settings };
  const process = await BenchService.start(directory, all, entry);
  const baseUrl = `http://127.0.0.1:${process.port}`;
  const { data } = await createClient({ baseUrl }).tokens.get(ADMIN);
  const token = data.access_token;
  return {
    process,
    client: createClient({ baseUrl, token }),
    agentId: agent_id,
    agentSecret: agent_secret,
    headers: { authorization: `Bearer ${token}` },
  };
}

/** Works with a service over an empty store and removes both. */
export async function withHttpService<T>(
  work: (service: HttpService, directory: string) => Promise<T>,
): Promise<T> {
  return withBenchFolder('http', async (directory) => {
    const service = await startHttpService(directory);
    try {
      return await work(service, directory);
    } finally {
      await service.process.stop();
    }
  });
}

/** Requests a path, by POST if there is a body. @throws Error if the response is not a success */
export async function read(
  { process, headers }: HttpService,
  path: string,
  body?: object,
): Promise<string> {
  const json = { ...headers, 'content-type': 'application/json' };
  const post = { method: 'POST', body: JSON.stringify(body), headers: json };
  const url = `http://127.0.0.1:${process.port}${path}`;
  const response = await fetch(url, body === undefined ? { headers } : post);
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return text;
}

/** A task for benchmarks. @param owner id of an agent */
export const reportTask = (title: string, owner: string) =>
  ({
    title,
    description: 'makes a report and sends it',
    schedule_kind: 'cron',
    schedule_expr: '0 3 * * *',
    payload: { pipeline: [{ id: 'made', uses: 'echo', with: { text: 'a report' } }] },
    created_by: owner,
  }) as const;

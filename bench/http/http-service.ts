import { createClient, type Client } from '../../api/client/client.ts';
import { nameBasedId } from '../../domain/ids.ts';
import { makeBenchFolder, removeBenchFolder } from '../bench-folder.ts';
import { BenchService } from '../bench-service.ts';

/** The same in every process, as a store may be kept from one to the next. */
const ADMIN = {
  agentId: nameBasedId('bench admin'),
  agentSecret: 'of the benchmark, and of nothing else',
};

/** The built service as a process of its own, spoken with over HTTP as its first agent. */
export interface HttpService {
  readonly process: BenchService;
  readonly client: Client;
  readonly agentId: string;
  /** For every request: the token. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Settings under which a store is one that {@link startHttpService} can speak with, also in a later process. */
export const httpSettings: Readonly<Record<string, string>> = {
  SVC_RATE_LIMIT: '0',
  SVC_ADMIN_ID: ADMIN.agentId,
  SVC_ADMIN_SECRET: ADMIN.agentSecret,
};

/**
 * Starts the service over a folder, empty or of another process that was started so by this one.
 * Whoever starts it stops it, by `process`.
 */
export async function startHttpService(
  directory: string,
  settings: Readonly<Record<string, string>> = {},
  entry?: string,
): Promise<HttpService> {
  const process = await BenchService.start(directory, { ...httpSettings, ...settings }, entry);
  const baseUrl = `http://127.0.0.1:${process.port}`;
  const asked = { agent_id: ADMIN.agentId, agent_secret: ADMIN.agentSecret };
  const { data } = await createClient({ baseUrl }).tokens.get(asked);
  const token = data.access_token;
  return {
    process,
    client: createClient({ baseUrl, token }),
    agentId: ADMIN.agentId,
    headers: { authorization: `Bearer ${token}` },
  };
}

/** Does some work with a service over an empty store, and takes both away. */
export async function withHttpService<T>(
  work: (service: HttpService, directory: string) => Promise<T>,
): Promise<T> {
  const directory = await makeBenchFolder('http');
  try {
    const service = await startHttpService(directory);
    try {
      return await work(service, directory);
    } finally {
      await service.process.stop();
    }
  } finally {
    await removeBenchFolder(directory);
  }
}

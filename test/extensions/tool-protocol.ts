import { join } from 'node:path';
import { SystemClock } from '../../app/clock.ts';
import { readConfiguration } from '../../app/configuration/configuration.ts';
import type { RunningService } from '../../app/running-service.ts';
import { startService } from '../../app/service.ts';
import { createTelemetry } from '../../observability/create-telemetry.ts';
import { ApiClient } from '../support/api-client.ts';
import { projectRoot } from '../support/project-root.ts';
import { eventually } from '../support/signals.ts';
import { makeTemporaryDirectory } from '../support/temporary-directory.ts';

/** The tools that are requests to the service. */
export const serviceTools = [
  'list_tasks',
  'get_task',
  'create_task',
  'update_task',
  'preview_schedule',
  'run_task',
  'pause_task',
  'resume_task',
  'snooze_task',
  'cancel_task',
  'explain_task',
  'list_runs',
  'get_run',
  'get_run_artifact',
  'cancel_run',
  'retry_run',
  'list_approvals',
  'approve_approval',
  'reject_approval',
  'list_workers',
  'publish_event',
  'run_events',
];

/** Some tools that are registered for pipelines, by the names that clients see. */
export const registered = ['echo', 'sleep', 'http_request', 'events_publish', 'hello_greet'];

/** A task that can be created. */
export const morning = {
  title: 'Morning report',
  description: 'On weekdays at nine',
  schedule_kind: 'cron',
  schedule_expr: '0 9 * * MON-FRI',
  timezone: 'Europe/Berlin',
  payload: { pipeline: [{ id: 'say', uses: 'echo', with: { text: 'Good morning' } }] },
};

/** The names of listed tools. */
export const namesOf = (tools: unknown): readonly string[] =>
  (tools as readonly { readonly name: string }[]).map(({ name }) => name);

/** An agent with a signed-in client. */
export interface Signed {
  readonly id: string;
  readonly client: ApiClient;
}

/** A whole service in this process, with the built-in extensions and the one of `examples/hello`. */
export interface ToolService {
  readonly admin: Signed;
  /** Has only the scope runs:read. */
  readonly reader: Signed;
  /** Registers an agent with scopes. */
  signUp(name: string, scopes: readonly string[]): Promise<Signed>;
}

/**
 * Called inside a `describe`: its tests share one service.
 * @param settings in addition to its own
 */
export function useToolService(settings: Readonly<Record<string, string>> = {}): () => ToolService {
  let started: (ToolService & { readonly close: () => Promise<void> }) | undefined;
  before(async () => {
    started = await start(settings);
  });
  after(async () => {
    await started?.close();
    started = undefined;
  });
  return () => {
    if (started === undefined) throw new Error('the service runs only during the tests');
    return started;
  };
}

async function start(settings: Readonly<Record<string, string>>) {
  const directory = await makeTemporaryDirectory();
  const service = await startService({
    configuration: readConfiguration({
      SVC_PORT: '0',
      SVC_HOST: '127.0.0.1',
      SVC_DATA_DIR: directory.path,
      SVC_LOG_LEVEL: 'silent',
      SVC_EXT_MCP_HTTP_HEARTBEAT_SECONDS: '0.02',
      SVC_EXT_PATHS: join(projectRoot, 'examples/hello'),
      ...settings,
    }),
    clock: new SystemClock(),
    telemetry: createTelemetry({ level: 'silent' }),
    env: {},
  });
  const open = ApiClient.readingOwnWrites(service.address);
  const close = async (): Promise<void> => {
    open.close();
    await service.stop();
    await directory.remove();
  };
  try {
    return { ...(await signUps(service, open)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function signUps(service: RunningService, open: ApiClient): Promise<ToolService> {
  const first = await service.firstAdmin;
  if (first === null) throw new Error('an empty store has no first agent');
  const ready = async (): Promise<void> => {
    const { status, text } = await open.get('/health/ready');
    if (status !== 200) throw new Error(text);
  };
  // All views are built from scratch, on a machine that may be busy.
  await eventually(ready, { limitMs: 60_000 });
  const signIn = async (id: string, agent_secret: string): Promise<Signed> => {
    const answer = await open.post('/agents/auth/token', { agent_id: id, agent_secret });
    return { id, client: open.as(answer.textAt('access_token')) };
  };
  const admin = await signIn(first.agent_id, first.agent_secret);
  const signUp = async (name: string, scopes: readonly string[]): Promise<Signed> => {
    const made = await admin.client.post('/agents', { name, scopes });
    const id = made.textAt('id');
    const credentials = await admin.client.post(`/agents/${id}/credentials`);
    return signIn(id, credentials.textAt('agent_secret'));
  };
  return { admin, reader: await signUp('reader', ['runs:read']), signUp };
}

import type { ApiClient } from '../support/api-client.ts';
import {
  ServiceProcess,
  credentialsIn,
  signIn,
  type Credentials,
  type ServiceSettings,
} from '../support/service-process.ts';

/** All roles in one process. */
export const oneProcess = ['api,projector,scheduler,worker'] as const;
/** A process for each role, and two workers. */
export const fiveProcesses = ['api', 'projector', 'scheduler', 'worker', 'worker'] as const;

/** The processes of one service over one data directory, which start and stop. */
export class Cluster {
  readonly #settings: ServiceSettings;
  readonly #members: { readonly roles: string; process: ServiceProcess | null }[];
  credentials: Credentials | undefined;
  #token: string | null = null;

  constructor(roles: readonly string[], settings: ServiceSettings) {
    this.#settings = {
      SVC_LEASE_SECONDS: '1',
      SVC_HTTP_ALLOW_PRIVATE: 'true',
      SVC_RATE_LIMIT: '0',
      ...settings,
    };
    this.#members = roles.map((each) => ({ roles: each, process: null }));
  }

  get size(): number {
    return this.#members.length;
  }

  /** Starts all, waits until they are ready, and logs the admin in. */
  async start(): Promise<void> {
    await this.restart(this.#members.map((_, index) => index));
    await this.signIn();
  }

  /** Logs the admin in, again if the token has expired. */
  async signIn(): Promise<void> {
    this.credentials ??= credentialsIn(String(this.#settings['SVC_DATA_DIR']));
    this.#token = await signIn(this.#api(), this.credentials);
  }

  /** Restarts processes without waiting. */
  begin(indexes: readonly number[]): readonly ServiceProcess[] {
    return indexes.map((index) => {
      const member = this.#member(index);
      member.process = ServiceProcess.begin({ ...this.#settings, SVC_ROLES: member.roles });
      return member.process;
    });
  }

  /** Restarts processes, and waits until they are ready. */
  async restart(indexes: readonly number[]): Promise<void> {
    await Promise.all(this.begin(indexes).map((process) => process.ready()));
  }

  async kill(indexes: readonly number[]): Promise<void> {
    await Promise.all(indexes.map(async (index) => this.#member(index).process?.kill()));
  }

  /** Stops all gracefully at the same time. @returns their exit codes */
  async terminate(): Promise<readonly (number | null)[]> {
    const ends = await Promise.all(this.#members.map(async ({ process }) => process?.terminate()));
    return ends.map((end) => end?.code ?? null);
  }

  process(index: number): ServiceProcess {
    const { process } = this.#member(index);
    if (process === null) throw new Error(`process ${index} was not started`);
    return process;
  }

  /** The output of the processes so far, for messages of failing tests. */
  get output(): string {
    return this.#members.map(({ process }) => process?.output ?? '').join('\n');
  }

  /** A client of one process with the admin's first token. */
  clientOf(index: number): ApiClient {
    return this.process(index).client(this.#token);
  }

  /** A client of the present API process with the admin's first token. Throws while there is none. */
  client(): ApiClient {
    return this.#api().as(this.#token);
  }

  #api(): ApiClient {
    const api = this.#members.find(({ roles }) => roles.includes('api'))?.process;
    if (api === undefined || api === null || api.address === '' || api.end !== undefined) {
      throw new Error('no API process listens');
    }
    return api.client();
  }

  #member(index: number): { readonly roles: string; process: ServiceProcess | null } {
    const member = this.#members[index];
    if (member === undefined) throw new RangeError(`there is no process ${index}`);
    return member;
  }
}

import { randomBytes } from 'node:crypto';
import type { Clock } from '../../domain/clock.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { SecretAccess, type SecretUse } from '../../domain/secrets/secret-access.ts';
import {
  LayeredSecrets,
  type Secret,
  type SecretSource,
} from '../../domain/secrets/secret-source.ts';
import { secretFold, type SecretEvent, type SecretState } from '../../domain/secrets/secret.ts';
import { LiveStreams } from '../../projections/reading/live-streams.ts';
import type { RunSecrets } from '../../scheduler/pipeline/execution.ts';
import type { Tool } from '../../scheduler/tools/tool.ts';
import { KeyCipher, type SecretKeys } from '../../stores/secrets/key-cipher.ts';
import { StoredSecrets } from '../../stores/secrets/stored-secrets.ts';

/** A tool that accepts secrets and reveals its arguments. */
export const reveal: Tool = {
  name: 'reveal',
  description: '',
  schema: { 'x-secret': true },
  synchronous: true,
  run: (args) => args,
};

/** Secrets of every namespace that may be used and sent everywhere, by name. */
export function plainSecrets(
  values: Readonly<Record<string, string>> | ReadonlyMap<string, string>,
  limits: Partial<Secret> = {},
): SecretSource {
  return {
    find: async (_namespace, name) => {
      const own = values instanceof Map ? undefined : Object.getOwnPropertyDescriptor(values, name);
      const value = values instanceof Map ? values.get(name) : (own?.value as string | undefined);
      if (value === undefined) return undefined;
      return {
        name,
        value,
        version: null,
        source: 'environment',
        hostsRemedy: 'allow it',
        allowHosts: ['*'],
        allowTasks: null,
        expiresAt: null,
        ...limits,
      };
    },
  };
}

/** Access to secrets; notes their uses. */
export function accessTo(
  source: SecretSource,
  uses: SecretUse[] = [],
  clock: Pick<Clock, 'now'> = Date,
): SecretAccess {
  return new SecretAccess(source, (use) => uses.push(use), clock);
}

export const noSecrets = accessTo(plainSecrets({}));

/** The secrets of one run, as a worker gives them to its execution. */
export function secretsOfRun(source: SecretSource, values: Iterable<string>): RunSecrets {
  const access = accessTo(source);
  const user = { namespace: 'default', agentId: 'agent-1', taskId: 'task-1', runId: 'run-1' };
  return { masked: values, open: (name, step) => access.open(name, { ...user, step }) };
}

/** Keys in memory. */
export class TestKeys implements SecretKeys {
  known: Buffer[] = [];

  present(): Buffer {
    if (this.known.length === 0) this.rotate();
    return this.known[0] ?? randomBytes(32);
  }

  refresh(): void {}

  rotate(): boolean {
    this.known.unshift(randomBytes(32));
    return true;
  }
}

/** The secrets of a log, with other backends after it. */
export function secretStoreOver(
  store: EventStore,
  others: SecretSource,
  clock: Pick<Clock, 'now'>,
) {
  const keyring = new TestKeys();
  const cipher = new KeyCipher(keyring);
  const stored = new LiveStreams<SecretState, SecretEvent>(store, 'secret-', secretFold);
  const sources = [new StoredSecrets(stored, cipher), others];
  const access = accessTo(new LayeredSecrets(sources), [], clock);
  return { access, cipher, keyring, stored };
}

/** The error that a promise rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error('the promise was not rejected with an error');
}

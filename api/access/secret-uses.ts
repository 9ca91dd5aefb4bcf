import { idOf, streams } from '../../domain/streams.ts';
import { newId } from '../../domain/ids.ts';
import { namespaceField } from '../../domain/namespaces/namespace.ts';
import type { SecretUse } from '../../domain/secrets/secret-access.ts';
import { CappedRecord, type Noted, type RecordParts } from './capped-record.ts';

interface NotedUse extends Noted {
  readonly use: SecretUse;
}

/** Records uses of secrets, without their values. */
export class SecretUses extends CappedRecord<NotedUse> {
  readonly #now: () => number;
  readonly #source: string;

  /** @param source of the events: the name of this process */
  constructor(parts: RecordParts, source: string) {
    super(parts, {
      what: 'uses of secrets',
      keyOf: ({ use: { namespace, secret, taskId } }) =>
        `${namespace}/${secret.name}/${String(secret.version)}/${String(taskId)}`,
      streamOf: streams.secretUses,
      eventOf: ({ use }, counted, isSum) => ({
        type: 'SecretUsed',
        data: usedBy(use, counted, isSum),
      }),
    });
    this.#now = () => parts.clock.now();
    this.#source = source;
  }

  /** Records a use, within a second. Never fails. */
  used(use: SecretUse): void {
    const now = this.#now();
    const { agentId, runId, namespace } = use;
    const commandId = newId(now);
    const context = { commandId, actor: agentId, source: this.#source, namespace, now };
    this.note({ agentId, use, context: { ...context, correlationId: runId ?? commandId } });
  }
}

function usedBy<C extends object>(
  { namespace, secret, agentId, taskId, runId, step }: SecretUse,
  counted: C,
  isSum: boolean,
) {
  return {
    agent_id: agentId,
    ...namespaceField(namespace),
    secret_id: idOf(streams.secret(namespace, secret.name)),
    name: secret.name,
    secret_version: secret.version,
    source: secret.source,
    task_id: taskId,
    // Other uses in the sum may belong to other runs.
    run_id: isSum ? null : runId,
    step: isSum ? null : step,
    ...counted,
  };
}

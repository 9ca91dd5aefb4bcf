import type { ReceivedResponse, ApiRequest } from '../../support/api-client.ts';
import type { Cluster } from '../cluster.ts';

/** A requested command and its known result. */
export interface SentCommand {
  readonly kind: 'publish' | 'run' | 'create';
  /** Identifies the command in the log, in its payload, reason or title. */
  readonly marker: string;
  /** Sent with an idempotency key, and repeated until it got a response. */
  readonly keyed: boolean;
  /** The id in the response; null without a response. */
  id: string | null;
  /** When it was first sent. */
  readonly at: number;
}

/** Pause between two commands, and before a repetition, in milliseconds. */
const PACE = 80;

/** When a one-time task is due after its first request, in milliseconds. */
const ONCE_AFTER = 5000;

/**
 * Sends commands continuously: publishes events, runs a task manually, creates one-time tasks. Half
 * of them have an idempotency key and are repeated until they get a response; the others are sent
 * once and may be lost.
 */
export class CommandLoad {
  readonly sent: SentCommand[] = [];
  /** Responses that no command may get, whatever is killed. */
  readonly faults: string[] = [];
  readonly #cluster: Cluster;
  readonly #manualTask: string;
  readonly #random: () => number;
  readonly #repeating = new Set<Promise<void>>();
  #isSending = false;
  #loop: Promise<void> = Promise.resolve();

  constructor(cluster: Cluster, manualTask: string, random: () => number) {
    this.#cluster = cluster;
    this.#manualTask = manualTask;
    this.#random = random;
  }

  start(): void {
    this.#isSending = true;
    this.#loop = this.#send();
  }

  /** Stops sending new commands. Resolves when each repeated command has a response. */
  async stop(): Promise<void> {
    this.#isSending = false;
    await this.#loop;
    await Promise.all(this.#repeating);
  }

  async #send(): Promise<void> {
    while (this.#isSending) {
      const chance = this.#random();
      const command: SentCommand = {
        kind: chance < 0.45 ? 'publish' : chance < 0.9 ? 'run' : 'create',
        marker: `command ${this.sent.length}`,
        keyed: this.#random() < 0.5,
        id: null,
        at: Date.now(),
      };
      this.sent.push(command);
      if (command.keyed) {
        const repeating = this.#repeat(command);
        this.#repeating.add(repeating);
        void repeating.finally(() => this.#repeating.delete(repeating));
      } else {
        await this.#once(command);
      }
      await pause();
    }
  }

  async #repeat(command: SentCommand): Promise<void> {
    // The same body each time, as required.
    const request = this.#requestOf(command);
    for (;;) {
      if (await this.#try(command, request)) return;
      await pause();
    }
  }

  async #once(command: SentCommand): Promise<void> {
    await this.#try(command, this.#requestOf(command));
  }

  /** Whether the command got a final response. */
  async #try(command: SentCommand, [path, request]: [string, ApiRequest]): Promise<boolean> {
    let answer: ReceivedResponse;
    try {
      answer = await this.#cluster.client().send('POST', path, request);
    } catch {
      return false; // killed, or not started yet
    }
    if (answer.status >= 200 && answer.status < 300) {
      command.id = idIn(command, answer);
      return true;
    }
    // 503: a part is not available yet. 409: another process may still be working on it. A
    // repetition is rejected if the one fire has passed and the task was not created before.
    if (command.kind === 'create' && answer.status === 400 && isLate(command)) return true;
    const passing = answer.status === 503 || (command.keyed && answer.status === 409);
    if (passing) return false;
    this.faults.push(`${command.marker} (${command.kind}): ${answer.status} ${answer.text}`);
    return true;
  }

  #requestOf({ kind, marker, keyed, at }: SentCommand): [string, ApiRequest] {
    const headers = { 'X-Reason': marker, ...(keyed ? { 'Idempotency-Key': marker } : {}) };
    const agent = this.#cluster.credentials?.agent_id;
    if (kind === 'run') return [`/tasks/${this.#manualTask}/run_now`, { headers }];
    if (kind === 'publish') {
      const topic = this.#random() < 0.5 ? 'orders.created' : 'other.news';
      return ['/events', { headers, body: { topic, payload: { marker }, source_agent_id: agent } }];
    }
    const body = {
      title: marker,
      description: 'runs once',
      schedule_kind: 'once',
      schedule_expr: new Date(at + ONCE_AFTER).toISOString(),
      created_by: agent,
      payload: { pipeline: [] },
    };
    return ['/tasks', { headers, body }];
  }
}

function idIn({ kind }: SentCommand, { json }: ReceivedResponse): string {
  if (kind === 'create') return json['id'] as string;
  const details = json['details'] as Readonly<Record<string, string>>;
  return String(kind === 'run' ? details['run_id'] : details['event_id']);
}

const isLate = ({ at }: SentCommand): boolean => Date.now() >= at + ONCE_AFTER;

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, PACE));

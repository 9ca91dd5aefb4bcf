import { expect } from 'chai';
import type { ApiClient } from '../../support/api-client.ts';
import { RawServer } from '../../support/raw-server.ts';
import { eventually } from '../../support/signals.ts';
import { slowAfter } from './webui-slow-step.ts';

/** Tasks created at once. */
const CONCURRENT_CREATIONS = 50;
/** Longer than the test. Seconds. */
const ENDLESS = 900;
/** The lifetime of a key and a secret, which must not end before they are created. Milliseconds. */
const EXPIRES_AFTER = 8_000;
/** A step is only called slow if its task has had this many runs. */
const USUAL_RUNS = 5;

/** Causes problems in a service, as its admin. Each method resolves once the problem can be read. */
export class Problems {
  readonly #client: ApiClient;
  readonly #admin: string;
  #receiver: RawServer | undefined;

  constructor(client: ApiClient, admin: string) {
    this.#client = client;
    this.#admin = admin;
  }

  /** Many healthy tasks, among which the others hide. */
  async quietTasks(many: number): Promise<void> {
    for (let n = 0; n < many; n += CONCURRENT_CREATIONS) {
      const some = Array.from(
        { length: Math.min(CONCURRENT_CREATIONS, many - n) },
        (_, each) => n + each,
      );
      await Promise.all(some.map((each) => this.#task(`Quiet task ${each}`, { uses: 'echo' })));
    }
  }

  async failingTask(): Promise<void> {
    await this.#runToItsEnd(
      await this.#task('Print letters', { uses: 'fail', with: { message: 'no paper' } }),
    );
  }

  async pausedTask(): Promise<void> {
    const id = await this.#task('Paint the wall', { uses: 'echo' });
    const headers = { 'X-Reason': 'the paint is out of stock' };
    const { status } = await this.#client.post(`/tasks/${id}/pause`, undefined, { headers });
    expect(status).to.equal(200);
  }

  /** Two runs that need the same key, of which the first holds it. */
  async stuckQueue(): Promise<void> {
    const key = { concurrency_key: 'printer', concurrency_limit: 1 };
    const id = await this.#task('Print invoices', sleep(ENDLESS), key);
    await this.#run(id);
    await this.#until(`/runs?task_id=${id}&state=waiting`, 'total', 1);
    await this.#run(id);
    await this.#until(`/runs?task_id=${id}&state=queued`, 'total', 1);
  }

  /** A schedule of two fires. The run of the first does not end, so the other is skipped. */
  async skippingSchedule(): Promise<void> {
    const id = await this.#task('Copy the archive', sleep(ENDLESS), {
      schedule_kind: 'cron',
      schedule_expr: '* * * * * *',
      max_runs: 2,
      overlap_policy: 'skip',
    });
    await this.#until(`/runs?task_id=${id}&state=skipped`, 'total', 1);
  }

  /** Runs of usual length, and then one that takes longer in one of its steps. */
  async slowStep(): Promise<void> {
    const id = await this.#task('Close the books', sleep('${params.seconds}'));
    const usual: string[] = [];
    for (let n = 0; n < USUAL_RUNS; n += 1) {
      usual.push(await this.#runToItsEnd(id, { seconds: 0.01 }));
    }
    const slow = await this.#runToItsEnd(id, { seconds: await slowAfter(this.#client, usual) });
    await this.#until(`/runs/${slow}`, 'state', 'succeeded');
  }

  /** A worker that registers and is not heard of again. */
  async lostWorker(): Promise<void> {
    const tools = [{ name: 'letters.send', description: 'Sends letters', schema: {} }];
    await this.#post('/workers', { name: 'post-office', tools, slots: 1 });
  }

  /** A message that its receiver accepted twice. */
  async duplicatedWebhook(): Promise<void> {
    this.#receiver = new RawServer((_, socket) =>
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'),
    );
    const webhook_url = `${await this.#receiver.listen()}/hook`;
    const agent = await this.#agent({ name: 'bookkeeping', webhook_url });
    const test = await this.#post(`/agents/${agent}/webhook-test`);
    const deliveries = `/agents/${agent}/webhooks/deliveries`;
    await this.#until(deliveries, 'items.0.state', 'delivered');
    await this.#post(`${deliveries}/${test.textAt('details.delivery_id')}/repeat`);
    await this.#until(`${deliveries}?state=delivered`, 'items.0.attempts.length', 2);
    expect(this.#receiver.requests).to.have.length(2);
  }

  /** An API key that is rejected because it has expired. */
  async expiredKey(): Promise<void> {
    const agent = await this.#agent({ name: 'night-shift' });
    const expires_at = new Date(Date.now() + EXPIRES_AFTER).toISOString();
    const made = await this.#post(`/agents/${agent}/keys`, { name: 'old-key', expires_at });
    const key = this.#client.as(made.textAt('key'));
    await eventually(async () => (await key.get(`/agents/${agent}`)).status === 401);
  }

  /** A secret that has expired, and the task that uses it. */
  async expiredSecret(): Promise<void> {
    const expires_at = new Date(Date.now() + EXPIRES_AFTER).toISOString();
    const set = { value: 'hush', allow_hosts: ['bank.example'], expires_at };
    expect((await this.#client.put('/secrets/BANK_TOKEN', set)).status).to.equal(201);
    const headers = { authorization: 'Bearer ${secrets.BANK_TOKEN}' };
    const request = { uses: 'http.request', with: { url: 'https://bank.example/', headers } };
    await this.#task('Pay the rent', request);
    await eventually(async () => {
      const until = new Date().toISOString();
      return (await this.#client.get(`/secrets?until=${until}`)).at('total') === 1;
    });
  }

  /** Adds as many agents as the namespace may have. */
  async usedUpQuota(limit: number): Promise<void> {
    for (;;) {
      const { quotas } = (await this.#client.get('/namespaces/default/usage')).json;
      const agents = (quotas as readonly Quota[]).find(({ quota }) => quota === 'agents');
      expect(agents?.limit).to.equal(limit);
      if ((agents?.used ?? 0) >= limit) return;
      await this.#agent({ name: `clerk ${agents?.used ?? 0}` });
    }
  }

  async hold(): Promise<void> {
    await this.#post('/operations/hold', { reason: 'a new database' });
  }

  async release(): Promise<void> {
    await this.#post('/operations/release', {});
  }

  async close(): Promise<void> {
    await this.#receiver?.close();
  }

  async #task(title: string, step: object, fields: object = {}): Promise<string> {
    const made = await this.#post('/tasks', {
      title,
      description: '-',
      schedule_kind: 'event',
      schedule_expr: 'never.published',
      created_by: this.#admin,
      max_retries: 0,
      payload: {
        pipeline: [
          { id: 'prepare', uses: 'echo' },
          { id: 'work', max_retries: 0, ...step },
        ],
      },
      ...fields,
    });
    return made.textAt('id');
  }

  async #agent(fields: object): Promise<string> {
    return (await this.#post('/agents', { scopes: ['tasks:read'], ...fields })).textAt('id');
  }

  async #run(id: string): Promise<void> {
    await this.#post(`/tasks/${id}/run_now`);
  }

  /** Runs a task, and waits for its end if that comes soon. @returns the run's id */
  async #runToItsEnd(id: string, params: object = {}): Promise<string> {
    const ran = await this.#post(`/tasks/${id}/run_now?wait=30`, { params });
    return ran.textAt('details.run_id');
  }

  async #post(path: string, body: object = {}): ReturnType<ApiClient['post']> {
    const response = await this.#client.post(path, body);
    expect(response.status, response.text).to.be.below(300);
    return response;
  }

  /** Reads until a field has this value. */
  async #until(path: string, field: string, value: unknown): Promise<void> {
    const what = `${field} of ${path} to be ${String(value)}`;
    await eventually(async () => (await this.#client.get(path)).at(field) === value, { what });
  }
}

interface Quota {
  readonly quota: string;
  readonly used: number;
  readonly limit: number | null;
}

const sleep = (seconds: number | string): object => ({ uses: 'sleep', with: { seconds } });

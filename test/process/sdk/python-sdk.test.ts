import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  buildService,
  credentialsIn,
  endsItsProcessesAtTheEnd,
  ServiceProcess,
  signIn,
  type Credentials,
} from '../../support/service-process.ts';
import type { ApiClient } from '../../support/api-client.ts';
import { projectRoot } from '../../support/project-root.ts';
import { requiredProgram } from '../../support/required-program.ts';
import { eventually, found } from '../../support/signals.ts';
import {
  makeTemporaryDirectory,
  useTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';
import { installSdk, plainEnvironment, PythonWorker, sdkFolder } from './python-worker.ts';

const script = join(import.meta.dirname, 'mail_worker.py');
const example = join(projectRoot, 'examples/python-worker/worker.py');

describe('the Python SDK', function () {
  this.timeout(120_000);
  let python: string;

  before(function () {
    python = requiredProgram(this, 'python3-venv');
  });

  it('passes its own tests', () => {
    const words = ['-m', 'unittest', 'discover', '-t', '.', '-s', 'tests'];
    const env = plainEnvironment({});
    const { status, stderr } = spawnSync(python, words, { cwd: sdkFolder, env, encoding: 'utf8' });
    expect(status, stderr).to.equal(0);
    expect(stderr).to.match(/^Ran \d{2,} tests in /m);
  });

  describe('installed without a package index', () => {
    const directory = useTemporaryDirectory();
    let environment: TemporaryDirectory | undefined;
    let installed: string;
    /** The services of all tests, by their leases. */
    let services: Map<number, ServiceProcess>;
    let service: ServiceProcess;
    let credentials: Credentials;
    let client: ApiClient;
    let workers: PythonWorker[];
    let runs: string[];

    before(async () => {
      buildService();
      environment = await makeTemporaryDirectory();
      installed = installSdk(python, join(environment.path, 'venv'));
      services = new Map();
    });
    endsItsProcessesAtTheEnd();
    after(() => environment?.remove());

    beforeEach(() => {
      workers = [];
      runs = [];
    });
    // The next test uses the same service, and its workers must get no job of this test.
    afterEach(async () => {
      await Promise.all(workers.map((worker) => worker.kill()));
      for (const run of runs) {
        const { status, text } = await client.post(`/runs/${run}/cancel`);
        expect(status, text).to.be.oneOf([200, 409]);
      }
    });

    /** Starts the service, unless it runs already. @param lease how long a silent worker keeps its jobs, in seconds */
    async function startService(lease: number, port = '0'): Promise<void> {
      const data = join(environment?.path ?? '', `data-${lease}`);
      const running = services.get(lease);
      if (running === undefined || running.end !== undefined) {
        const started = await ServiceProcess.start({
          SVC_DATA_DIR: data,
          SVC_PORT: port,
          SVC_JOB_LEASE_SECONDS: String(lease),
          SVC_JOB_HEARTBEAT_SECONDS: '1',
          SVC_LEASE_SECONDS: '1',
        });
        services.set(lease, started);
      }
      service = services.get(lease) ?? expect.fail('no service');
      credentials = credentialsIn(data);
      client = service.client(await signIn(service.client(), credentials));
    }

    /** Starts a worker, and waits until it is registered. */
    async function startWorker(name: string, program = script): Promise<PythonWorker> {
      const about = { url: service.address, name, folder: directory(), credentials };
      const worker = new PythonWorker(installed, program, about);
      workers.push(worker);
      await eventually(() => worker.log.includes('registered'), {
        what: `${name} to register: ${worker.log}`,
      });
      return worker;
    }

    async function startPipeline(pipeline: readonly object[]): Promise<string> {
      const task = await client.post('/tasks', {
        title: 'Mail',
        description: 'Sends a mail, and says by whom',
        schedule_kind: 'cron',
        schedule_expr: '0 0 1 1 *',
        created_by: credentials.agent_id,
        payload: { pipeline },
      });
      expect(task.status, task.text).to.equal(201);
      const ran = await client.post(`/tasks/${task.textAt('id')}/run_now`);
      const run = ran.textAt('details.run_id');
      runs.push(run);
      return run;
    }

    /** Requests a run whose first step is a job. It ends once the file `release` exists. */
    function startRun(): Promise<string> {
      const mail = { to: 'ada@example.com', after: release() };
      return startPipeline([
        { id: 'mail', uses: 'emails.send', with: mail, save_as: 'mail', timeout_seconds: 60 },
        { id: 'tell', uses: 'echo', with: { by: '${steps.mail.by}' } },
      ]);
    }

    const release = (): string => join(directory(), 'release');
    const goOn = (): void => writeFileSync(release(), '');

    /** Waits until a run has ended. */
    const ended = (runId: string) =>
      found(
        async () => {
          const run = await client.get(`/runs/${runId}`);
          return typeof run.json['finished_at'] === 'string' ? run : undefined;
        },
        { limitMs: 30_000, what: `run ${runId} to end` },
      );

    it('runs the step of a pipeline, whose log lines and progress can be read while it runs', async () => {
      await startService(60);
      const worker = await startWorker('a');
      const runId = await startRun();
      await worker.said.wait(({ what }) => what === 'began');
      const waiting = await found(
        async () => {
          const run = await client.get(`/runs/${runId}`);
          return run.at('waits.0.progress') === undefined ? undefined : run;
        },
        { what: 'the progress of the job' },
      );
      expect(waiting.json['state']).to.equal('waiting');
      expect(waiting.at('waits.0.progress')).to.equal(0.5);
      expect(waiting.at('waits.0.reason')).to.equal('worker a is doing it');
      expect(waiting.text).to.include('connecting for ada@example.com');
      goOn();
      const run = await ended(runId);
      expect(run.json['state'], run.text).to.equal('succeeded');
      expect(run.at('steps.0.result')).to.deep.equal({ by: 'a', key: `${runId}:mail` });
      expect(run.at('steps.1.result')).to.deep.equal({ by: 'a' });
    });

    it('gives the job of a killed worker to another one, with the same idempotency key', async () => {
      await startService(2);
      const first = await startWorker('first');
      const runId = await startRun();
      const began = await first.said.wait(({ what }) => what === 'began');
      const second = await startWorker('second');
      await first.kill();
      const again = await second.said.wait(({ what }) => what === 'began');
      expect(again).to.deep.equal(began);
      goOn();
      const run = await ended(runId);
      expect(run.json['state'], run.text).to.equal('succeeded');
      expect(run.at('steps.0.result.by')).to.equal('second');
    });

    it('drops the result of a worker that was paused for longer than its lease', async () => {
      await startService(2);
      const first = await startWorker('first');
      const runId = await startRun();
      await first.said.wait(({ what }) => what === 'began');
      const second = await startWorker('second');
      first.signal('SIGSTOP');
      await second.said.wait(({ what }) => what === 'began');
      goOn();
      const run = await ended(runId);
      expect(run.at('steps.0.result.by'), run.text).to.equal('second');
      first.signal('SIGCONT');
      await eventually(() => first.log.includes('dropped the result of job'), {
        what: `the late result to be dropped: ${first.log}`,
      });
      const later = await client.get(`/runs/${runId}`);
      expect(later.at('steps.0.result.by')).to.equal('second');
    });

    it('delivers the result to a service that was killed in the meantime', async () => {
      await startService(60);
      const worker = await startWorker('a');
      const runId = await startRun();
      await worker.said.wait(({ what }) => what === 'began');
      const { port } = new URL(service.address);
      await service.kill();
      goOn();
      await worker.said.wait(({ what }) => what === 'ended');
      await eventually(() => worker.log.includes('retrying'), { what: 'a failed delivery' });
      await startService(60, port);
      const run = await ended(runId);
      expect(run.json['state'], run.text).to.equal('succeeded');
      expect(worker.said.values.map(({ what }) => what)).to.deep.equal(['began', 'ended']);
    });

    it('signals the function that its run was canceled', async () => {
      await startService(60);
      const worker = await startWorker('a');
      const runId = await startRun();
      await worker.said.wait(({ what }) => what === 'began');
      const canceled = await client.post(`/runs/${runId}/cancel`);
      expect(canceled.status, canceled.text).to.equal(200);
      await worker.said.wait(({ what }) => what === 'canceled');
      const run = await ended(runId);
      expect(run.json['state'], run.text).to.equal('canceled');
    });

    it('finishes its jobs after SIGTERM, takes no more, and exits with 0', async () => {
      await startService(60);
      const worker = await startWorker('a');
      const first = await startRun();
      await worker.said.wait(({ what }) => what === 'began');
      worker.signal('SIGTERM');
      await eventually(
        async () => {
          const drained = await client.get('/workers?state=drained');
          return drained.at('items.0.name') === 'a';
        },
        { what: 'the worker to be drained' },
      );
      const later = await startRun();
      goOn();
      expect(await worker.ended()).to.deep.equal({ code: 0, signal: null });
      const run = await ended(first);
      expect(run.json['state'], run.text).to.equal('succeeded');
      await eventually(async () => (await client.get(`/runs/${later}`)).at('state') === 'waiting');
      expect(worker.said.values.map(({ what }) => what)).to.deep.equal([
        'began',
        'ended',
        'stopped',
      ]);
    });

    it('ends at once at a second signal', async () => {
      await startService(60);
      const worker = await startWorker('a');
      await startRun();
      await worker.said.wait(({ what }) => what === 'began');
      worker.signal('SIGTERM');
      await eventually(() => worker.log.includes('worker is stopping'), {
        what: 'the first signal',
      });
      worker.signal('SIGTERM');
      expect(await worker.ended()).to.deep.equal({ code: null, signal: 'SIGTERM' });
    });

    it('runs the example', async () => {
      await startService(60);
      await startWorker('example', example);
      const mail = { to: 'ada@example.com', subject: 'Hello' };
      const runId = await startPipeline([
        { id: 'mail', uses: 'emails.send', with: mail },
        { id: 'sum', uses: 'numbers.sum', with: { limit: 10 } },
        { id: 'bad', uses: 'emails.send', with: { ...mail, to: 'ada' } },
      ]);
      const run = await ended(runId);
      expect(run.at('steps.0.result')).to.deep.equal({ to: 'ada@example.com', is_new: true });
      expect(run.at('steps.1.result')).to.deep.equal({ sum: 55 });
      expect(run.at('steps.2.error'), run.text).to.include('ada is not an address');
      expect(run.json['state']).to.equal('failed');
    });
  });
});

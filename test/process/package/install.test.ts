import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { projectRoot } from '../../support/project-root.ts';
import {
  makeTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';
import {
  buildService,
  credentialsIn,
  endsItsProcessesAtTheEnd,
  ServiceProcess,
  signIn,
  type Credentials,
} from '../../support/service-process.ts';
import { installPackage, type InstalledPackage, type Outcome } from './installed-package.ts';

/** A program of the package's user. */
const program = `import { ApiError, createClient, type Run, type Task } from 'task-scheduling-service/client';

const [, , baseUrl = '', agentId = '', agentSecret = ''] = process.argv;
const client = createClient({ baseUrl, credentials: { agentId, agentSecret } });
const { data } = await client.tasks.create({
  title: 'Tick',
  description: 'On leap days',
  schedule_kind: 'cron',
  schedule_expr: '0 0 29 2 *',
  created_by: agentId,
  payload: { pipeline: [{ uses: 'echo', with: { text: 'hello' } }] },
});
const task: Task = data;
const asked = await client.tasks.runNow(task.id, { wait: 60 });
const { data: run }: { data: Run } = await client.runs.get(asked.data.details.run_id);
// @ts-expect-error a task has no such field
task.nothing;
// @ts-expect-error a task needs a schedule
const incomplete: Parameters<typeof client.tasks.create>[0] = { title: 'Tick' };
const refused = await client.tasks.get(agentId).catch((error: unknown) => error);
console.log(run.state, refused instanceof ApiError ? refused.code : incomplete);
`;

/** A worker that a user of the package writes. Its tools need no explicit types. */
const workerProgram = `import { PermanentError, Worker, type Job, type Tool } from 'task-scheduling-service/worker';

const [, , url = '', agentId = '', agentSecret = ''] = process.argv;
const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
const greet = ({ name }: { readonly [name: string]: unknown }, job: Job): { text: string } => {
  if (name === '') throw new PermanentError('nobody to greet');
  return { text: \`Hello, \${String(name)}, in try \${job.attempt}!\` };
};
const tool: Tool = { description: 'Greets', schema, run: greet };
// @ts-expect-error a tool has a schema
const incomplete: Tool = { description: 'Greets', run: greet };
const worker = new Worker({ url, agentId, agentSecret, tools: { 'own.greet': tool } });
await worker.start();
// @ts-expect-error a worker has no such member
worker.nothing;
console.log(worker.id === null ? incomplete : 'started');
`;

/** The package must not need the types of Node or of other packages, and all its declarations must be valid. */
const compilerOptions = {
  target: 'es2023',
  lib: ['es2023', 'dom', 'dom.iterable'],
  types: [],
  strict: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: false,
};

/** Reports, in each thread of a process, whether it reads source maps. */
const probe = `const { threadId } = require('node:worker_threads');
const { writeSync } = require('node:fs');
const tell = () => writeSync(1, \`source maps in thread \${threadId}: \${process.sourceMapsEnabled}\\n\`);
if (threadId === 0) process.on('exit', tell);
else tell();
`;

/** Bundles, the modules of threads and extensions, and the client as emitted by tsc. */
const programs = [
  /^dist\/app\/(main|cli|demo)\.js$/,
  /^dist\/chunks\/[\w.-]+-[A-Z0-9]{8}\.js$/,
  /^dist\/(app|stores)\/[\w/-]+-thread\.js$/,
  /^dist\/extensions\/(\w+)\/[\w-]+\.js$/,
  /^dist\/extensions\/webui\/static\/main\.[0-9a-f]{16}\.js$/,
  /^dist\/api\/client\/[a-z-]+\.js$/,
  /^dist\/api\/worker\/[\w-]+\.js$/,
  // The client writes numbers with it.
  /^dist\/domain\/exact-numbers\.js$/,
];
const others = [
  /^(package\.json|README\.md|LICENSE|CHANGELOG\.md|dist\/package\.json)$/,
  /^dist\/(api|domain)\/[\w/-]+\.d\.ts$/,
  /^dist\/extensions\/\w+\/(extension\.json|static\/index\.html)$/,
  /^dist\/extensions\/webui\/static\/page\.[0-9a-f]{16}\.css$/,
  /^dist\/extensions\/webui\/static\/[\w.]+\.(br|gz)$/,
];

describe('the package', function () {
  this.timeout(120_000);
  let directory: TemporaryDirectory | undefined;
  let installed: InstalledPackage;

  before(async () => {
    // npm has a timeout; a build may take longer on a busy machine.
    buildService();
    directory = await makeTemporaryDirectory();
    installed = await installPackage(directory.path);
  });
  endsItsProcessesAtTheEnd();
  after(() => directory?.remove());

  const inFolder = (name: string): string => join(installed.folder, name);
  /** Runs a command of the package without npm. */
  const direct = ([command = '', ...words]: readonly string[]): Promise<Outcome> =>
    installed.run(inFolder(`node_modules/.bin/${command}`), words);
  const npx = (words: readonly string[], settings: NodeJS.ProcessEnv = {}): Promise<Outcome> =>
    installed.run('npx', ['--no', '--', ...words], settings);

  function begin(
    settings: Readonly<Record<string, string>> = {},
    command: readonly [string, ...string[]] = ['task-scheduling-service'],
  ): ServiceProcess {
    const given = { PATH: installed.path, SVC_DATA_DIR: inFolder('data'), ...settings };
    return ServiceProcess.beginCommand(command, installed.folder, given);
  }

  const announcements = async (): Promise<readonly string[]> =>
    (await readdir(inFolder('data'))).filter((name) => /^service-.*\.json$/.test(name));

  async function compile(options: Readonly<Record<string, unknown>>): Promise<string> {
    await writeFile(inFolder('program.ts'), program);
    await writeFile(inFolder('worker.ts'), workerProgram);
    await writeFile(inFolder('node.d.ts'), 'declare const process: { argv: string[] };\n');
    const files = ['program.ts', 'worker.ts', 'node.d.ts'];
    const settings = { compilerOptions: { ...compilerOptions, ...options }, files };
    await writeFile(inFolder('tsconfig.json'), JSON.stringify(settings));
    const require = createRequire(import.meta.url);
    const compiler = join(dirname(require.resolve('typescript/package.json')), 'bin', 'tsc');
    return (await installed.run(process.execPath, [compiler, '-p', '.'])).out;
  }

  it('contains the program, its source maps, the declarations of client and worker, and nothing else', () => {
    const maps = installed.files.filter((file) => file.endsWith('.map'));
    const rest = installed.files.filter((file) => !file.endsWith('.map'));
    const known = [...programs, ...others];
    expect(rest.filter((file) => !known.some((each) => each.test(file)))).to.deep.equal([]);
    for (const each of known)
      expect(
        rest.some((file) => each.test(file)),
        String(each),
      ).to.be.true;
    expect(rest).to.include.members(maps.map((file) => file.slice(0, -'.map'.length)));
  });

  it("provides its client's types to a program with the module resolution of bundlers", async () => {
    const bundler = { module: 'esnext', moduleResolution: 'bundler', noEmit: true };
    expect(await compile(bundler)).to.equal('');
  });

  describe('as a running service', () => {
    let service: ServiceProcess;
    const credentials = (): Credentials => credentialsIn(inFolder('shared'));

    before(async () => {
      service = begin({ SVC_DATA_DIR: inFolder('shared') });
      await service.ready();
      // The programs of the package's user.
      expect(await compile({ module: 'nodenext' })).to.equal('');
    });
    after(() => service.terminate());

    it('is used by both command lines, and by a program with the client', async () => {
      const { agent_id, agent_secret } = credentials();
      const words = ['program.js', service.address, agent_id, agent_secret];
      const ran = await installed.run(process.execPath, words);
      expect(ran).to.deep.equal({ code: 0, out: 'succeeded not_found\n', err: '' });
      const settings = { SVC_DATA_DIR: inFolder('shared') };
      const own = await npx(['svc', 'tasks', 'list', '--json'], settings);
      const inner = await npx(
        ['task-scheduling-service', 'svc', 'tasks', 'list', '--json'],
        settings,
      );
      expect(own.out).to.include('"title": "Tick"').and.to.equal(inner.out);
      expect([own.code, inner.code]).to.deep.equal([0, 0]);
    });

    it('gives jobs to a worker of the package', async () => {
      const { agent_id, agent_secret } = credentials();
      const worker = spawn(
        process.execPath,
        ['worker.js', service.address, agent_id, agent_secret],
        {
          cwd: installed.folder,
          stdio: ['ignore', 'pipe', 'ignore'],
        },
      );
      try {
        const lines = createInterface({ input: worker.stdout });
        expect(await once(lines, 'line')).to.deep.equal(['started']);
        const token = await signIn(service.client(), { agent_id, agent_secret });
        const client = service.client(token);
        const task = await client.post('/tasks', {
          title: 'Greet',
          description: 'by a worker',
          schedule_kind: 'event',
          schedule_expr: 'never.published',
          created_by: agent_id,
          payload: { pipeline: [{ id: 'greet', uses: 'own.greet', with: { name: 'Ada' } }] },
        });
        const asked = await client.post(`/tasks/${task.textAt('id')}/run_now?wait=60`);
        const run = await client.get(`/runs/${asked.textAt('details.run_id')}`);
        expect(run.at('output.steps.greet.text')).to.equal('Hello, Ada, in try 1!');
      } finally {
        worker.kill();
      }
    });

    it('includes the built-in extensions, the page, and the interface description', async () => {
      const client = service.client();
      const paths = ['ext/webui/', 'docs', 'openapi.json'];
      for (const path of [...paths, 'ext/observability/metrics']) {
        expect((await client.get(`/${path}`)).status, path).to.equal(200);
      }
      const { agent_id, agent_secret } = credentials();
      const token = await client.post('/agents/auth/token', { agent_id, agent_secret });
      const { json } = await service.client(String(token.json['access_token'])).get('/ext/status');
      const loaded = json['extensions'] as Readonly<Record<string, { readonly state: string }>>;
      expect(Object.entries(loaded).map(([id, { state }]) => `${id} ${state}`)).to.have.members([
        'events_demo loaded',
        'mcp_http loaded',
        'observability loaded',
        'webui loaded',
      ]);
    });
  });

  it('reads source maps in every thread', async () => {
    await writeFile(inFolder('probe.cjs'), probe);
    const service = begin({ NODE_OPTIONS: `--require ${inFolder('probe.cjs')}` });
    await service.ready();
    await service.terminate();
    const reports = [...service.output.matchAll(/source maps in thread (\d+): (\w+)/g)];
    expect(reports.map(([, thread]) => thread)).to.include.members(['0', '1', '2']);
    expect(reports.filter(([, , read]) => read !== 'true')).to.deep.equal([]);
  });

  it('stops gracefully when npx receives a signal', async () => {
    const command = ['npx', '--no', '--', 'task-scheduling-service'] as const;
    const service = begin({}, command);
    await service.ready();
    const [file = ''] = await announcements();
    const { pid } = JSON.parse(await readFile(join(inFolder('data'), file), 'utf8')) as {
      readonly pid: number;
    };
    try {
      service.signal('SIGTERM');
      await service.ended();
      expect(service.output).to.include('"message":"stopped"');
    } catch (error) {
      process.kill(pid, 'SIGKILL');
      throw error;
    }
  });

  it('starts as the systemd unit specifies', async () => {
    const credentials = inFolder('credentials');
    await mkdir(credentials);
    const key = randomBytes(32);
    const jwtKey = `${key.toString('hex')}\n`;
    await writeFile(join(credentials, 'jwt-secret-key'), jwtKey, { mode: 0o400 });
    const secretsKey = key.toString('base64');
    await writeFile(join(credentials, 'secrets-key'), secretsKey, { mode: 0o400 });
    const unit = await readFile(
      join(projectRoot, 'deploy/systemd/task-scheduling-service.service'),
      'utf8',
    );
    const state = inFolder('state');
    const settings = [...unit.matchAll(/^Environment=(\w+)=(.*)$/gm)].map(
      ([, name = '', value = '']) =>
        [name, value.replace('%d', credentials).replace('%S', state)] as const,
    );
    const [program = '', ...words] = /^ExecStart=(.+)$/m.exec(unit)?.[1]?.split(' ') ?? [];
    const service = begin(Object.fromEntries(settings), [program, ...words]);
    await service.ready();
    expect(service.output).to.not.match(/"level":"(warn|error)"/);
    const kept = await readdir(join(state, 'task-scheduling-service'));
    expect(kept).to.include('admin-credentials.json').and.not.include('jwt-secret.key');
    expect(await service.terminate()).to.deep.equal({ code: 0, signal: null });
  });

  it('runs the demo', async () => {
    const { code, out } = await npx(['task-scheduling-service', 'demo']);
    expect(out).to.include('As expected: 4 tasks, 7 runs, 2 calls.');
    expect(code).to.equal(0);
  });

  it('prints its usage and its version, and rejects other arguments', async () => {
    const { version } = JSON.parse(
      await readFile(inFolder('node_modules/task-scheduling-service/package.json'), 'utf8'),
    ) as { readonly version: string };
    for (const words of [['task-scheduling-service'], ['svc']]) {
      expect((await direct([...words, '--version'])).out).to.equal(`${version}\n`);
      expect((await direct([...words, '--help'])).out).to.match(/^Usage: /);
    }
    expect(await direct(['task-scheduling-service', '--port', '80'])).to.deep.equal({
      code: 2,
      out: '',
      err: 'task-scheduling-service: unknown argument "--port"; settings are environment variables such as SVC_PORT; see --help\n',
    });
  });
});

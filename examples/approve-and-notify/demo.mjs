// `node examples/approve-and-notify/demo.mjs`: a pipeline of a Python worker, an approval, a callback and a child run, on a
// service of its own. The service and the worker are killed in the middle. Needs python3 (3.9 or later) and curl.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildIfStale } from '../../app/build-if-stale.mjs';
import { Programs, freePort, project, startCarrier, until } from './programs.mjs';

const example = 'examples/approve-and-notify';
const programs = new Programs();
const say = (line = '') => console.log(line);
const heading = (line) => say(`\n— ${line}\n`);
const indented = (text) => text.trimEnd().replaceAll(/^/gm, '  ');

async function play(folder) {
  for (const program of ['python3', 'curl']) {
    await programs.run(program, ['--version']).catch(() => {
      throw new Error(`${program} is not in the PATH; install it`);
    });
  }
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const data = join(folder, 'data');
  const outbox = join(folder, 'outbox.db');
  const caller = { SVC_URL: url, SVC_DATA_DIR: data, XDG_STATE_HOME: folder };
  const cli = (words) => programs.run(process.execPath, ['dist/app/cli.js', ...words], caller);
  /** Runs a command of `svc` and shows it with its output. */
  const svc = async (...words) => {
    say(`$ svc ${words.map((word) => (/^[\w./:=-]+$/.test(word) ? word : `'${word}'`)).join(' ')}`);
    const output = await cli(words);
    say(indented(output));
    return output;
  };
  /** The response of a command of `svc`, which is not shown. */
  const done = async (...words) => JSON.parse(await cli(['--json', ...words]));

  const startService = async () => {
    const service = programs.start('service', process.execPath, ['dist/app/main.js'], {
      SVC_PORT: String(port),
      SVC_DATA_DIR: data,
      SVC_LOG_LEVEL: 'error',
      // `${callback.url}` begins with it. The carrier is on this machine.
      SVC_PUBLIC_URL: url,
      SVC_HTTP_ALLOW_PRIVATE: '127.0.0.1',
      // A killed worker loses its job soon.
      SVC_JOB_LEASE_SECONDS: '10',
      SVC_JOB_HEARTBEAT_SECONDS: '1',
    });
    const isReady = async () => (await fetch(`${url}/health/ready`)).ok;
    await until('the service is ready', () => isReady().catch(() => false));
    say(`The service is ready on ${url}, as process ${service.pid}.`);
    return service;
  };

  heading('A service, a Python worker, two tasks');
  let service = await startService();
  const post = { method: 'POST', headers: { 'content-type': 'application/json' } };
  const credentials = await readFile(join(data, 'admin-credentials.json'));
  const signedIn = await fetch(`${url}/agents/auth/token`, { ...post, body: credentials });
  const { access_token: token } = await signedIn.json();
  /** Reads from the service, as often as it is needed. */
  const read = async (path) =>
    (await fetch(`${url}/${path}`, { headers: { authorization: `Bearer ${token}` } })).json();
  const agent = await done('agents', 'create', 'office', '--scope', 'jobs:work');
  const secret = await done('agents', 'credentials', agent.id);
  const startWorker = async (name) => {
    const worker = programs.start(name, 'python3', [`${example}/worker.py`, name], {
      SVC_URL: url,
      SVC_AGENT_ID: agent.id,
      SVC_AGENT_SECRET: secret.agent_secret,
      PYTHONPATH: join(project, 'sdk/python'),
      PYTHONDONTWRITEBYTECODE: '1',
      OUTBOX: outbox,
    });
    const names = async () => (await read('workers')).items.map((each) => each.name);
    await until(`worker ${name} registers`, async () => (await names()).includes(name));
    say(`Worker ${name} has registered, as process ${worker.pid}.`);
    return worker;
  };
  const worker = await startWorker('worker-1');
  await svc('workers', 'list');
  const notify = await done('tasks', 'create', '--file', `${example}/notify.json`);
  const order = await done('tasks', 'create', '--file', `${example}/order.json`);
  const carrier = await startCarrier();
  programs.alsoStop(carrier.close);

  heading('A run with inputs: the worker writes the invoice, while a person is asked');
  const inputs = ['order=4712', 'total=80', `carrier=${carrier.url}`, `notify=${notify.id}`];
  const params = inputs.flatMap((each) => ['--param', each]);
  const requested = await svc('tasks', 'run', order.id, ...params);
  const [run] = requested.match(/[0-9a-f-]{36}/);
  const pending = async () => (await read(`approvals?state=pending&run_id=${run}`)).items[0];
  const approval = await until('the run waits for the approval', pending);
  const stateOf = async (id) =>
    (await read(`runs/${run}`)).plan.find(({ step }) => step === id).state;
  await until('the invoice', async () => (await stateOf('invoice')) === 'succeeded');
  await svc('runs', 'show', run);

  heading(`kill -9 ${service.pid}: the service dies while the run waits, and starts again`);
  await service.killed();
  service = await startService();
  await svc('tasks', 'explain', order.id, '--at', approval.requested_at);

  heading('A person approves');
  await svc('approvals', 'list', '--state', 'pending');
  await svc('approvals', 'approve', approval.id, '--comment', 'paid');

  heading('The carrier has been called, and calls back');
  const { tell } = await carrier.booked;
  const body = '{"tracking":"DE-0815"}';
  const words = ['-sS', '-X', 'POST', tell, '-H', 'content-type: application/json', '-d', body];
  say(`$ curl -X POST ${tell.slice(0, -30)}… -H 'content-type: application/json' -d '${body}'`);
  say(indented(await programs.run('curl', words)));

  heading('A child run tells the customer; its worker dies half way');
  const childOf = async () => (await read(`runs?parent_run_id=${run}`)).items[0];
  const child = await until('the child run', childOf);
  const half = async () => (await read(`runs/${child.id}`)).waits[0]?.progress >= 0.3;
  await until('the email is half sent', half);
  say(`kill -9 ${worker.pid}\n`);
  await worker.killed();
  await svc('runs', 'show', child.id);
  await startWorker('worker-2');

  const isOver = async () => (await read(`runs/${run}`)).finished_at !== null;
  await until('the end of the run', isOver);
  heading('The end');
  await svc('runs', 'show', run);
  await svc('runs', 'list', '--parent', run);
  say(`$ svc runs history ${run} | grep '^[0-9]'`);
  const history = await cli(['runs', 'history', run]);
  say(indented(history.match(/^[0-9].*$/gm).join('\n')));
  const { state } = await read(`runs/${run}`);
  const script =
    'import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute("SELECT * FROM sent"))';
  const sent = await programs.run('python3', ['-c', script, outbox]);
  say(`\nThe outbox: ${sent.trim()}`);
  const emails = sent.trim().split('\n').filter(Boolean).length;
  if (state !== 'succeeded' || emails !== 1) {
    throw new Error(`the run is ${state}, and ${emails} emails were sent`);
  }
  say('\nAs expected: the run succeeded, and one email was sent.');
}

buildIfStale();
const folder = await mkdtemp(join(tmpdir(), 'svc-demo-'));
const cleanUp = async () => {
  programs.stop();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
};
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => void cleanUp().then(() => process.exit(130)));
}
try {
  await play(folder);
} catch (error) {
  console.error(`The demo failed: ${error.message}`);
  process.exitCode = 1;
} finally {
  await cleanUp();
}

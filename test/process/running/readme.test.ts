import { expect } from 'chai';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { read } from '../../docs/documents.ts';
import { projectRoot } from '../../support/project-root.ts';
import { endsItsProcessesAtTheEnd, ServiceProcess } from '../../support/service-process.ts';
import {
  makeTemporaryDirectory,
  useTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';

/** Instead of a pause: waits for the run of the event, without output. */
const UNTIL_SHOWN = 'until call $URL/task/$LISTENER/latest | grep -q 4711; do sleep 0.2; done\n';

describe('the calls of the README and the tutorial', function () {
  this.timeout(90_000);
  const directory = useTemporaryDirectory();
  let data: TemporaryDirectory;
  let service: ServiceProcess;
  let server: ChildProcess | undefined;

  // A reader has one service too, for all the pages.
  before(async () => {
    data = await makeTemporaryDirectory();
    service = await ServiceProcess.start({
      SVC_DATA_DIR: data.path,
      SVC_HTTP_ALLOW_PRIVATE: '127.0.0.1',
      SVC_EXT_PATHS: join(projectRoot, 'examples/hello'),
    });
  });
  after(async () => {
    expect((await service.terminate()).code).to.equal(0);
  });
  endsItsProcessesAtTheEnd();
  after(() => data.remove());
  // The calls read its credentials there.
  beforeEach(() => symlinkSync(data.path, join(directory(), 'data')));

  afterEach(() => {
    server?.kill();
    server = undefined;
  });

  /** Starts `examples/endpoint` on a free port. @returns its address */
  async function exampleEndpoint(): Promise<string> {
    server = spawn(process.execPath, [join(projectRoot, 'examples/endpoint/endpoint.mjs')], {
      env: { ...process.env, PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: server.stdout ?? expect.fail('no output') });
    const [line] = (await once(lines, 'line')) as [string];
    return /http:\S+/.exec(line)?.[0] ?? expect.fail(line);
  }

  /** Runs the calls of a page in a shell. @returns their output */
  function resultOf(page: string, adapt: (script: string) => string): string {
    const calls = [...read(page).matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(
      ([, block]) => block ?? '',
    );
    expect(calls.length).to.be.greaterThan(3);
    const script = adapt(calls.join('echo\n'));
    expect(script).to.not.include('localhost:8080').and.to.not.include('127.0.0.1:3000');
    const options = ['--norc', '--noprofile', '-euo', 'pipefail', '-c', script];
    const { stdout, stderr, status } = spawnSync('bash', options, {
      cwd: directory(),
      encoding: 'utf8',
      timeout: 60_000,
    });
    expect(status, stderr).to.equal(0);
    expect(stderr).to.equal('');
    return stdout;
  }

  it('work unchanged, one after the other, on a newly started service', async () => {
    const endpoint = await exampleEndpoint();
    const stdout = resultOf('README.md', (script) =>
      script
        .replaceAll('http://localhost:8080', service.address)
        .replaceAll('http://127.0.0.1:3000', endpoint)
        // On a busy machine, the run of the event may need longer.
        .replace('sleep 1\n', UNTIL_SHOWN),
    );
    expect(read('README.md')).to.include('\nsleep 1\n');
    expect(stdout).to.match(/"title":"Morning report".*"status":"active"/);
    expect(stdout).to.match(/"text":"Good morning, it is \d{4}-.*"state":"succeeded"/);
    expect(stdout).to.match(/"topic":"orders\.created","triggered_tasks":\["/);
    expect(stdout).to.match(/"order":\{"number":4711\}.*"trigger":"event"/);
    expect(stdout).to.match(/"report":"sales of \d{4}-.*"state":"succeeded"/);
    expect(stdout).to.match(/"message":"Hello, Ada!".*"state":"succeeded"/);
  });

  it('start a worker, use its tool and stop it in the how-to', async () => {
    const tsx = import.meta.resolve('tsx/esm');
    const worker = join(projectRoot, 'examples/typescript-worker/worker.ts');
    const stdout = resultOf('docs/how-to/typescript-worker.md', (script) =>
      script
        .replaceAll('http://localhost:8080', service.address)
        .replace(/npx tsx \S+/, `${process.execPath} --import ${tsx} ${worker}`),
    );
    expect(stdout).to.match(/"mail":\{"file":"[\w%-]+mail\.txt"\}.*"state":"succeeded"/);
    const [file = ''] = readdirSync(join(directory(), 'outbox'));
    const sent = readFileSync(join(directory(), 'outbox', file), 'utf8');
    expect(sent).to.equal('To: ada@example.com\nSubject: Welcome\n\n\n');
    expect(readFileSync(join(directory(), 'worker.log'), 'utf8')).to.include('worker stopped');
  });

  it('continue in the tutorial', async () => {
    const stdout = resultOf('docs/tutorial/first-task.md', (script) =>
      script.replaceAll('http://localhost:8080', service.address),
    );
    expect(stdout.match(/"local":"\d{4}-\d\d-\d\dT16:00:00-0[45]:00"/g)).to.have.lengthOf(3);
    expect(stdout).to.include('"1250 EUR"').and.to.include('the ledger is closed');
    expect(stdout).to.match(/"total":1,.*"has_more":false/);
    expect(stdout).to.match(/"type":"TaskPaused".*"the ledger is closed until Monday"/);
    expect(stdout).to.match(/"new_status":"canceled"/);
  });
});

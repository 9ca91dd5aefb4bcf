import { expect } from 'chai';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import {
  ServiceProcess,
  buildService,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { Signal, eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { requiredProgram } from '../../support/required-program.ts';

describe('the service with a low limit of open files', function () {
  this.timeout(90_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  let receiver: Server;
  let prlimit: string;
  const requests = new Signal<number>('requests of steps');

  before(function () {
    prlimit = requiredProgram(this, 'prlimit');
    buildService();
  });
  beforeEach((done) => {
    receiver = createServer((_, response) => {
      requests.send(Date.now());
      response.end();
    });
    receiver.listen(0, '127.0.0.1', done);
  });
  afterEach((done) => {
    receiver.close(done);
    receiver.closeAllConnections();
  });

  const limitedTo = (files: number): readonly string[] => [prlimit, `--nofile=${String(files)}`];

  for (const files of [40, 255]) {
    it(`does not start with ${String(files)}, and names the remedy in one line`, async () => {
      const refused = ServiceProcess.begin({ SVC_DATA_DIR: directory() }, limitedTo(files));
      expect((await refused.ended()).code, refused.output).to.equal(2);
      expect(refused.output).to.match(
        new RegExp(`^this process can open ${String(files)} files .*ulimit -n.*\n$`),
      );
    });
  }

  it('keeps the files it needs despite many clients, and accepts clients again later', async () => {
    const settings = { SVC_DATA_DIR: directory(), SVC_HTTP_ALLOW_PRIVATE: 'true' };
    const service = await ServiceProcess.start(settings, limitedTo(256));
    const credentials = credentialsIn(directory());
    const client = service.client(await signIn(service.client(), credentials));
    const crowd: Socket[] = [];
    try {
      for (let n = 0; n < 400; n += 1) {
        crowd.push(connect(Number(new URL(service.address).port), '127.0.0.1'));
        crowd.at(-1)?.on('error', () => {});
      }
      await eventually(() =>
        service.log.some(({ message }) => String(message).startsWith('connections refused')),
      );
      const { port } = receiver.address() as AddressInfo;
      const url = `http://127.0.0.1:${String(port)}/`;
      const made = await client.post('/tasks', {
        title: 'Asks',
        description: 'by HTTP',
        created_by: credentials.agent_id,
        schedule_kind: 'cron',
        schedule_expr: '* * * * * *',
        payload: { pipeline: [{ uses: 'http.request', with: { url } }] },
      });
      expect(made.status, made.text).to.equal(201);
      await requests.next();
    } finally {
      for (const socket of crowd) socket.destroy();
    }
    await signIn(service.client(), credentials);
    expect(service.log.filter(({ level }) => level === 'error')).to.deep.equal([]);
  });
});

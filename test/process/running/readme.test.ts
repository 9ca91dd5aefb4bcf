import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { read } from '../../docs/documents.ts';
import { endsItsProcesses, ServiceProcess } from '../../support/service-process.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('the calls of the README', function () {
  this.timeout(90_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();

  it('work as they stand, one after the other, on a service that was just started', async () => {
    const service = await ServiceProcess.start({ SVC_DATA_DIR: join(directory(), 'data') });
    const calls = [...read('README.md').matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(
      ([, block]) => block ?? '',
    );
    expect(calls.length).to.be.greaterThan(3);
    const script = calls.join('echo\n').replaceAll('http://localhost:8080', service.address);
    expect(script).to.include(service.address);
    const { stdout, stderr, status } = spawnSync('bash', ['-euo', 'pipefail', '-c', script], {
      cwd: directory(),
      encoding: 'utf8',
      timeout: 60_000,
    });
    expect(status, stderr).to.equal(0);
    expect(stderr).to.equal('');
    expect(stdout).to.match(/"title":"Morning report".*"status":"active"/);
    expect(stdout).to.match(/"text":"Good morning, it is \d{4}-.*"state":"succeeded"/);
    expect(stdout).to.match(/"topic":"orders\.created","triggered_tasks":\["/);
    expect(stdout).to.match(/"order":\{"number":4711\}.*"trigger":"event"/);
    expect((await service.terminate()).code).to.equal(0);
  });
});

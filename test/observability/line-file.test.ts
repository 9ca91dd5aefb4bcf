import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import { deferred } from '../support/signals.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

/** Writes more than a pipe holds, in a thread of its own, because a write may never return. */
const writing = `
  const { parentPort, workerData } = require('node:worker_threads');
  const sources = import('tsx/esm/api').then(({ register }) => register());
  sources.then(() => import(workerData.module)).then(({ LineFile }) => {
    const file = new LineFile(workerData.fd, (lost) => parentPort.postMessage({ lost }));
    const line = 'x'.repeat(9_999) + '\\n';
    for (let n = 0; n < 150; n += 1) file.write(line);
    parentPort.on('message', () => file.write('again\\n'));
    parentPort.postMessage('goes on');
  });
`;

describe('a log whose reader has stopped reading', () => {
  const directory = useTemporaryDirectory();
  let fd: number | null = null;
  let worker: Worker | null = null;
  afterEach(async () => {
    await worker?.terminate();
    if (fd !== null) closeSync(fd);
    worker = fd = null;
  });

  it('delays its writers only briefly, and continues with the waiting lines once it is read again', async () => {
    const path = join(directory(), 'pipe');
    execFileSync('mkfifo', [path]);
    const pipe = (fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK));
    const module = new URL('../../observability/line-file.ts', import.meta.url).href;
    worker = new Worker(writing, { eval: true, workerData: { fd, module } });
    const goesOn = deferred();
    const lost = deferred<number>();
    worker.on('message', (message: string | { lost: number }) => {
      if (typeof message === 'string') goesOn.resolve();
      else lost.resolve(message.lost);
    });
    await goesOn.promise;
    const buffer = Buffer.alloc(65_536);
    const read = (): number => {
      try {
        return readSync(pipe, buffer);
      } catch {
        return 0;
      }
    };
    let bytes = read();
    expect(bytes).to.be.greaterThan(60_000);
    worker.postMessage('again');
    const result = { lost: 0 };
    const ended = lost.promise.then((count) => (result.lost = count));
    while (result.lost === 0) {
      bytes += read();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await ended;
    for (let more = read(); more > 0; more = read()) bytes += more;
    expect(bytes).to.equal((150 - result.lost) * 10_000 + 'again\n'.length);
  });
});

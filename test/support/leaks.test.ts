import { expect } from 'chai';
import { createServer } from 'node:net';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expectNothingLeftOpen, leaked, openResources } from './leaks.ts';
import { makeTemporaryDirectory } from './temporary-directory.ts';

describe('the leak check', () => {
  it('names a server that is still listening, and passes once it is closed', async () => {
    const before = await openResources();
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    expect(leaked(before)).to.equal('1 TCPServerWrap');
    await new Promise((resolve) => server.close(resolve));
    await expectNothingLeftOpen(before);
  });

  it('names a timer that is still running', async () => {
    const before = await openResources();
    const timer = setInterval(() => undefined, 60_000);
    expect(leaked(before, await openResources())).to.equal('1 Timeout');
    clearInterval(timer);
  });
});

describe('a temporary directory', () => {
  it('is deleted with its contents', async () => {
    const directory = await makeTemporaryDirectory();
    writeFileSync(join(directory.path, 'file'), 'text');
    await directory.remove();
    await directory.remove();
    expect(existsSync(directory.path)).to.equal(false);
  });
});

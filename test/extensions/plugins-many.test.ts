import { expect } from 'chai';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findPlugins } from '../../extensions/host/plugins.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

/** About as many packages as the service itself installs. */
const PACKAGES = 300;
/** How long other work, such as reading a large log, takes in each turn of the event loop. */
const TURN_MS = 5;

describe('extensions among many installed packages', () => {
  const directory = useTemporaryDirectory();

  it('are found in few turns of a busy event loop', async () => {
    for (let n = 0; n < PACKAGES; n += 1) {
      const folder = join(directory(), 'node_modules', `package-${String(n).padStart(3, '0')}`);
      mkdirSync(folder, { recursive: true });
      const plugins = { [`plugin-${n}`]: './index.js' };
      const about = {
        name: `package-${n}`,
        version: '1.0.0',
        ...(n % 100 === 7 && { svc: { plugins } }),
      };
      writeFileSync(join(folder, 'package.json'), JSON.stringify(about));
    }
    let turns = 0;
    let over = false;
    const turn = (): void => {
      turns += 1;
      const end = performance.now() + TURN_MS;
      while (performance.now() < end);
      if (!over) setImmediate(turn);
    };
    setImmediate(turn);
    const found = await findPlugins([directory()], 'all');
    over = true;
    expect(found.map(({ key }) => key)).to.deep.equal(['plugin-7', 'plugin-107', 'plugin-207']);
    expect(turns).to.be.lessThan(PACKAGES * 2);
  });
});

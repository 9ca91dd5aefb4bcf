import { buildService, endsItsProcesses } from '../../support/service-process.ts';
import {
  makeTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';
import { fiveProcesses, oneProcess } from '../cluster.ts';
import { killMatrix, kills, long, seedOfRun } from './kill-matrix.ts';

describe(`the service, when it is killed ${kills} times while tasks fire every second`, function () {
  this.timeout(long ? 1_800_000 : 600_000);
  const seed = seedOfRun();
  let directories: TemporaryDirectory[] = [];
  let asOne: PromiseSettledResult<void>;
  let asFive: PromiseSettledResult<void>;

  // Concurrently: most of it is waiting for tasks to fire.
  before(async () => {
    buildService();
    directories = [await makeTemporaryDirectory(), await makeTemporaryDirectory()];
    const [one, five] = directories as [TemporaryDirectory, TemporaryDirectory];
    [asOne, asFive] = await Promise.allSettled([
      killMatrix(oneProcess, one.path, seed),
      killMatrix(fiveProcesses, five.path, seed),
    ]);
  });
  endsItsProcesses();
  after(async () => {
    await Promise.all(directories.map((directory) => directory.remove()));
  });

  it(`loses and duplicates nothing as one process (seed ${seed})`, () => expectFulfilled(asOne));
  it(`loses and duplicates nothing as five processes (seed ${seed})`, () =>
    expectFulfilled(asFive));
});

function expectFulfilled(outcome: PromiseSettledResult<void>): void {
  if (outcome.status === 'rejected') throw outcome.reason;
}

import { buildService, endsItsProcesses } from '../support/service-process.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';
import { fiveProcesses, oneProcess } from './cluster.ts';
import { killMatrix, kills, long, seedOfRun } from './kill-matrix.ts';

describe(`the service, when it is killed ${kills} times while tasks fire every second`, function () {
  this.timeout(long ? 1_200_000 : 180_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  const seed = seedOfRun();
  before(() => buildService());

  it(`loses and doubles nothing as one process (seed ${seed})`, () =>
    killMatrix(oneProcess, directory(), seed));

  it(`loses and doubles nothing as five processes (seed ${seed})`, () =>
    killMatrix(fiveProcesses, directory(), seed));
});
